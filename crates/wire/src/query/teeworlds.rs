//! The query of Teeworlds 0.6, and the extended one of DDNet, which servers of other games on that engine have, too.
//!
//! A datagram outside of a connection has a header of six bytes and a prefix of eight. Texts end with a zero byte, and
//! numbers are texts in decimal:
//!
//! ```text
//! client   ff ff ff ff ff ff  ff ff ff ff "gie3" TOKEN                   TOKEN: one byte
//!          "xe" EXTRA 00 00   ff ff ff ff "gie3" TOKEN                   extended; EXTRA: two more bytes of the token
//! server   ff ff ff ff ff ff  ff ff ff ff "inf3" token version name map
//!                             type flags players max clients max  CLIENT...
//!          ff ff ff ff ff ff  ff ff ff ff "iext" token version name map checksum size
//!                             type flags players max clients max reserved  CLIENT...
//!          ff ff ff ff ff ff  ff ff ff ff "iex+" token part reserved  CLIENT...
//! CLIENT   name clan country score is-player [reserved: extended only]
//! ```
//!
//! The token of a reply is a number: of an extended one EXTRA * 256 + TOKEN. Players are counted among the clients; the other
//! clients are spectators. Servers without extended queries answer one like any other, with `inf3`.
//!
//! ```
//! use rallypoint_wire::query::teeworlds::{Query, Response};
//!
//! let mut query = Vec::new();
//! Query::Basic(7).emit(&mut query);
//! assert_eq!(query, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffgie3\x07");
//!
//! let reply = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffinf37\x000.6.5\0Bacon Town\0dm1\0DM\x000\x001\x0016\x001\x0016\0\
//!               Ada\0AE\0276\0-3\x001\0";
//! let Response::Basic(info) = Response::parse(reply)? else { panic!("not the reply") };
//! assert_eq!((info.token, info.name, info.players), (7, &b"Bacon Town"[..], 1));
//! let client = info.clients.iter().next().expect("a client")?;
//! assert_eq!((client.name, client.score), (&b"Ada"[..], -3));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "teeworlds";

/// Name of the query protocol for people.
pub const TITLE: &str = "Teeworlds 0.6";

/// Default UDP port of a server.
pub const PORT: u16 = 8_303;

/// Longest datagram in bytes (`NET_MAX_PACKETSIZE` of the engine).
pub const MAX_DATAGRAM: usize = 1_400;

/// Number of datagrams that an extended reply can have: clients keep a set of 64 bits.
pub const MAX_PARTS: u8 = 64;

/// Header of a datagram outside of a connection.
const HEADER: &[u8] = &[0xff; 6];

/// Header of an extended query, before the extra token.
const EXTENDED_HEADER: &[u8] = b"xe";

/// The prefix of queries and replies, before their names.
const PREFIX: &[u8] = &[0xff; 4];

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// With a token of one byte.
    Basic(u8),
    /// Extended, with a token of three bytes: the highest byte of the number is not sent.
    Extended(u32),
}

/// A datagram of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// `inf3`.
    Basic(Info<'a>),
    /// `iext`: the first datagram of an extended reply.
    Extended(Info<'a>),
    /// `iex+`: further clients.
    More(More<'a>),
}

/// The description of a server, and all or the first ones of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// The token of the query.
    pub token: u32,
    /// Version of the game.
    pub version: &'a [u8],
    /// Name of the server.
    pub name: &'a [u8],
    /// Name of the map.
    pub map: &'a [u8],
    /// CRC-32 of the map and its size in bytes, which only an extended reply has.
    pub map_file: Option<(i32, i32)>,
    /// Game mode.
    pub game_type: &'a [u8],
    /// Bit 0: a password is required.
    pub flags: i32,
    /// Number of clients that play.
    pub players: u16,
    /// Maximum number of clients that play.
    pub max_players: u16,
    /// Number of clients.
    pub client_count: u16,
    /// Maximum number of clients.
    pub max_clients: u16,
    /// The clients in this datagram.
    pub clients: Clients<'a>,
}

/// Further clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More<'a> {
    /// The token of the query.
    pub token: u32,
    /// Number of the datagram in the reply, from 1 to [`MAX_PARTS`] - 1.
    pub part: u8,
    /// The clients in this datagram.
    pub clients: Clients<'a>,
}

