//! The flags of `rallypoint join`.

use rallypoint_query::{ServerAddress, Target, proto::Protocol};
use rallypoint_session::{Encryption, PublicKey};

/// Join a chat room that somebody hosts
///
/// Comes in under a name, shows what is said, and sends what is typed. Everything is encrypted unless --plain is given. If
/// the network or the server goes away for a while, it comes back by itself.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples and exit codes: rallypoint join --help")]
pub struct Args {
    /// The server, with a port if it is not 45555
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    pub server: ServerAddress,

    /// What you are called there [default: the name of your user]
    #[arg(long, short, value_parser = name)]
    pub name: Option<String>,

    /// The server's public key: nobody without the secret one can pose as that server
    ///
    /// `rallypoint host` prints it, and lists of servers show it as x-session-key.
    #[arg(long, value_name = "HEX", value_parser = key)]
    pub key: Option<PublicKey>,

    /// Join a team at once
    #[arg(long, value_name = "NAME")]
    pub team: Option<String>,

    /// Do not encrypt: whoever can read the datagrams can read what is said
    #[arg(long, conflicts_with = "key")]
    pub plain: bool,

    /// End when the connection is lost, and do not try to come back
    #[arg(long)]
    pub no_reconnect: bool,
}

const MORE: &str = "\
Examples:
  rallypoint join play.example.org
  rallypoint join play.example.org:45555 --name alice --team red
  rallypoint join play.example.org --key \"$(cat server.pub)\"
      only if it is the server with that key: the public one, as host prints it;
      the file session.key of a host is secret, and nobody else's business
  echo \"the build is green\" | rallypoint join play.example.org --name bot
      says one line and leaves
  echo /who | rallypoint join play.example.org --name bot
      shows the answer and leaves

What is piped in is said as fast as a room listens: four lines at once, and
then two per second.

Typed there:
  /me waves     does something
  /who          who is here
  /team NAME    joins a team, /t TEXT says something to the team only
  /help         what the server understands
  /stats        how the connection is doing
  /quit         leaves; so do Ctrl-D and Ctrl-C

Lines that begin with -- are not what somebody said, but what happened.

Exit codes:
  0  you left, and everything has arrived; what was piped in was heard, too
  1  there was no way in, the server ended it, something has not arrived, or a
     line from a pipe was not heard; the last line says why
  2  wrong usage";

impl Args {
    pub fn encryption(&self) -> Encryption {
        match self.key {
            _ if self.plain => Encryption::Plain,
            Some(key) => Encryption::Pinned(key),
            None => Encryption::Encrypted,
        }
    }
}

fn server(text: &str) -> Result<ServerAddress, String> {
    match text.parse::<Target>().map_err(|error| error.to_string())? {
        Target::Server(server) if server.protocol != Some(Protocol::Bloodmasters) => Ok(server),
        _ => Err("expected a server such as play.example.org or 203.0.113.1:45555".into()),
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    let fits = !text.trim().is_empty() && text.len() <= 127 && !text.contains(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err("expected a name of at most 127 bytes without control characters") }
}

fn key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|error| format!("{error}, as rallypoint host prints it"))
}
