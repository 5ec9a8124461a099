//! The queries of Cube 2: Sauerbraten, and of AssaultCube, which comes from its predecessor: the description of a server, and
//! extended ones: for how long it runs, its players, the scores of its teams.
//!
//! Integers and texts are compressed. A server repeats the whole query, with all bytes that it does not read, and appends:
//!
//! ```text
//! client   81 TOKEN(4)                                    any integer but 0
//!          00 00 01 TOKEN(7)                              for how long; the 01 requests the server's modification, too
//!          00 01 ff TOKEN(7)                              all players
//!          00 02 TOKEN(7)                                 scores of the teams
//! server   ... clients attributes protocol mode seconds maximum master-mode [paused speed]  map name
//!          ... -1 version seconds [modification]
//!          ... -1 version 0 -10 number...                 the players that follow, one datagram each:
//!          ... -1 version 0 -11 number ping name team frags flags deaths teamkills accuracy health armour gun privilege
//!              state IP(3 bytes)
//!          ... -1 version no-teams mode seconds [name score count base...]...
//! integer  one byte, signed; 80: two bytes follow; 81: four; little-endian
//! text     an integer for each character, 0 at the end
//! ```
//!
//! AssaultCube reads another integer after the first one of the short query, and replies to it with
//! `protocol mode clients minutes map name maximum flags 0`; its teams have `name frags flags -1`.
//!
//! ```
//! use rallypoint_wire::query::cube2::{Body, Flavour, Query, Response, Token};
//!
//! let mut query = Vec::new();
//! Query::Info.emit(Flavour::Sauerbraten, Token([0xa1, 0xb2, 0xc3, 0xd4, 0, 0, 0]), &mut query);
//! assert_eq!(query, b"\x81\xa1\xb2\xc3\xd4");
//!
//! let reply = [&query, &b"\0\x05\x80\x04\x01\0\0\x08\0\0Town\0"[..]].concat();
//! let response = Response::parse(Flavour::Sauerbraten, &reply)?;
//! let Body::Info(info) = response.body else { panic!("not the reply") };
//! assert_eq!((response.token, info.name.to_string(), info.max_clients), (&query[1..], "Town".into(), 8));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

mod encoding;

pub use encoding::{Charset, Text};

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;
use encoding::{integer, text};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "cube2";

/// Name of the query protocol for people.
pub const TITLE: &str = "Cube 2: Sauerbraten";

/// Default UDP port for queries: the one after that of the game.
pub const PORT: u16 = 28_786;

/// Longest datagram in bytes (`MAXTRANS` of the engine).
pub const MAX_DATAGRAM: usize = 5_000;

/// Which of the games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Cube 2: Sauerbraten.
    Sauerbraten,
    /// AssaultCube.
    AssaultCube,
}

/// A value that a reply repeats; the short query has room for four bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub [u8; 7]);

/// What a query requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The description of the server.
    Info,
    /// For how long it has been running.
    Uptime,
    /// The players.
    Players,
    /// The scores of the teams.
    Teams,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The bytes of the token that the query had: four or seven.
    pub token: &'a [u8],
    /// What it says.
    pub body: Body<'a>,
}

/// The contents of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The description of the server.
    Info(Info<'a>),
    /// For how long it has been running.
    Uptime {
        /// Seconds since the server was started.
        seconds: i32,
        /// Number of the server's modification, a negative one, if it has one and says so.
        modification: Option<i32>,
    },
    /// The number of players, each of which has a datagram of its own.
    PlayerCount(u16),
    /// A player.
    Player(Player<'a>),
    /// The scores of the teams.
    Teams(Teams<'a>),
}

/// The description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// Number of clients, including those that only watch.
    pub clients: u16,
    /// Maximum number of clients.
    pub max_clients: u16,
    /// Version of the protocol.
    pub protocol: i32,
    /// Number of the game mode.
    pub mode: i32,
    /// Time until the end of the game: in seconds, or in minutes in AssaultCube.
    pub time_left: i32,
    /// Who may join: -1 to 4; from 0 in AssaultCube.
    pub master_mode: i32,
    /// Whether a password is required.
    pub has_password: bool,
    /// Whether the game is paused, and its speed in percent, if they are not the usual ones.
    pub pace: Option<(bool, i32)>,
    /// Name of the map.
    pub map: Text<'a>,
    /// Name of the server.
    pub name: Text<'a>,
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player<'a> {
    /// Number of the client.
    pub client: i32,
    /// Round-trip time in milliseconds.
    pub ping: i32,
    /// Name of the player.
    pub name: Text<'a>,
    /// Name of the player's team, which modes without teams have, too.
    pub team: Text<'a>,
    /// Points for opponents.
    pub frags: i32,
    /// Points for flags.
    pub flags: i32,
    /// Number of deaths.
    pub deaths: i32,
    /// Number of members of the own team that the player hit fatally.
    pub team_kills: i32,
    /// Hits in percent of shots.
    pub accuracy: i32,
    /// Rank of the player: 0 to 3.
    pub privilege: i32,
    /// Alive, dead, spawning, lagged, editing, spectator: 0 to 5.
    pub state: i32,
}

/// The scores of the teams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teams<'a> {
    /// Whether the game mode has teams.
    pub has_teams: bool,
    /// Number of the game mode.
    pub mode: i32,
    flavour: Flavour,
    teams: &'a [u8],
}