/// The clients in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients<'a> {
    bytes: &'a [u8],
    is_extended: bool,
}

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'a> {
    /// Name of the player.
    pub name: &'a [u8],
    /// Clan of the player; often empty.
    pub clan: &'a [u8],
    /// Country of the player (ISO 3166-1 numeric); -1 if not known.
    pub country: i32,
    /// Points.
    pub score: i32,
    /// Whether the client plays; otherwise it is a spectator.
    pub is_player: bool,
}

impl Query {
    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let token = match self {
            Self::Basic(token) => {
                out.extend_from_slice(HEADER);
                token
            }
            Self::Extended(token) => {
                let [_, high, low, token] = token.to_be_bytes();
                out.extend_from_slice(EXTENDED_HEADER);
                out.extend_from_slice(&[high, low, 0, 0]);
                token
            }
        };
        out.extend_from_slice(PREFIX);
        out.extend_from_slice(b"gie3");
        out.push(token);
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these. One that ends within a client is not an error: see [`Clients::iter`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        if reader.bytes(HEADER.len(), "header")? != HEADER {
            return Err(DecodeError::new("header", DecodeErrorKind::Mismatch));
        }
        if reader.bytes(PREFIX.len(), "prefix")? != PREFIX {
            return Err(DecodeError::new("prefix", DecodeErrorKind::Mismatch));
        }
        match reader.array::<4>("name")? {
            b"inf3" => Info::parse(reader, false).map(Self::Basic),
            b"iext" => Info::parse(reader, true).map(Self::Extended),
            b"iex+" => More::parse(reader).map(Self::More),
            _ => Err(DecodeError::new("name", DecodeErrorKind::Unknown)),
        }
    }

    /// The token of the query.
    #[must_use]
    pub const fn token(&self) -> u32 {
        match self {
            Self::Basic(info) | Self::Extended(info) => info.token,
            Self::More(more) => more.token,
        }
    }

    /// The clients in the datagram.
    #[must_use]
    pub const fn clients(&self) -> Clients<'a> {
        match self {
            Self::Basic(info) | Self::Extended(info) => info.clients,
            Self::More(more) => more.clients,
        }
    }
}

impl<'a> Info<'a> {
    fn parse(mut reader: Reader<'a>, is_extended: bool) -> Result<Self, DecodeError> {
        let token = number(&mut reader, "token")?;
        let version = reader.until(0, "version")?;
        let name = reader.until(0, "server name")?;
        let map = reader.until(0, "map")?;
        let map_file = if is_extended {
            Some((number(&mut reader, "map checksum")?, number(&mut reader, "map size")?))
        } else {
            None
        };
        let game_type = reader.until(0, "game type")?;
        let flags = number(&mut reader, "flags")?;
        let players: u16 = number(&mut reader, "players")?;
        let max_players = number(&mut reader, "maximum of players")?;
        let client_count: u16 = number(&mut reader, "clients")?;
        let max_clients = number(&mut reader, "maximum of clients")?;
        if players > client_count {
            return Err(DecodeError::new("players", DecodeErrorKind::Invalid));
        }
        if is_extended {
            reader.until(0, "reserved")?;
        }
        let clients = Clients { bytes: reader.take_rest(), is_extended };
        Ok(Self {
            token,
            version,
            name,
            map,
            map_file,
            game_type,
            flags,
            players,
            max_players,
            client_count,
            max_clients,
            clients,
        })
    }
}

impl<'a> More<'a> {
    fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let token = number(&mut reader, "token")?;
        let part = number(&mut reader, "part")?;
        if !(1..MAX_PARTS).contains(&part) {
            return Err(DecodeError::new("part", DecodeErrorKind::Invalid));
        }
        reader.until(0, "reserved")?;
        Ok(Self { token, part, clients: Clients { bytes: reader.take_rest(), is_extended: true } })
    }
}

impl<'a> Clients<'a> {
    /// The clients. An error takes the place of one that is cut off or not valid, and is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<Client<'a>, DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let is_extended = self.is_extended;
        core::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let client = Client::parse(&mut reader, is_extended);
            if client.is_err() {
                reader.take_rest();
            }
            Some(client)
        })
    }
}

