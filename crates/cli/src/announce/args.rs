//! The flags of `rallypoint announce`.

use super::{list_lookup::EntryMatcher, player_source::PlayerSource};
use crate::{
    announced_lobby::AnnouncedLobby, error::CommandError, list_arg, local_lobby::LocalLobby,
    registration_outcomes as outcomes, scan_args::time, stdio::print_line,
};
use rallypoint_announce::{AnnounceConfig, LobbyHost};
use rallypoint_query::{HttpUrl, list_names};
use rallypoint_wire::lobby::{ListId, Occupancy, ProtocolId, ServerId, Transport};
use std::{num::NonZeroU16, path::PathBuf, time::Duration};

/// Keep a game server in the list of a lobby
///
/// Registers the server over IPv4 and IPv6, repeats that every 30 seconds, and removes the server from the list on Ctrl-C.
/// For games that do not register themselves. It must run on the machine of the game server (or behind the same public
/// address): the lobby lists the address of the sender.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples and exit codes: rallypoint announce --help")]
pub struct Args {
    /// Name of the server in the list
    #[arg(long, value_parser = name)]
    pub name: String,

    /// Port that players connect to
    #[arg(long, value_parser = port)]
    pub port: NonZeroU16,

    /// Transport protocol of that port; a TCP server is listed once the lobby has connected to it
    #[arg(long, value_name = "tcp|udp", default_value = "tcp", value_parser = transport)]
    pub transport: Transport,

    // Not a doc comment, because of the brackets.
    #[arg(long = "lobby", value_name = "HOST[:PORT][/LIST]", env = "RALLYPOINT_LOBBY", value_delimiter = ',')]
    #[arg(
        help = "Lobby: name or address, with a port if not 29944, and a list if --list does not name it; can be repeated [default: the lobby on this machine]",
        long_help = "Lobby: name or address, with a port if not 29944, and a list if --list does not name it; can be repeated [default: the lobby on this machine]\n\nIf a name has several addresses, all of them are used."
    )]
    lobbies: Vec<AnnouncedLobby>,

    #[arg(help = list_arg::help("List of the lobby in which the game searches for servers", " [default: gg2]"))]
    #[arg(long = "list", value_name = "UUID|NAME", value_parser = list_names::find)]
    list_id: Option<ListId>,

    /// Maximum number of players
    #[arg(long, value_name = "N", default_value_t = 0)]
    slots: u16,

    /// Current number of players
    #[arg(long, value_name = "N", default_value_t = 0)]
    players: u16,

    /// Where the current number of players comes from: a command, or the server itself, such as session://127.0.0.1:45555
    ///
    /// The command is run by sh every 15 seconds and prints PLAYERS, PLAYERS/SLOTS or PLAYERS/SLOTS/BOTS, such as 3/24. A
    /// server (PROTOCOL://HOST:PORT) is queried instead.
    #[arg(long, value_name = "COMMAND|SERVER", conflicts_with = "players")]
    pub players_from: Option<PlayerSource>,

    /// Current number of bots
    #[arg(long, value_name = "N", default_value_t = 0)]
    bots: u16,

    /// The server requires a password
    #[arg(long)]
    password: bool,

    /// Name of the game or mod
    #[arg(long)]
    game: Option<String>,

    /// Name of the map
    #[arg(long)]
    map: Option<String>,

    /// Protocol ID, by which clients recognise compatible servers
    #[arg(long, value_name = "UUID", value_parser = protocol_id)]
    protocol_id: Option<ProtocolId>,

    /// Another key; can be repeated
    ///
    /// Known keys are game_short, game_ver and game_url; private keys start with x-. With x-query=PROTOCOL, such as
    /// x-query=session, the lobby queries the server before it lists it; docs/querying.md names the protocols.
    #[arg(long = "key", value_name = "KEY=VALUE", value_parser = key)]
    keys: Vec<(String, Vec<u8>)>,

    /// Another key with a binary value, in hexadecimal digits
    #[arg(long = "key-hex", value_name = "KEY=HEX", value_parser = key_hex)]
    hex_keys: Vec<(String, Vec<u8>)>,

    /// File with the secret ID of the server
    ///
    /// With it, the lobby recognises the server after a restart. The file is created if it does not exist; its
    /// directory must exist.
    #[arg(long, value_name = "FILE")]
    pub id_file: Option<PathBuf>,

    /// Register once, report whether the server is listed, and exit; it stays listed for 70 seconds
    #[arg(long)]
    pub once: bool,

    /// URL of the lobby's web API, which reports why a server is not listed [default: port 29950 of the lobby]
    #[arg(long, value_name = "URL", value_parser = outcomes::parse_api_url)]
    pub api: Option<HttpUrl>,

    /// Interval between checks whether the server is still listed [default: 1m]
    ///
    /// After a restart of the lobby, it can take 30 seconds until the server is listed again.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["no_check", "once"])]
    pub check_every: Option<Duration>,

    /// Do not check whether the server is listed
    #[arg(long)]
    pub no_check: bool,

    /// Print only errors and warnings
    #[arg(long, short)]
    pub quiet: bool,
}

const MORE: &str = "\
Examples:
  rallypoint announce --name \"Bacon Town\" --port 8190
      registers with the lobby on this machine
  rallypoint announce --name \"Bacon Town\" --port 8190 --slots 24 \\
      --lobby lobby.example.org --map ctf_truefort --key game_ver=v2.9.2
  rallypoint announce --name Arena --port 45555 --transport udp \\
      --lobby lobby.example.org/vanguard --key x-query=session
  rallypoint announce --name Arena --port 8190 --slots 24 \\
      --players-from 'ss -Htn state established sport = :8190 | wc -l'
      counts the TCP connections to the game as players

