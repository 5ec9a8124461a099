//! The queries of San Andreas Multiplayer, which open.mp has, too.
//!
//! A query names the server's address and has an opcode; a reply begins with the whole query. Numbers are little-endian:
//!
//! ```text
//! client   "SAMP" IPv4(4) port(2) opcode
//! server   ... 'i' password(1) players(2) maximum(2) LONG name, LONG mode, LONG language
//!          ... 'r' count(2) [SHORT name, SHORT value]...
//!          ... 'c' count(2) [SHORT name, score(4)]...
//!          ... 'd' count(2) [id(1), SHORT name, score(4), ping(4)]...
//!          ... 'o' LONG discord, LONG light banner, LONG dark banner, LONG logo      open.mp only
//!          ... 'p' TOKEN(4)                                                          the query has it, too
//! SHORT    length(1) text
//! LONG     length(4) text
//! ```
//!
//! Servers with more than 100 players answer neither `c` nor `d`; open.mp never answers `d`. Before version 0.3.7 the language
//! is the map.
//!
//! ```
//! use rallypoint_wire::query::samp::{Opcode, Query, Response};
//!
//! let mut query = Vec::new();
//! Query { opcode: Opcode::Info, token: [0; 4] }.emit(&mut query);
//! Query::insert_address(&mut query, "192.0.2.1:7777".parse()?);
//! assert_eq!(query, b"SAMP\xc0\0\x02\x01\x61\x1ei");
//!
//! let reply = [&query[..], b"\x01\x02\0\x32\0\x04\0\0\0Town\x02\0\0\0DM\0\0\0\0"].concat();
//! let Response::Info(info) = Response::parse(&reply)? else { panic!("not the reply") };
//! assert_eq!((info.name, info.players, info.has_password), (&b"Town"[..], 2, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "samp";

/// Name of the query protocol for people.
pub const TITLE: &str = "San Andreas Multiplayer and open.mp";

/// Default UDP port of a server.
pub const PORT: u16 = 7_777;

/// Longest reply in bytes: 100 players with names of 24 characters fit, and so do 60 rules of ordinary length.
pub const MAX_DATAGRAM: usize = 16_384;

const MAGIC: &[u8] = b"SAMP";

/// Where the server's address is in a query.
const ADDRESS: core::ops::Range<usize> = 4..10;

/// What a query requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// The description of the server.
    Info,
    /// Its rules.
    Rules,
    /// Names and scores of the players.
    Clients,
    /// Names, scores and round-trip times of the players.
    Details,
    /// What only open.mp has.
    Extra,
    /// The token that the query has.
    Ping,
}

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// What it requests.
    pub opcode: Opcode,
    /// A value that the reply repeats, of [`Opcode::Ping`] only.
    pub token: [u8; 4],
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// To [`Opcode::Info`].
    Info(Info<'a>),
    /// To [`Opcode::Rules`].
    Rules(Rules<'a>),
    /// To [`Opcode::Clients`] and [`Opcode::Details`].
    Players(Players<'a>),
    /// To [`Opcode::Extra`].
    Extra(Extra<'a>),
    /// To [`Opcode::Ping`], with its token.
    Ping([u8; 4]),
}

/// The description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// Whether a password is required.
    pub has_password: bool,
    /// Number of players.
    pub players: u16,
    /// Maximum number of players.
    pub max_players: u16,
    /// Name of the server.
    pub name: &'a [u8],
    /// Game mode.
    pub mode: &'a [u8],
    /// Language of the server; its map before version 0.3.7.
    pub language: &'a [u8],
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules<'a> {
    count: u16,
    rules: &'a [u8],
}

/// The list of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Players<'a> {
    /// Whether the list has round-trip times.
    pub is_detailed: bool,
    /// Number of players in the list.
    pub count: u16,
    players: &'a [u8],
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player<'a> {
    /// Number of the player, of a detailed list only.
    pub id: Option<u8>,
    /// Name of the player.
    pub name: &'a [u8],
    /// Points.
    pub score: i32,
    /// Round-trip time in milliseconds, of a detailed list only.
    pub ping: Option<i32>,
}

/// What only open.mp has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra<'a> {
    /// Link to a Discord server.
    pub discord: &'a [u8],
    /// Link to a banner for light backgrounds.
    pub light_banner: &'a [u8],
    /// Link to a banner for dark backgrounds.
    pub dark_banner: &'a [u8],
    /// Link to a logo.
    pub logo: &'a [u8],
}