impl<'a> Client<'a> {
    fn parse(reader: &mut Reader<'a>, is_extended: bool) -> Result<Self, DecodeError> {
        let client = Self {
            name: reader.until(0, "client")?,
            clan: reader.until(0, "clan")?,
            country: number(reader, "country")?,
            score: number(reader, "score")?,
            is_player: number::<i32>(reader, "is-player")? != 0,
        };
        if is_extended {
            reader.until(0, "reserved")?;
        }
        Ok(client)
    }
}

/// A number, as a text in decimal.
fn number<N: core::str::FromStr>(reader: &mut Reader<'_>, field: &'static str) -> Result<N, DecodeError> {
    let text = core::str::from_utf8(reader.until(0, field)?).ok().and_then(|text| text.parse().ok());
    text.ok_or(DecodeError::new(field, DecodeErrorKind::Invalid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const START: &[u8] = &[0xff; 10];

    fn parse(body: &[u8]) -> Result<(), (&'static str, DecodeErrorKind)> {
        let datagram = [START, body].concat();
        Response::parse(&datagram).map(drop).map_err(|error| (error.field, error.kind))
    }

    #[test]
    fn queries_are_those_of_clients() {
        let mut out = Vec::new();
        Query::Basic(7).emit(&mut out);
        assert_eq!(out, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffgie3\x07");
        out.clear();
        Query::Extended(0x0012_3407).emit(&mut out);
        assert_eq!(out, b"xe\x12\x34\0\0\xff\xff\xff\xffgie3\x07");
    }

    #[test]
    fn an_extended_reply_has_a_map_file_and_reserved_fields() {
        let body = b"iext1192967\x000.6.4\0name\0map\0-5\x009\0DM\x001\x001\x0063\x002\x0064\0\0\
                     a\0b\0-1\0-9999\x001\0\0c\0\x00276\x005\x000\0later\0";
        let datagram = [START, body].concat();
        let Ok(Response::Extended(info)) = Response::parse(&datagram) else { panic!("not extended") };
        assert_eq!((info.token, info.map_file, info.flags), (0x12_3407, Some((-5, 9)), 1));
        assert_eq!((info.players, info.max_players, info.client_count, info.max_clients), (1, 63, 2, 64));
        let client = |name, clan, country, score, is_player| Ok(Client { name, clan, country, score, is_player });
        let clients: Vec<_> = info.clients.iter().collect();
        assert_eq!(clients, [client(b"a", b"b", -1, -9_999, true), client(b"c", b"", 276, 5, false)]);
    }

    #[test]
    fn further_clients_have_a_part_of_their_own() {
        let datagram = [START, b"iex+9\x0063\0\0a\0b\0-1\x000\x001\0\0cut\0clan\0"].concat();
        let Ok(Response::More(more)) = Response::parse(&datagram) else { panic!("not more") };
        assert_eq!((more.token, more.part), (9, 63));
        let kinds: Vec<_> = more.clients.iter().map(|client| client.map_err(|error| error.field).err()).collect();
        assert_eq!(kinds, vec![None, Some("country")]);
        for part in ["0", "64", "-1", "x", ""] {
            let body = ["iex+9\0", part, "\0\0"].concat();
            assert_eq!(parse(body.as_bytes()), Err(("part", DecodeErrorKind::Invalid)), "{part}");
        }
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        use DecodeErrorKind::{Invalid, Truncated, Unknown};
        assert_eq!(parse(b"inf4"), Err(("name", Unknown)));
        assert_eq!(parse(b"inf37\0v\0n"), Err(("server name", Truncated)));
        assert_eq!(parse(b"inf3x\0v\0n\0m\0t\x000\x000\x000\x000\x000\0"), Err(("token", Invalid)));
        assert_eq!(parse(b"inf37\0v\0n\0m\0t\x000\x00-1\x000\x000\x000\0"), Err(("players", Invalid)));
        assert_eq!(parse(b"inf37\0v\0n\0m\0t\x000\x002\x008\x001\x008\0"), Err(("players", Invalid)));
        assert_eq!(parse(b"inf37\0v\0n\0m\0t\x000\x002\x0099999\x002\x008\0"), Err(("maximum of players", Invalid)));
        let field = |datagram: &[u8]| Response::parse(datagram).unwrap_err().field;
        assert_eq!([field(b""), field(b"\xff"), field(b"\x10\0\0\x04\xff\xff")], ["datagram", "header", "header"]);
    }
}