/// The score of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamScore<'a> {
    /// Name of the team.
    pub name: Text<'a>,
    /// Points.
    pub score: i32,
}

/// Marker of a long integer, which the token of a short query is.
const LONG_INTEGER: u8 = 0x81;

const UPTIME: u8 = 0;
const PLAYERS: u8 = 1;
const TEAMS: u8 = 2;

impl Query {
    /// Appends the datagram. The first four bytes of the token must not be zero.
    pub fn emit(self, flavour: Flavour, token: Token, out: &mut Vec<u8>) {
        match (self, flavour) {
            (Self::Info, _) => {
                out.push(LONG_INTEGER);
                out.extend_from_slice(&token.0[..4]);
                if flavour == Flavour::AssaultCube {
                    out.push(0);
                }
                return;
            }
            (Self::Uptime, _) => out.extend_from_slice(&[0, UPTIME, 1]),
            (Self::Players, _) => out.extend_from_slice(&[0, PLAYERS, 0xff]),
            (Self::Teams, _) => out.extend_from_slice(&[0, TEAMS]),
        }
        out.extend_from_slice(&token.0);
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server: the query as [`Query::emit`] writes it, and the reply.
    ///
    /// # Errors
    /// If it is none of these. A list of teams that is cut off is not an error: see [`Teams::iter`].
    pub fn parse(flavour: Flavour, datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        if datagram.is_empty() {
            return error("datagram", DecodeErrorKind::Empty);
        }
        let mut reader = Reader::new(datagram);
        match reader.u8("query")? {
            LONG_INTEGER => {
                let token = reader.bytes(4, "token")?;
                let info = match flavour {
                    Flavour::Sauerbraten => Info::parse(&mut reader, flavour)?,
                    Flavour::AssaultCube => {
                        reader.u8("query")?;
                        Info::parse_assault_cube(&mut reader, flavour)?
                    }
                };
                return Ok(Self { token, body: Body::Info(info) });
            }
            0 => {}
            _ => return error("query", DecodeErrorKind::Mismatch),
        }
        let command = reader.u8("command")?;
        if command < TEAMS {
            reader.u8("argument")?;
        }
        let token = reader.bytes(7, "token")?;
        if integer(&mut reader, "confirmation")? != -1 {
            return error("confirmation", DecodeErrorKind::Mismatch);
        }
        integer(&mut reader, "version")?;
        let body = match command {
            UPTIME => {
                let seconds = integer(&mut reader, "uptime")?;
                let modification = if reader.is_empty() { None } else { Some(integer(&mut reader, "modification")?) };
                Body::Uptime { seconds, modification }
            }
            PLAYERS => parse_players(&mut reader, flavour)?,
            TEAMS => {
                let has_teams = integer(&mut reader, "teams")? == 0;
                let mode = integer(&mut reader, "mode")?;
                integer(&mut reader, "time left")?;
                Body::Teams(Teams { has_teams, mode, flavour, teams: reader.take_rest() })
            }
            _ => return error("command", DecodeErrorKind::Unknown),
        };
        Ok(Self { token, body })
    }
}

fn parse_players<'a>(reader: &mut Reader<'a>, flavour: Flavour) -> Result<Body<'a>, DecodeError> {
    if integer(reader, "error")? != 0 {
        return Err(DecodeError::new("error", DecodeErrorKind::Invalid));
    }
    match integer(reader, "kind")? {
        -10 => {
            let mut count = 0_u16;
            while !reader.is_empty() {
                integer(reader, "player")?;
                count = count.saturating_add(1);
            }
            Ok(Body::PlayerCount(count))
        }
        -11 => Player::parse(reader, flavour).map(Body::Player),
        _ => Err(DecodeError::new("kind", DecodeErrorKind::Unknown)),
    }
}

