//! The flags of `rallypoint join`.

use rallypoint_query::{ServerAddress, Target, proto::Protocol};
use rallypoint_session::PublicKey;

/// Join a chat room
///
/// Shows the messages of the room and sends the lines of standard input. The connection is encrypted unless --plain is
/// given, and is restored after an outage of the network or a restart of the server.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples and exit codes: rallypoint join --help")]
pub struct Args {
    /// Server, with a port if not 45555
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    pub server: ServerAddress,

    /// Your name in the room [default: the name of the user]
    #[arg(long, short, value_parser = name)]
    pub name: Option<String>,

    /// Public key of the server, which verifies its identity
    ///
    /// `rallypoint host` prints it, and server lists contain it as x-session-key; the page of a server shows whether
    /// the lobby has verified it. A key with which a server was joined is remembered and used the next time.
    #[arg(long, value_name = "HEX", value_parser = key)]
    pub key: Option<PublicKey>,

    /// Team to join
    #[arg(long, value_name = "NAME")]
    pub team: Option<String>,

    /// Do not encrypt: anyone on the network path can read the messages
    #[arg(long, conflicts_with = "key")]
    pub plain: bool,

    /// Exit when the connection is lost, instead of reconnecting
    #[arg(long)]
    pub no_reconnect: bool,
}

const MORE: &str = "\
Examples:
  rallypoint join play.example.org
  rallypoint join play.example.org:45555 --name alice --team red
  rallypoint join play.example.org --key \"$(cat server.pub)\"
      verifies the server by its public key, as printed by host (not the file
      session.key, which is secret)
  echo \"the build is green\" | rallypoint join play.example.org --name bot
      sends one line and leaves
  echo /who | rallypoint join play.example.org --name bot
      prints the answer and leaves

A key that was given with --key is remembered in
$XDG_DATA_HOME/rallypoint/known_servers (or under ~/.local/share). A server that
no longer has its key is not joined.

Piped lines are sent at the rate that a room accepts: four lines at once, and
then two per second.

Commands in the room:
  /me ACTION    show an action, such as /me waves
  /who          list the guests
  /team NAME    join a team; /t TEXT sends a line to the team only
  /help         list the commands of the server
  /stats        show round-trip time, loss and traffic of the connection
  /quit         leave, like Ctrl-D and Ctrl-C

Lines that start with -- are messages of the room or of this program.

Exit codes:
  0  left, and all lines were delivered and accepted
  1  could not join, the server closed the connection, or a line was not
     delivered or accepted; the last line states the reason
  2  wrong usage";

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
