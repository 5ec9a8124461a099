//! The query of Teeworlds 0.7, which servers of DDNet answer, too: an exchange of tokens, then the query.
//!
//! The server's token proves that the client receives at its address; each side puts the other's token first. A datagram with
//! a token is padded, so that the reply is not longer. Texts end with a zero byte; integers have a variable length:
//!
//! ```text
//! client   04 00 00 ff ff ff ff 05 CLIENT-TOKEN 00... (512 bytes from 05 on)
//! server   04 00 00 CLIENT-TOKEN 05 SERVER-TOKEN
//! client   21 SERVER-TOKEN CLIENT-TOKEN ff ff ff ff "gie3" integer
//! server   21 CLIENT-TOKEN SERVER-TOKEN ff ff ff ff "inf3" integer version name hostname map
//!             type flags level players max clients max  CLIENT...
//! CLIENT   name clan country score kind
//! integer  first byte: bit 7 another byte follows, bit 6 sign, 6 bits; others: bit 7 another byte follows, 7 bits
//! ```
//!
//! The lowest bits come first. A negative integer has the sign bit, and its complement otherwise.
//!
//! ```
//! use rallypoint_wire::query::teeworlds7::{Query, Response, Token};
//!
//! let client = Token([0x11, 0x22, 0x33, 0x44]);
//! let Response::Token { client, server } = Response::parse(b"\x04\0\0\x11\x22\x33\x44\x05\x09\x4f\xaf\x7c")? else {
//!     panic!("not a token")
//! };
//! let mut query = Vec::new();
//! Query::Info { server, client, number: -2 }.emit(&mut query);
//! assert_eq!(query, b"\x21\x09\x4f\xaf\x7c\x11\x22\x33\x44\xff\xff\xff\xffgie3\x41");
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "teeworlds7";

/// Name of the query protocol for people.
pub const TITLE: &str = "Teeworlds 0.7";

/// Default UDP port of a server.
pub const PORT: u16 = super::teeworlds::PORT;

/// Longest datagram in bytes (`NET_MAX_PACKETSIZE` of the engine).
pub const MAX_DATAGRAM: usize = super::teeworlds::MAX_DATAGRAM;

/// Length of a request for a token from the name of its message on: servers do not answer shorter ones.
const TOKEN_REQUEST: usize = 512;

/// Header of a control message: the flag, no acknowledgement, no chunks.
const CONTROL: &[u8] = &[0x04, 0, 0];

/// Header of a message outside of a connection: the flag, and version 1.
const CONNLESS: &[u8] = &[0x21];

/// The prefix of queries and replies, before their names.
const PREFIX: &[u8] = &[0xff; 4];

/// Name of the control message with a token.
const TOKEN: u8 = 5;

/// The token of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub [u8; 4]);

impl Token {
    /// No token: the value may not be used as one.
    pub const NONE: Self = Self([0xff; 4]);
}

/// A datagram of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// A request for the server's token.
    Token {
        /// Token of the client.
        client: Token,
    },
    /// The query.
    Info {
        /// Token of the server.
        server: Token,
        /// Token of the client.
        client: Token,
        /// A number that the reply repeats.
        number: i32,
    },
}

/// A datagram of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// The token of the server.
    Token {
        /// Token of the client.
        client: Token,
        /// Token of the server.
        server: Token,
    },
    /// The reply to the query.
    Info(Info<'a>),
}

/// The description of a server, and its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// Token of the client.
    pub client: Token,
    /// The number of the query.
    pub number: i32,
    /// Version of the game.
    pub version: &'a [u8],
    /// Name of the server.
    pub name: &'a [u8],
    /// Host name that the owner gave the server; often empty.
    pub hostname: &'a [u8],
    /// Name of the map.
    pub map: &'a [u8],
    /// Game mode.
    pub game_type: &'a [u8],
    /// Bit 0: a password is required; bit 1: points are times.
    pub flags: i32,
    /// Level of skill that the owner recommends the server for: 0 to 2.
    pub level: i32,
    /// Number of clients that play.
    pub players: u16,
    /// Maximum number of clients that play.
    pub max_players: u16,
    /// Number of clients.
    pub client_count: u16,
    /// Maximum number of clients.
    pub max_clients: u16,
    clients: &'a [u8],
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
    /// Whether the client only watches.
    pub is_spectator: bool,
    /// Whether the client is not a human.
    pub is_bot: bool,
}