/// Master mode of a server that requires a password.
const PASSWORD_MODE: i32 = 4;

impl<'a> Info<'a> {
    fn parse(reader: &mut Reader<'a>, flavour: Flavour) -> Result<Self, DecodeError> {
        let clients = count(reader, "clients")?;
        let attributes = integer(reader, "attributes")?;
        if !(5..=MAX_ATTRIBUTES).contains(&attributes) {
            return Err(DecodeError::new("attributes", DecodeErrorKind::Invalid));
        }
        let protocol = integer(reader, "protocol")?;
        let mode = integer(reader, "mode")?;
        let time_left = integer(reader, "time left")?;
        let max_clients = count(reader, "maximum of clients")?;
        let master_mode = integer(reader, "master mode")?;
        let mut pace = None;
        if attributes >= 7 {
            pace = Some((integer(reader, "paused")? != 0, integer(reader, "speed")?));
        }
        for _ in if pace.is_some() { 7 } else { 5 }..attributes {
            integer(reader, "attribute")?;
        }
        Ok(Self {
            clients,
            max_clients,
            protocol,
            mode,
            time_left,
            master_mode,
            has_password: master_mode == PASSWORD_MODE,
            pace,
            map: text(reader, flavour, "map")?,
            name: text(reader, flavour, "name")?,
        })
    }

    fn parse_assault_cube(reader: &mut Reader<'a>, flavour: Flavour) -> Result<Self, DecodeError> {
        let protocol = integer(reader, "protocol")?;
        let mode = integer(reader, "mode")?;
        let clients = count(reader, "clients")?;
        let time_left = integer(reader, "time left")?;
        let map = text(reader, flavour, "map")?;
        let name = text(reader, flavour, "name")?;
        let max_clients = count(reader, "maximum of clients")?;
        let flags = integer(reader, "flags")?;
        // A confirmation of the query's second integer.
        integer(reader, "query")?;
        Ok(Self {
            clients,
            max_clients,
            protocol,
            mode,
            time_left,
            master_mode: flags >> 6 & 3,
            has_password: flags & 1 != 0,
            pace: None,
            map,
            name,
        })
    }
}

/// Maximum number of attributes: later versions may have more than the seven of today.
const MAX_ATTRIBUTES: i32 = 32;

impl<'a> Player<'a> {
    fn parse(reader: &mut Reader<'a>, flavour: Flavour) -> Result<Self, DecodeError> {
        let client = integer(reader, "player")?;
        let ping = integer(reader, "ping")?;
        let name = text(reader, flavour, "player")?;
        let team = text(reader, flavour, "team")?;
        let mut numbers = [0; 10];
        for number in &mut numbers {
            *number = integer(reader, "statistics")?;
        }
        let [frags, flags, deaths, team_kills, accuracy, _health, _armour, _gun, privilege, state] = numbers;
        // The rest is a part of the player's address, which is not shown.
        Ok(Self { client, ping, name, team, frags, flags, deaths, team_kills, accuracy, privilege, state })
    }
}

impl<'a> Teams<'a> {
    /// The teams. An error takes the place of one that is cut off, and is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<TeamScore<'a>, DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.teams);
        let flavour = self.flavour;
        core::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let team = TeamScore::parse(&mut reader, flavour);
            if team.is_err() {
                reader.take_rest();
            }
            Some(team)
        })
    }
}

impl<'a> TeamScore<'a> {
    fn parse(reader: &mut Reader<'a>, flavour: Flavour) -> Result<Self, DecodeError> {
        let name = text(reader, flavour, "team")?;
        let score = integer(reader, "score")?;
        let extra = integer(reader, "bases")?;
        match flavour {
            Flavour::Sauerbraten => {
                for _ in 0..extra {
                    integer(reader, "base")?;
                }
                Ok(Self { name, score })
            }
            Flavour::AssaultCube => {
                integer(reader, "bases")?;
                // The points for flags, in modes with flags.
                Ok(Self { name, score: if extra >= 0 { extra } else { score } })
            }
        }
    }
}

fn count(reader: &mut Reader<'_>, field: &'static str) -> Result<u16, DecodeError> {
    integer(reader, field)?.try_into().map_err(|_| DecodeError::new(field, DecodeErrorKind::Invalid))
}

#[cfg(test)]
mod tests;
