//! The flags of `rallypoint host`.

use rallypoint_announce::LobbyHost;
use rallypoint_query::lobby_names;
use rallypoint_wire::lobby::LobbyId;
use std::{net::SocketAddr, path::PathBuf};

/// Open a chat room that others can join
///
/// A small server of the session protocol (document 003), ready to be used: people come in with `rallypoint join`, choose
/// teams and talk, encrypted. It answers queries, so that server browsers show who is there, and puts itself into the list
/// of a lobby if asked to. What is typed here is said to all; /who and /kick NAME REASON work, too.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples, files and exit codes: rallypoint host --help")]
pub struct Args {
    /// What the room is called
    #[arg(long, default_value = "A Rallypoint room")]
    pub name: String,

    /// Where to listen, once for IPv4 and once for IPv6; by default at port 45555 of all addresses
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    pub listen: Vec<SocketAddr>,

    /// How many people fit in
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = crate::number::number::<u8>(1..=255))]
    pub max_players: u8,

    /// How many of them can come from one address (or one IPv6 /64)
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..))]
    pub max_per_address: u8,

    /// A team that people can choose; can be repeated [default: red and blue]
    #[arg(long = "team", value_name = "NAME", value_parser = team)]
    pub teams: Vec<String>,

    /// What newcomers are told
    #[arg(long, value_name = "TEXT")]
    pub welcome: Option<String>,

    /// A lobby to be listed in: a name or an address, with a port if it is not 29944; can be repeated
    #[arg(long = "lobby", value_name = "HOST[:PORT]")]
    pub lobbies: Vec<LobbyHost>,

    /// Which of its lists: a UUID, or gg2, pygg2, vanguard, rooms, bloodmasters
    #[arg(long, value_name = "UUID|NAME", default_value = "rooms", value_parser = lobby_names::find)]
    pub lobby_id: LobbyId,

    /// Let nobody in who does not encrypt
    #[arg(long)]
    pub encrypted_only: bool,

    /// Where Prometheus can have its numbers, at /metrics; nowhere by default
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    pub metrics: Option<SocketAddr>,

    /// Where the secret key is kept by which people recognise this server
    ///
    /// The file is made if it is not there; its folder has to be there.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

const MORE: &str = "\
Examples:
  rallypoint host
      a room on this machine; others: rallypoint join HOST
  rallypoint host --name \"Bacon Town\" --welcome Hello --lobby lobby.example.org
      in a lobby; found with: rallypoint list lobby.example.org/rooms --query
  rallypoint host --team cats --team dogs --team birds --encrypted-only
  rallypoint host --listen 127.0.0.1:0
      at a free port, which it prints
  rallypoint host --metrics 127.0.0.1:29951
      with numbers for Prometheus at http://127.0.0.1:29951/metrics

On standard output it prints a line for each address, and its public key:
  session udp 0.0.0.0:45555
  key 8520f009...
(and with --metrics, before the key, where these are)
Whoever joins with --key and that key cannot be deceived about who it is. Then
all that is said follows.

Typed here:
  /who             who is here
  /kick NAME WHY   sends somebody away; for 10 minutes nobody gets in from there
  /quit            ends the server; so does Ctrl-C, but not the end of the input
  anything else    is said to all

Files:
  $XDG_DATA_HOME/rallypoint/session.key (or under ~/.local/share)
                   the secret key, made at the first start, for its owner only

Signals:
  SIGTERM, Ctrl-C  says goodbye to all, takes the room off the list, and ends

Exit codes:
  0  it was told to stop, and did
  1  it could not start; the last line says why and what to do
  2  wrong usage";

fn addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address and a port, such as 0.0.0.0:45555 or [::]:45555")
}

fn team(text: &str) -> Result<String, &'static str> {
    let fits = !text.is_empty() && text.len() <= 32 && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    if fits { Ok(text.to_owned()) } else { Err("expected a short name without spaces, such as red") }
}
