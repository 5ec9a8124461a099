//! The queries of Quake and of Hexen II: a description of the server, one player, and one rule at a time.
//!
//! A datagram begins with its type (80 00) and its length, big-endian; other numbers are little-endian, and texts end with 00:
//!
//! ```text
//! client   80 00 LENGTH 02 "QUAKE" 03               server information; the version of the protocol. Or "HEXENII" 04
//!          80 00 LENGTH 03 NUMBER                   the player with this number, from 0 on
//!          80 00 LENGTH 04 NAME                     the rule after this one; the first one after an empty name
//! server   80 00 LENGTH 83 ADDRESS NAME MAP PLAYERS MAXIMUM VERSION                    numbers of one byte
//!          80 00 LENGTH 84 NUMBER NAME COLOURS FRAGS SECONDS ADDRESS                   numbers of 1, 4, 4 and 4 bytes
//!          80 00 LENGTH 85 NAME VALUE                                                  or nothing after the last rule
//! ```
//!
//! A server does not answer if there is no such player, and nothing in a reply shows which query it answers. Players are numbered
//! in the order of their slots, so that numbers shift when one leaves.
//!
//! ```
//! use rallypoint_wire::query::quake1::Response;
//!
//! let reply = b"\x80\x00\x00\x22\x8310.0.0.1:26000\0Ada's\0e1m1\0\x02\x08\x03";
//! let Response::Server(server) = Response::parse(reply)? else { panic!("not a server") };
//! assert_eq!((server.name, server.map, server.players), (&b"Ada's"[..], &b"e1m1"[..], 2));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "quake1";

/// Name of the query protocol for people.
pub const TITLE: &str = "Quake and Hexen II";

/// Default UDP port of a server.
pub const PORT: u16 = 26_000;

/// Longest reply in bytes: no text in it is longer than 1 KiB.
pub const MAX_DATAGRAM: usize = 4_096;

/// Type of a datagram that is not part of a game, in the upper half of the first number.
const CONTROL: [u8; 2] = [0x80, 0x00];

/// Version of the protocol.
pub const VERSION: u8 = 3;