Signals:
  SIGTERM, SIGHUP, Ctrl-C  remove the server from the list and exit
  Under nohup, SIGHUP is ignored.

Environment:
  RALLYPOINT_LOBBY  default of --lobby; several are separated by commas

Exit codes:
  0  announced, and removed from the list at the end; --once: listed
  1  could not be announced, or never appeared in the list; --once: not listed
  2  wrong usage";

/// Maximum length of a name in characters: no list shows more, and lobbies accept 4,096 bytes in all by default.
const MAX_NAME: usize = 200;

/// The keys of document 001.
const KNOWN_KEYS: [&str; 7] = ["name", "game", "game_short", "game_ver", "game_url", "map", "protocol_id"];

impl Args {
    /// Recognises the server in a list.
    pub fn entry_matcher(&self, list_id: ListId) -> EntryMatcher {
        let Self { transport, port, .. } = *self;
        EntryMatcher { list_id, transport, port, name: self.name.clone().into_bytes(), known_at: Vec::new() }
    }

    /// Slots, players and bots as they were given.
    pub fn occupancy(&self) -> Occupancy {
        let Self { slots, players, bots, password, .. } = *self;
        Occupancy { slots, players, bots, password }
    }

    fn lobbies(&self) -> Vec<LobbyHost> {
        if self.lobbies.is_empty() {
            LocalLobby::load().host().parse().into_iter().collect()
        } else {
            AnnouncedLobby::hosts(&self.lobbies)
        }
    }

    /// The server as the arguments describe it.
    pub fn config(&self, id: ServerId) -> Result<AnnounceConfig, CommandError> {
        let length = self.name.chars().count();
        if length > MAX_NAME {
            // Not in the value parser: clap repeats a wrong value in full.
            return Err(CommandError::Usage(format!("the name has {length} characters; the maximum is {MAX_NAME}")));
        }
        if self.slots > 0 && self.players > self.slots {
            return Err(CommandError::Usage(format!(
                "--players {} is more than --slots {}: a server has no more players than slots",
                self.players, self.slots
            )));
        }
        let mut config = AnnounceConfig::new(&self.name, self.port);
        config.transport = self.transport;
        config.list_id = AnnouncedLobby::common_list(&self.lobbies, self.list_id, ListId::GANG_GARRISON_2)?;
        config.lobbies = self.lobbies();
        config.occupancy = self.occupancy();
        config.keys = self.all_keys().map(|(key, value)| (key.to_owned(), value.to_vec())).collect();
        config.server_id = Some(id);
        config.validate()?;
        Ok(config)
    }

    /// Prints a line on standard output, unless `--quiet` is given.
    pub fn print(&self, text: &str) {
        if !self.quiet {
            // A closed standard output is no reason to stop announcing.
            print_line(text);
        }
    }

    /// Keys that no client understands: neither those of document 001 nor private ones.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.all_keys().map(|(key, _)| key).filter(|key| !KNOWN_KEYS.contains(key) && !key.starts_with("x-"))
    }

    /// The protocol by which the lobby queries the server before it lists it, if any.
    pub fn x_query(&self) -> Option<String> {
        let value = self.all_keys().find(|(key, _)| *key == "x-query")?.1;
        Some(rallypoint_wire::text::display(value).into_owned())
    }

    fn all_keys(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let text = [("game", &self.game), ("map", &self.map)];
        let text = text.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?.as_bytes())));
        let id = self.protocol_id.as_ref().map(|id| ("protocol_id", &id.as_bytes()[..]));
        let more = self.keys.iter().chain(&self.hex_keys).map(|(key, value)| (&**key, &**value));
        text.chain(id).chain(more)
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("expected a visible name, such as \"Bacon Town\""),
        name => Ok(name.to_owned()),
    }
}

fn transport(text: &str) -> Result<Transport, &'static str> {
    match text {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        _ => Err("expected tcp or udp"),
    }
}

fn port(text: &str) -> Result<NonZeroU16, &'static str> {
    text.parse().map_err(|_| "expected a port from 1 to 65535")
}

fn protocol_id(text: &str) -> Result<ProtocolId, &'static str> {
    text.parse().map_err(|_| "expected a UUID such as b31c2209-4256-9a19-d0ef-c71c5373bd75")
}

fn key(text: &str) -> Result<(String, Vec<u8>), &'static str> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as map=ctf_truefort")?;
    Ok((key.into(), value.into()))
}

fn key_hex(text: &str) -> Result<(String, Vec<u8>), &'static str> {
    let expected = "expected KEY=HEX, such as x-tag=00ff";
    let (key, hex) = text.split_once('=').ok_or(expected)?;
    let digits: Vec<_> = hex.chars().filter(|c| !matches!(c, '-' | ':' | ' ')).map(|c| c.to_digit(16)).collect();
    let bytes = digits.chunks(2).map(|pair| match pair {
        [Some(high), Some(low)] => Ok((high << 4 | low) as u8),
        _ => Err(expected),
    });
    Ok((key.into(), bytes.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_values_are_hexadecimal() {
        assert_eq!(key_hex("x-tag=00ff"), Ok(("x-tag".into(), vec![0, 255])));
        assert_eq!(key_hex("x-tag=00-FF:7f"), Ok(("x-tag".into(), vec![0, 255, 127])));
        assert_eq!(key_hex("x-tag="), Ok(("x-tag".into(), vec![])));
        for wrong in ["x-tag", "x-tag=0", "x-tag=0g", "x-tag=€€"] {
            assert!(key_hex(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_may_contain_the_sign_between() {
        assert_eq!(key("x-motd=1+1=2"), Ok(("x-motd".into(), b"1+1=2".to_vec())));
    }
}