impl Query {
    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        match self {
            Self::Token { client } => {
                out.extend_from_slice(CONTROL);
                out.extend_from_slice(&Token::NONE.0);
                let message = out.len();
                out.push(TOKEN);
                out.extend_from_slice(&client.0);
                out.resize(message + TOKEN_REQUEST, 0);
            }
            Self::Info { server, client, number } => {
                out.extend_from_slice(CONNLESS);
                out.extend_from_slice(&server.0);
                out.extend_from_slice(&client.0);
                out.extend_from_slice(PREFIX);
                out.extend_from_slice(b"gie3");
                emit_integer(number, out);
            }
        }
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these. A reply that ends within a client is not an error: see [`Info::clients`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        if let Some(message) = datagram.strip_prefix(CONTROL) {
            let mut reader = Reader::new(message);
            let client = Token(*reader.array("client token")?);
            if reader.u8("message")? != TOKEN {
                return Err(DecodeError::new("message", DecodeErrorKind::Unknown));
            }
            let server = Token(*reader.array("server token")?);
            if server == Token::NONE {
                return Err(DecodeError::new("server token", DecodeErrorKind::Invalid));
            }
            return Ok(Self::Token { client, server });
        }
        let message = datagram.strip_prefix(CONNLESS).ok_or(DecodeError::new("header", DecodeErrorKind::Mismatch))?;
        Info::parse(Reader::new(message)).map(Self::Info)
    }
}

impl<'a> Info<'a> {
    fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let client = Token(*reader.array("client token")?);
        reader.array::<4>("server token")?;
        if reader.bytes(PREFIX.len(), "prefix")? != PREFIX {
            return Err(DecodeError::new("prefix", DecodeErrorKind::Mismatch));
        }
        if reader.array::<4>("message")? != b"inf3" {
            return Err(DecodeError::new("message", DecodeErrorKind::Unknown));
        }
        let info = Self {
            client,
            number: integer(&mut reader, "number")?,
            version: reader.until(0, "version")?,
            name: reader.until(0, "server name")?,
            hostname: reader.until(0, "hostname")?,
            map: reader.until(0, "map")?,
            game_type: reader.until(0, "game type")?,
            flags: integer(&mut reader, "flags")?,
            level: integer(&mut reader, "level")?,
            players: count(&mut reader, "players")?,
            max_players: count(&mut reader, "maximum of players")?,
            client_count: count(&mut reader, "clients")?,
            max_clients: count(&mut reader, "maximum of clients")?,
            clients: reader.take_rest(),
        };
        if info.players > info.client_count {
            return Err(DecodeError::new("players", DecodeErrorKind::Invalid));
        }
        Ok(info)
    }

    /// The clients. An error takes the place of one that is cut off, and is the last item.
    pub fn clients(&self) -> impl Iterator<Item = Result<Client<'a>, DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.clients);
        core::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let client = Client::parse(&mut reader);
            if client.is_err() {
                reader.take_rest();
            }
            Some(client)
        })
    }
}

impl<'a> Client<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let name = reader.until(0, "client")?;
        let clan = reader.until(0, "clan")?;
        let country = integer(reader, "country")?;
        let score = integer(reader, "score")?;
        let kind = integer(reader, "kind")?;
        Ok(Self { name, clan, country, score, is_spectator: kind & 1 != 0, is_bot: kind & 2 != 0 })
    }
}