impl Opcode {
    const fn byte(self) -> u8 {
        match self {
            Self::Info => b'i',
            Self::Rules => b'r',
            Self::Clients => b'c',
            Self::Details => b'd',
            Self::Extra => b'o',
            Self::Ping => b'p',
        }
    }
}

impl Query {
    /// Appends the datagram, with an address of zeros.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[0; ADDRESS.end - ADDRESS.start]);
        out.push(self.opcode.byte());
        if self.opcode == Opcode::Ping {
            out.extend_from_slice(&self.token);
        }
    }

    /// Writes the server's address into a datagram. Some firewalls of servers drop queries with another one. There is no room
    /// for IPv6, which the game does not support.
    pub fn insert_address(datagram: &mut [u8], server: SocketAddr) {
        if let (SocketAddr::V4(server), Some(field)) = (server, datagram.get_mut(ADDRESS)) {
            field[..4].copy_from_slice(&server.ip().octets());
            field[4..].copy_from_slice(&server.port().to_le_bytes());
        }
    }

    /// Whether a datagram is a query, or the beginning of one.
    #[must_use]
    pub fn is_query(datagram: &[u8]) -> bool {
        datagram.len() <= ADDRESS.end + 5 && datagram.starts_with(MAGIC)
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these. A list that is cut off is not an error: see [`Rules::iter`] and [`Players::iter`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        if reader.bytes(MAGIC.len(), "magic")? != MAGIC {
            return Err(DecodeError::new("magic", DecodeErrorKind::Mismatch));
        }
        reader.bytes(ADDRESS.end - ADDRESS.start, "address")?;
        let opcode = reader.u8("opcode")?;
        if opcode == b'p' {
            let token = *reader.array("token")?;
            reader.finish("ping")?;
            return Ok(Self::Ping(token));
        }
        Ok(match opcode {
            b'i' => {
                let info = Info {
                    has_password: reader.u8("password")? != 0,
                    players: reader.u16_le("players")?,
                    max_players: reader.u16_le("maximum of players")?,
                    name: long(&mut reader, "name")?,
                    mode: long(&mut reader, "mode")?,
                    language: long(&mut reader, "language")?,
                };
                Self::Info(info)
            }
            b'r' => Self::Rules(Rules { count: reader.u16_le("number of rules")?, rules: reader.take_rest() }),
            b'c' | b'd' => {
                let is_detailed = opcode == b'd';
                let count = reader.u16_le("number of players")?;
                Self::Players(Players { is_detailed, count, players: reader.take_rest() })
            }
            b'o' => {
                let extra = Extra {
                    discord: long(&mut reader, "discord")?,
                    light_banner: long(&mut reader, "light banner")?,
                    dark_banner: long(&mut reader, "dark banner")?,
                    // The first version did not have it.
                    logo: if reader.is_empty() { &[] } else { long(&mut reader, "logo")? },
                };
                Self::Extra(extra)
            }
            _ => return Err(DecodeError::new("opcode", DecodeErrorKind::Unknown)),
        })
    }
}

impl<'a> Rules<'a> {
    /// The rules: name and value. An error takes the place of one that is cut off, and is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a [u8], &'a [u8]), DecodeError>> + use<'a> {
        list(self.count, self.rules, |reader| Ok((short(reader, "rule")?, short(reader, "value of a rule")?)))
    }
}

