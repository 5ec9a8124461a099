//! The flags of `rallypoint respond`.

use super::Listener;
use std::{net::SocketAddr, path::PathBuf};

/// Answer queries on behalf of a game that has no query protocol
///
/// Runs beside the game and answers queries with the contents of a file (name, map, players and so on), in the protocol of
/// Bloodmasters (document 002) or of sessions (document 003). Rate limits prevent its use for amplification attacks. SIGHUP
/// reloads the file. When it is ready, it prints one line per address on standard output.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples, signals and exit codes: rallypoint respond --help")]
pub struct Args {
    /// Address for queries of the Bloodmasters protocol; can be repeated
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    bloodmasters: Vec<SocketAddr>,

    /// Address for queries of the session protocol, which may be the same one; can be repeated
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    session: Vec<SocketAddr>,

    /// File with the answers (TOML); --print-example shows all its keys
    #[arg(long, value_name = "FILE")]
    pub info: Option<PathBuf>,

    /// Print an example of the file and exit
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
      on free ports, which are printed

A small file:
  name = \"Bacon Town\"
  map = \"ctf_truefort\"
  max_players = 24
  [[player]]
  name = \"Ada\"
  ping_ms = 35

Signals:
  SIGHUP           reload the file; if it has errors, the old answers are kept
  SIGTERM, Ctrl-C  exit

Exit codes:
  0  stopped by a signal
  1  failed to start; the last line states the reason
  2  wrong usage, or an error in the file, with its line";

impl Args {
    /// The addresses with their protocols. An address given for both protocols is one listener.
    pub(super) fn listeners(&self) -> Vec<Listener> {
        let mut listeners: Vec<Listener> = Vec::new();
        let both =
            self.bloodmasters.iter().map(|addr| (addr, true)).chain(self.session.iter().map(|addr| (addr, false)));
        for (&addr, bloodmasters) in both {
            // Port 0 selects another free port each time.
            let known = listeners.iter_mut().find(|listener| listener.addr == addr && addr.port() != 0);
            match known {
                Some(listener) => {
                    listener.bloodmasters |= bloodmasters;
                    listener.session |= !bloodmasters;
                }
                None => listeners.push(Listener { addr, bloodmasters, session: !bloodmasters }),
            }
        }
        listeners
    }
}

fn addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address and a port, such as 0.0.0.0:45555 or [::]:45555")
}