fn count(reader: &mut Reader<'_>, field: &'static str) -> Result<u16, DecodeError> {
    integer(reader, field)?.try_into().map_err(|_| DecodeError::new(field, DecodeErrorKind::Invalid))
}

/// An integer of at most five bytes; bits beyond the 32nd are ignored, as the game does.
fn integer(reader: &mut Reader<'_>, field: &'static str) -> Result<i32, DecodeError> {
    let first = reader.u8(field)?;
    let mut value = u32::from(first & 0x3f);
    let mut has_more = first & 0x80 != 0;
    for shift in [6, 13, 20, 27] {
        if !has_more {
            break;
        }
        let byte = reader.u8(field)?;
        let bits = if shift == 27 { byte & 0x0f } else { byte & 0x7f };
        value |= u32::from(bits) << shift;
        has_more = byte & 0x80 != 0;
    }
    let value = value.cast_signed();
    Ok(if first & 0x40 != 0 { !value } else { value })
}

fn emit_integer(number: i32, out: &mut Vec<u8>) {
    let is_negative = number < 0;
    let mut rest = if is_negative { !number } else { number }.cast_unsigned();
    let mut byte = (rest & 0x3f) as u8 | if is_negative { 0x40 } else { 0 };
    rest >>= 6;
    while rest != 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_a_variable_length() {
        for (number, bytes) in [
            (0, &b"\x00"[..]),
            (63, b"\x3f"),
            (64, b"\x80\x01"),
            (276, b"\x94\x04"),
            (-1, b"\x40"),
            (-65, b"\xc0\x01"),
            (i32::MAX, b"\xbf\xff\xff\xff\x0f"),
            (i32::MIN, b"\xff\xff\xff\xff\x0f"),
        ] {
            let mut out = Vec::new();
            emit_integer(number, &mut out);
            assert_eq!(out, bytes, "{number}");
            let mut reader = Reader::new(&out);
            assert_eq!(integer(&mut reader, "number"), Ok(number));
            assert!(reader.is_empty());
        }
        let mut reader = Reader::new(b"\xff\xff\xff\xff\xff\xff");
        assert_eq!(integer(&mut reader, "number"), Ok(i32::MIN), "no more than five bytes");
        assert_eq!(reader.rest(), b"\xff");
        assert!(integer(&mut Reader::new(b"\x80\x80"), "number").is_err());
    }

    #[test]
    fn a_request_for_a_token_is_padded() {
        let mut out = Vec::new();
        Query::Token { client: Token([1, 2, 3, 4]) }.emit(&mut out);
        assert_eq!(out[..12], *b"\x04\0\0\xff\xff\xff\xff\x05\x01\x02\x03\x04");
        assert_eq!((out.len(), &out[12..]), (519, &[0; 507][..]));
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        let field = |datagram: &[u8]| Response::parse(datagram).unwrap_err().field;
        assert_eq!([field(b""), field(b"\x05"), field(b"\x22\0\0")], ["datagram", "header", "header"]);
        assert_eq!([field(b"\x04\0\0\x01\x02\x03"), field(b"\x04\0\0abcd")], ["client token", "message"]);
        assert_eq!([field(b"\x04\0\0abcd\x04no"), field(b"\x04\0\0abcd\x05")], ["message", "server token"]);
        assert_eq!(field(b"\x04\0\0abcd\x05\xff\xff\xff\xff"), "server token");
        let start = *b"\x21abcdefgh\xff\xff\xff\xff";
        let body = |body: &[u8]| field(&[&start, body].concat());
        assert_eq!([body(b""), body(b"list"), body(b"inf3")], ["message", "message", "number"]);
        assert_eq!(body(b"inf3\x01v\0n\0h\0m\0t\0\0\0\x40\x01\x01\x01"), "players");
        assert_eq!(body(b"inf3\x01v\0n\0h\0m\0t\0\0\0\x02\x08\x01\x08"), "players");
        assert_eq!(field(b"\x21abcdefgh\xff\xff\xff\x00inf3"), "prefix");
    }
}
