//! The flags of `rallypoint host`.

use super::key;
use crate::{announced_lobby::AnnouncedLobby, error::CommandError, list_arg, listen_addr::listen_addr};
use rallypoint_query::list_names;
use rallypoint_room::RoomConfig;
use rallypoint_wire::{lobby::ListId, session};
use std::{net::SocketAddr, path::PathBuf};

/// Host a chat room
///
/// A small server for the session protocol (document 003): users join with `rallypoint join`, choose teams and chat,
/// encrypted. The room answers queries of server browsers and registers with a lobby if --lobby is given. Lines typed here
/// are sent to all; /who, /kick NAME REASON and /quit are commands.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples, files and exit codes: rallypoint host --help")]
pub struct Args {
    /// Name of the room
    #[arg(long, default_value = "A Rallypoint room")]
    pub name: String,

    /// Address to listen on, one per family [default: port 45555 on all addresses]
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    pub listen: Vec<SocketAddr>,

    /// Maximum number of guests
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = crate::number::number::<u8>(1..=255))]
    pub max_players: u8,

    /// Maximum number of guests per IPv4 address or IPv6 /64
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..))]
    pub max_per_address: u8,

    /// Name of a team; can be repeated [default: red and blue]
    #[arg(long = "team", value_name = "NAME", value_parser = team)]
    pub teams: Vec<String>,

    /// Message shown to guests when they join
    #[arg(long, value_name = "TEXT")]
    pub welcome: Option<String>,

    /// Lobby to register with: name or address, with a port if not 29944; can be repeated
    #[arg(long = "lobby", value_name = "HOST[:PORT]")]
    pub lobbies: Vec<AnnouncedLobby>,

    #[arg(help = list_arg::help("List of the lobby", " [default: rooms]"))]
    #[arg(long = "list", value_name = "UUID|NAME", value_parser = list_names::find)]
    list_id: Option<ListId>,

    /// Refuse clients without encryption
    #[arg(long)]
    pub encrypted_only: bool,

    /// Address of the Prometheus metrics (HTTP, /metrics); disabled by default
    #[arg(long, value_name = "ADDR:PORT", value_parser = addr)]
    pub metrics: Option<SocketAddr>,

    /// File with the secret key that identifies this server
    ///
    /// The file is created if it does not exist; its directory must exist.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl Args {
    /// The settings of the room.
    pub fn config(&self) -> Result<RoomConfig, CommandError> {
        Ok(RoomConfig {
            name: self.name.clone(),
            key: key::load_or_generate(self.key_file.as_deref())?,
            listen: self.listen.clone(),
            max_players: self.max_players,
            max_per_address: self.max_per_address,
            teams: if self.teams.is_empty() { vec!["red".into(), "blue".into()] } else { self.teams.clone() },
            welcome: self.welcome.clone(),
            lobbies: AnnouncedLobby::hosts(&self.lobbies),
            list_id: self.list()?,
            encrypted_only: self.encrypted_only,
            metrics: self.metrics,
        })
    }

    /// The list in which the room is to appear.
    pub fn list(&self) -> Result<ListId, CommandError> {
        let rooms = list_names::find(list_names::ROOMS).map_err(CommandError::failed)?;
        AnnouncedLobby::common_list(&self.lobbies, self.list_id, rooms)
    }
}

const MORE: &str = "\
Examples:
  rallypoint host
      a room on this machine; guests run: rallypoint join HOST
  rallypoint host --name \"Bacon Town\" --welcome Hello --lobby lobby.example.org
      listed by a lobby: rallypoint list lobby.example.org/rooms --query
  rallypoint host --team cats --team dogs --team birds --encrypted-only
  rallypoint host --listen 127.0.0.1:0
      on a free port, which is printed
  rallypoint host --metrics 127.0.0.1:29951
      with metrics for Prometheus at http://127.0.0.1:29951/metrics

At the start, each address and the public key are printed:
  session udp 0.0.0.0:45555
  key 8520f009...
With --metrics, their address is printed before the key. Guests that join with
--key verify the identity of the server. All messages of the room follow.

Console:
  /who             list the guests
  /kick NAME WHY   disconnect a guest and ban the network for 10 minutes
  /quit            close the room, like Ctrl-C; the end of the input does not
  other lines      are sent to all

Files:
  $XDG_DATA_HOME/rallypoint/session.key (or under ~/.local/share)
                   the secret key, created at the first start

Signals:
  SIGTERM, Ctrl-C  disconnect all guests, unregister from lobbies and exit

Exit codes:
  0  closed by /quit or a signal
  1  failed to start; the last line states the reason
  2  wrong usage";

fn addr(text: &str) -> Result<SocketAddr, String> {
    listen_addr(text, session::PORT)
}

fn team(text: &str) -> Result<String, &'static str> {
    let fits = !text.is_empty() && text.len() <= 32 && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    if fits { Ok(text.to_owned()) } else { Err("expected a short name without spaces, such as red") }
}