impl<'a> Players<'a> {
    /// The players. An error takes the place of one that is cut off, and is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<Player<'a>, DecodeError>> + use<'a> {
        let is_detailed = self.is_detailed;
        list(self.count, self.players, move |reader| {
            let id = if is_detailed { Some(reader.u8("player")?) } else { None };
            let name = short(reader, "player")?;
            let score = reader.u32_le("score")?.cast_signed();
            let ping = if is_detailed { Some(reader.u32_le("ping")?.cast_signed()) } else { None };
            Ok(Player { id, name, score, ping })
        })
    }
}

/// The items of a list, up to the first that is cut off.
fn list<'a, T>(
    count: u16,
    bytes: &'a [u8],
    parse: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> impl Iterator<Item = Result<T, DecodeError>> {
    let mut reader = Reader::new(bytes);
    let mut rest = count;
    core::iter::from_fn(move || {
        rest = rest.checked_sub(1)?;
        let item = parse(&mut reader);
        if item.is_err() {
            rest = 0;
        }
        Some(item)
    })
}

fn short<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let length = reader.u8(field)?;
    reader.bytes(length.into(), field)
}

fn long<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let length = reader.u32_le(field)?;
    reader.bytes(usize::try_from(length).unwrap_or(usize::MAX), field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &[u8] = b"SAMP\xc0\0\x02\x01\x61\x1e";

    fn field(body: &[u8]) -> &'static str {
        Response::parse(&[START, body].concat()).unwrap_err().field
    }

    #[test]
    fn only_a_ping_has_a_token() {
        let mut out = Vec::new();
        Query { opcode: Opcode::Ping, token: [1, 2, 3, 4] }.emit(&mut out);
        Query::insert_address(&mut out, ([192, 0, 2, 1], 7_777).into());
        assert_eq!(out, [START, b"p\x01\x02\x03\x04"].concat());
        assert_eq!(Response::parse(&out), Ok(Response::Ping([1, 2, 3, 4])));
        Query::insert_address(&mut out, "[2001:db8::1]:1".parse().unwrap());
        assert_eq!(out[..10], *START, "no room");
    }

    #[test]
    fn lists_of_players_are_with_or_without_details() {
        let bytes = [START, b"d\x02\0\x07\x03Ada\xff\xff\xff\xff\x30\0\0\0\x08\x00\x05\0\0\0\x01\0\0\0"].concat();
        let Ok(Response::Players(players)) = Response::parse(&bytes) else { panic!("no players") };
        let player = |id, name, score, ping| Ok(Player { id: Some(id), name, score, ping: Some(ping) });
        let list: Vec<_> = players.iter().collect();
        assert_eq!(list, [player(7, b"Ada", -1, 48), player(8, b"", 5, 1)]);
        let bytes = [START, b"c\x03\0\x03Ada\x02\0\0\0\x04Gra"].concat();
        let Ok(Response::Players(players)) = Response::parse(&bytes) else { panic!("no players") };
        let list: Vec<_> = players.iter().map(|player| player.map_err(|error| error.kind)).collect();
        assert_eq!(
            list,
            [Ok(Player { id: None, name: b"Ada", score: 2, ping: None }), Err(DecodeErrorKind::Truncated)]
        );
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        assert_eq!(
            [field(b""), field(b"x"), field(b"i"), field(b"r\x01")],
            ["opcode", "opcode", "password", "number of rules"]
        );
        assert_eq!([field(b"p\x01\x02\x03"), field(b"p\x01\x02\x03\x04\x05")], ["token", "ping"]);
        assert_eq!(field(b"i\0\x01\0\x01\0\xff\xff\xff\xffname"), "name");
        assert_eq!(Response::parse(b"").unwrap_err().field, "datagram");
        assert_eq!(Response::parse(b"VCMP\0\0\0\0\0\0i").unwrap_err().field, "magic");
    }
}
