//! The flags of `rallypoint respond`.

use super::Listener;
use rallypoint_query_proto::{Protocol, Responder};
use std::{net::SocketAddr, path::PathBuf};

/// Answer queries on behalf of a game that has no query protocol
///
/// Runs beside the game and answers queries with the contents of a file (name, map, players and so on), in the protocols that
/// have an option with their name. Rate limits prevent its use for amplification attacks. SIGHUP
/// reloads the file. When it is ready, it prints one line per address on standard output.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples, signals and exit codes: rallypoint respond --help")]
pub struct Args {
    #[command(flatten)]
    listen: ListenArgs,

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
    /// The addresses with their protocols. An address given for several protocols is one listener.
    pub(super) fn listeners(&self) -> Vec<Listener> {
        let mut listeners: Vec<Listener> = Vec::new();
        for &(protocol, addr) in &self.listen.0 {
            // Port 0 selects another free port each time.
            match listeners.iter_mut().find(|listener| listener.addr == addr && addr.port() != 0) {
                Some(listener) if listener.protocols.contains(&protocol) => {}
                Some(listener) => listener.protocols.push(protocol),
                None => listeners.push(Listener { addr, protocols: vec![protocol] }),
            }
        }
        listeners
    }
}

/// Addresses to answer queries at: one option for each protocol that has a responder.
struct ListenArgs(Vec<(Protocol, SocketAddr)>);

impl clap::Args for ListenArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        Responder::protocols().fold(command, |command, protocol| {
            let name = protocol.as_str();
            let help =
                format!("Address for queries of the {name} protocol, also one of another protocol; can be repeated");
            let arg = clap::Arg::new(name).long(name).value_name("ADDR:PORT").value_parser(addr);
            command.arg(arg.action(clap::ArgAction::Append).help(help))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for ListenArgs {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let addrs = |protocol: Protocol| matches.get_many::<SocketAddr>(protocol.as_str()).into_iter().flatten();
        let all = Responder::protocols().flat_map(|protocol| addrs(protocol).map(move |addr| (protocol, *addr)));
        Ok(Self(all.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address and a port, such as 0.0.0.0:45555 or [::]:45555")
}
