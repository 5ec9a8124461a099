//! The flags of `rallypoint announce`.

use crate::{error::CommandError, registration_outcomes as outcomes, scan_args::time};
use rallypoint_announce::{AnnounceConfig, LobbyHost};
use rallypoint_query::{HttpUrl, lobby_names};
use rallypoint_wire::lobby::{LobbyId, Occupancy, ProtocolId, ServerId, Transport};
use std::{
    io::{self, Write},
    num::NonZeroU16,
    path::PathBuf,
    time::Duration,
};

/// Keep a game server in the list of a lobby
///
/// Registers the server with the lobby, refreshes that every 30 seconds over IPv4 and IPv6, and takes it off the list on
/// Ctrl-C. For games that do not register themselves. It has to run on the machine of the game server (or behind the same
/// address): the lobby takes the address from the sender.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples and exit codes: rallypoint announce --help")]
pub struct Args {
    /// What the server is called in the list
    #[arg(long, value_parser = name)]
    pub name: String,

    /// The port that players connect to
    #[arg(long, value_parser = port)]
    pub port: NonZeroU16,

    /// How players connect; a TCP server is listed once the lobby could connect to it
    #[arg(long, value_name = "tcp|udp", default_value = "tcp", value_parser = transport)]
    pub transport: Transport,

    /// The lobby: a name or an address, with a port if it is not 29944; can be repeated
    ///
    /// A name with several addresses stands for all of them.
    #[arg(
        long = "lobby",
        value_name = "HOST[:PORT]",
        env = "RALLYPOINT_LOBBY",
        value_delimiter = ',',
        default_value = "localhost"
    )]
    pub lobbies: Vec<LobbyHost>,

    /// Which of its lists: a UUID, or gg2, pygg2, vanguard, rooms, bloodmasters
    #[arg(long, value_name = "UUID|NAME", default_value = "gg2", value_parser = lobby_names::find)]
    pub lobby_id: LobbyId,

    /// How many can play
    #[arg(long, value_name = "N", default_value_t = 0)]
    slots: u16,

    /// How many play
    #[arg(long, value_name = "N", default_value_t = 0)]
    players: u16,

    /// How many bots play
    #[arg(long, value_name = "N", default_value_t = 0)]
    bots: u16,

    /// A password is needed
    #[arg(long)]
    password: bool,

    /// The game or mod
    #[arg(long)]
    game: Option<String>,

    /// The map
    #[arg(long)]
    map: Option<String>,

    /// What clients compare to know whether they can join
    #[arg(long, value_name = "UUID", value_parser = protocol_id)]
    protocol_id: Option<ProtocolId>,

    /// Any other key; can be repeated
    ///
    /// Known keys are game_short, game_ver and game_url; keys of your own begin with x-. With x-query=session or
    /// x-query=bloodmasters the lobby queries the server.
    #[arg(long = "key", value_name = "KEY=VALUE", value_parser = key)]
    keys: Vec<(String, Vec<u8>)>,

    /// Any other key with a binary value, in hexadecimal digits
    #[arg(long = "key-hex", value_name = "KEY=HEX", value_parser = key_hex)]
    hex_keys: Vec<(String, Vec<u8>)>,

    /// Where the server's secret ID is kept
    ///
    /// With it the server stays the same server for the lobby after a restart. The file is made if it is not
    /// there; its folder has to be there.
    #[arg(long, value_name = "FILE")]
    pub id_file: Option<PathBuf>,

    /// Register once, say whether the server is listed, and end; without a refresh it is listed for 70 seconds
    #[arg(long)]
    pub once: bool,

    /// Where the lobby's web API is, which says why a server is not listed, if not at its port 29950: http://host:port
    #[arg(long, value_name = "URL", value_parser = outcomes::api)]
    pub api: Option<HttpUrl>,

    /// How often to ask the lobby whether the server is still listed; every minute without this
    ///
    /// A lobby that was started again knows the server only after up to 30 seconds.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["no_check", "once"])]
    pub check_every: Option<Duration>,

    /// Do not ask the lobby whether the server is listed
    #[arg(long)]
    pub no_check: bool,

    /// Tell only what goes wrong
    #[arg(long, short)]
    pub quiet: bool,
}

const MORE: &str = "\
Examples:
  rallypoint announce --name \"Bacon Town\" --port 8190
      to the lobby on this machine
  rallypoint announce --name \"Bacon Town\" --port 8190 --slots 24 \\
      --lobby lobby.example.org --map ctf_truefort --key game_ver=v2.9.2
  rallypoint announce --name Arena --port 45555 --transport udp \\
      --lobby lobby.example.org --lobby-id vanguard --key x-query=session

Signals:
  SIGTERM, SIGHUP, Ctrl-C  takes the server off the list, and ends
  Under nohup it goes on without its terminal.

Environment:
  RALLYPOINT_LOBBY  the lobby, if there is no --lobby; several with commas

Exit codes:
  0  it was announced, and taken off the list at the end; --once: it is listed
  1  it could not be announced, or was never seen in the list; --once: it is
     not listed
  2  wrong usage";

/// Maximum length of a name in characters: no list shows more, and lobbies accept 4,096 bytes in all by default.
const MAX_NAME: usize = 200;

/// The keys of document 001.
const KNOWN_KEYS: [&str; 7] = ["name", "game", "game_short", "game_ver", "game_url", "map", "protocol_id"];

impl Args {
    /// The server as the arguments describe it.
    pub fn config(&self, id: ServerId) -> Result<AnnounceConfig, CommandError> {
        let length = self.name.chars().count();
        if length > MAX_NAME {
            // Not in the value parser: clap repeats a wrong value in full.
            return Err(CommandError::Usage(format!("the name has {length} characters; the maximum is {MAX_NAME}")));
        }
        let Self { slots, players, bots, password, .. } = *self;
        let mut config = AnnounceConfig::new(&self.name, self.port);
        config.transport = self.transport;
        config.lobby_id = self.lobby_id;
        config.lobbies.clone_from(&self.lobbies);
        config.occupancy = Occupancy { slots, players, bots, password };
        config.keys = self.all_keys().map(|(key, value)| (key.to_owned(), value.to_vec())).collect();
        config.server_id = Some(id);
        config.validate()?;
        Ok(config)
    }

    /// Prints a line on standard output, unless `--quiet` is given.
    pub fn print(&self, text: &str) {
        if !self.quiet {
            // A closed standard output is no reason to stop announcing.
            let _ = writeln!(io::stdout(), "{text}");
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
        "" => Err("a server needs a name that can be seen, such as \"Bacon Town\""),
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
