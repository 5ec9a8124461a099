//! The flags of `rallypoint respond`.

use super::Place;
use std::{net::SocketAddr, path::PathBuf};

/// Answer queries for a game that has none of its own
///
/// Runs beside the game and tells whoever asks what stands in a file: name, map, players and so on, by document 002
/// (Bloodmasters) or document 003 (session), within budgets that make it useless for flooding others. A game that changes
/// the file sends SIGHUP. Once it answers it prints a line for each address on standard output.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples, signals and exit codes: rallypoint respond --help")]
pub struct Args {
    /// Where queries of document 002 are answered; can be repeated
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    bloodmasters: Vec<SocketAddr>,

    /// Where queries of document 003 are answered, also at the same address; can be repeated
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    session: Vec<SocketAddr>,

    /// What to answer (TOML): --print-example has all there is to say
    #[arg(long, value_name = "FILE")]
    pub info: Option<PathBuf>,

    /// Only print an example of the file, to be edited
    #[arg(long)]
    pub print_example: bool,
}

const MORE: &str = "\
Examples:
  rallypoint respond --print-example > info.toml
  rallypoint respond --info info.toml --session 0.0.0.0:45555 \\
      --session [::]:45555
  rallypoint respond --info info.toml --bloodmasters 127.0.0.1:0 \\
      --session 127.0.0.1:0
      at free ports, which it prints

A small file:
  name = \"Bacon Town\"
  map = \"ctf_truefort\"
  max_players = 24
  [[player]]
  name = \"Ada\"
  ping_ms = 35

Signals:
  SIGHUP           reads the file again; with a mistake in it, nothing changes
  SIGTERM, Ctrl-C  ends

Exit codes:
  0  it was told to stop, and did
  1  it could not start; the last line says why and what to do
  2  wrong usage or a mistake in the file, with its line";

impl Args {
    /// Where to answer what: an address that is named for both protocols is one place.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        let both =
            self.bloodmasters.iter().map(|addr| (addr, true)).chain(self.session.iter().map(|addr| (addr, false)));
        for (&addr, bloodmasters) in both {
            // Port 0 is another free port each time.
            let known = places.iter_mut().find(|place| place.addr == addr && addr.port() != 0);
            match known {
                Some(place) => {
                    place.bloodmasters |= bloodmasters;
                    place.session |= !bloodmasters;
                }
                None => places.push(Place { addr, bloodmasters, session: !bloodmasters }),
            }
        }
        places
    }
}

fn addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address and a port, such as 0.0.0.0:45555 or [::]:45555")
}