/// Version of the protocol in Hexen II; servers of later versions answer it, too.
pub const HEXEN_VERSION: u8 = 4;

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The description of the server.
    Server,
    /// The description of a server of Hexen II.
    HexenServer,
    /// The player with this number.
    Player(u8),
    /// The rule that follows the one with this name.
    RuleAfter(&'a [u8]),
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// The description of the server.
    Server(Server<'a>),
    /// A player.
    Player(Player<'a>),
    /// A rule, with its value; none after the last one.
    Rule(Option<(&'a [u8], &'a [u8])>),
}

/// The description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server<'a> {
    /// Address that the server believes to have.
    pub address: &'a [u8],
    /// Name of the server, in the character set of [`quake`](super::quake).
    pub name: &'a [u8],
    /// Current map.
    pub map: &'a [u8],
    /// Number of players.
    pub players: u8,
    /// Maximum number of players.
    pub max_players: u8,
    /// Version of the protocol.
    pub version: u8,
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player<'a> {
    /// Number of the player.
    pub number: u8,
    /// The name, in the character set of [`quake`](super::quake).
    pub name: &'a [u8],
    /// Colour of the shirt.
    pub top: u8,
    /// Colour of the trousers: that of the team, in games with teams.
    pub bottom: u8,
    /// Points.
    pub frags: i32,
    /// Time since the player joined, in seconds.
    pub seconds: i32,
    /// Address of the player, which many servers hide.
    pub address: &'a [u8],
}

impl<'a> Request<'a> {
    /// Parses a datagram from a client. `None` if it is none of these queries.
    #[must_use]
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (kind, body) = control(datagram).ok()?.split_first()?;
        match (kind, body) {
            (2, body) if body.starts_with(b"QUAKE\0") => Some(Self::Server),
            (2, body) if body.starts_with(b"HEXENII\0") => Some(Self::HexenServer),
            (3, [number]) => Some(Self::Player(*number)),
            (4, [name @ .., 0]) if !name.contains(&0) => Some(Self::RuleAfter(name)),
            _ => None,
        }
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&CONTROL);
        out.extend_from_slice(&[0, 0]);
        match self {
            Self::Server => {
                out.extend_from_slice(b"\x02QUAKE\0");
                out.push(VERSION);
            }
            Self::HexenServer => {
                out.extend_from_slice(b"\x02HEXENII\0");
                out.push(HEXEN_VERSION);
            }
            Self::Player(number) => out.extend_from_slice(&[3, number]),
            Self::RuleAfter(name) => {
                out.push(4);
                out.extend_from_slice(name);
                out.push(0);
            }
        }
        let length = (out.len() - start) as u16;
        out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// The part of a datagram after its header.
fn control(datagram: &[u8]) -> Result<&[u8], DecodeError> {
    let error = |field, kind| Err(DecodeError::new(field, kind));
    if datagram.is_empty() {
        return error("datagram", DecodeErrorKind::Empty);
    }
    let Some((header, body)) = datagram.split_first_chunk::<4>() else {
        return error("header", DecodeErrorKind::Truncated);
    };
    let [kind @ .., high, low] = *header;
    if kind != CONTROL {
        return error("header", DecodeErrorKind::Mismatch);
    }
    if usize::from(u16::from_be_bytes([high, low])) != datagram.len() {
        return error("length", DecodeErrorKind::Mismatch);
    }
    Ok(body)
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these replies.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let (kind, body) =
            control(datagram)?.split_first().ok_or(DecodeError::new("command", DecodeErrorKind::Truncated))?;
        let mut fields = Fields(body);
        let response = match kind {
            0x83 => Self::Server(Server {
                address: fields.text("server address")?,
                name: fields.text("server name")?,
                map: fields.text("map")?,
                players: fields.byte("players")?,
                max_players: fields.byte("maximum of players")?,
                version: fields.byte("protocol version")?,
            }),
            0x84 => {
                let number = fields.byte("player number")?;
                let name = fields.text("player name")?;
                let [colours, ..] = fields.long("colours")?.to_le_bytes();
                Self::Player(Player {
                    number,
                    name,
                    top: colours >> 4,
                    bottom: colours & 15,
                    frags: fields.long("frags")?,
                    seconds: fields.long("time")?,
                    address: fields.text("player address")?,
                })
            }
            0x85 if body.is_empty() => Self::Rule(None),
            0x85 => Self::Rule(Some((fields.text("rule name")?, fields.text("rule value")?))),
            _ => return Err(DecodeError::new("command", DecodeErrorKind::Unknown)),
        };
        if !fields.0.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::TrailingBytes));
        }
        Ok(response)
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn text(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let end =
            self.0.iter().position(|byte| *byte == 0).ok_or(DecodeError::new(field, DecodeErrorKind::Truncated))?;
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Ok(text)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        let (byte, rest) = self.0.split_first().ok_or(DecodeError::new(field, DecodeErrorKind::Truncated))?;
        self.0 = rest;
        Ok(*byte)
    }

    fn long(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(DecodeError::new(field, DecodeErrorKind::Truncated))?;
        self.0 = rest;
        Ok(i32::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_the_bytes_of_the_game() {
        for (request, bytes) in [
            (Request::Server, &b"\x80\x00\x00\x0c\x02QUAKE\x00\x03"[..]),
            (Request::HexenServer, b"\x80\x00\x00\x0e\x02HEXENII\x00\x04"),
            (Request::Player(7), b"\x80\x00\x00\x06\x03\x07"),
            (Request::RuleAfter(b""), b"\x80\x00\x00\x06\x04\x00"),
            (Request::RuleAfter(b"sv_gravity"), b"\x80\x00\x00\x10\x04sv_gravity\x00"),
        ] {
            let mut out = Vec::new();
            request.emit(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(Request::parse(&out), Some(request));
        }
        assert_eq!(Request::parse(b"\x80\x00\x00\x05\x01"), None);
        assert_eq!(Request::parse(b"\x80\x00\x00\x07\x03\x07"), None);
    }

    #[test]
    fn replies_have_the_bytes_of_the_game() {
        let player = b"\x80\x00\x00\x21\x84\x01\xc1da\x00\x4d\x00\x00\x00\xfd\xff\xff\xff\x2c\x01\x00\x00192.0.2.7\x00";
        let expected =
            Player { number: 1, name: b"\xc1da", top: 4, bottom: 13, frags: -3, seconds: 300, address: b"192.0.2.7" };
        assert_eq!(Response::parse(&with_length(player)), Ok(Response::Player(expected)));
        let rule = with_length(b"\x80\x00\x00\x00\x85fraglimit\x0020\x00");
        assert_eq!(Response::parse(&rule), Ok(Response::Rule(Some((b"fraglimit", b"20")))));
        assert_eq!(Response::parse(b"\x80\x00\x00\x05\x85"), Ok(Response::Rule(None)));
    }

    fn with_length(datagram: &[u8]) -> Vec<u8> {
        let mut datagram = datagram.to_vec();
        let length = (datagram.len() as u16).to_be_bytes();
        datagram[2..4].copy_from_slice(&length);
        datagram
    }

    #[test]
    fn datagrams_that_are_no_replies_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\x80\x00\x00", "header"),
            (b"\x00\x01\x00\x04", "header"),
            (b"\x80\x00\x00\x06\x85", "length"),
            (b"\x80\x00\x00\x04", "command"),
            (b"\x80\x00\x00\x05\x82", "command"),
            (b"\x80\x00\x00\x09\x83a\0b\0", "map"),
            (b"\x80\x00\x00\x07\x84\x01a", "player name"),
            (b"\x80\x00\x00\x08\x85a\0b", "rule value"),
            (b"\x80\x00\x00\x0a\x85a\0b\0c", "datagram"),
        ] {
            assert_eq!(Response::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }
}
