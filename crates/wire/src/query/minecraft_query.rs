//! The query of Minecraft: Java Edition (`enable-query`), over UDP: settings, plugins and all players.
//!
//! A number that the client chooses is in every datagram; of each of its bytes only the lower half counts. Before the query, the
//! server gives the client another number, in decimal digits, which proves the client's address:
//!
//! ```text
//! client   fe fd 09 SESSION(4)
//! server   09 SESSION(4) "CHALLENGE" 00
//! client   fe fd 00 SESSION(4) CHALLENGE(4, big-endian) 00 00 00 00
//! server   00 SESSION(4) "splitnum" 00 80 00  ("KEY" 00 "VALUE" 00)...  00
//!          01 "player_" 00 00  ("NAME" 00)...  00
//! ```
//!
//! Texts are Latin-1 or UTF-8, with formatting codes.
//!
//! ```
//! use rallypoint_wire::query::minecraft_query::{Request, Response};
//!
//! let mut query = Vec::new();
//! Request { session: [1, 2, 3, 4], challenge: None }.emit(&mut query);
//! assert_eq!(query, b"\xfe\xfd\x09\x01\x02\x03\x04");
//! let reply = Response::parse(b"\x09\x01\x02\x03\x049513307\0")?;
//! assert_eq!(reply, Response::Challenge { session: [1, 2, 3, 4], challenge: 9_513_307 });
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "minecraftquery";

/// Title of the query protocol for people.
pub const TITLE: &str = "Minecraft: Java Edition (query)";

/// Default UDP port of a server.
pub const PORT: u16 = 25_565;

/// Length of the longest reply of interest, in bytes: that of a server with hundreds of players.
pub const MAX_REPLY: usize = 16_384;

const CHALLENGE: u8 = 9;
const STATUS: u8 = 0;

/// A query: for a challenge, or with one for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number that the reply repeats.
    pub session: [u8; 4],
    /// The challenge of the server; `None` requests one.
    pub challenge: Option<i32>,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// The number to query with.
    Challenge {
        /// The number of the query.
        session: [u8; 4],
        /// The number to query with.
        challenge: i32,
    },
    /// Settings and players.
    Status {
        /// The number of the query.
        session: [u8; 4],
        /// Settings and players.
        status: Status<'a>,
    },
}

/// Settings and players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    settings: &'a [u8],
    players: &'a [u8],
}

impl Request {
    /// The part of a number that servers repeat.
    #[must_use]
    pub fn session(number: [u8; 4]) -> [u8; 4] {
        number.map(|byte| byte & 0x0f)
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&[0xfe, 0xfd, if self.challenge.is_some() { STATUS } else { CHALLENGE }]);
        writer.bytes(&self.session);
        if let Some(challenge) = self.challenge {
            writer.u32_be(challenge.cast_unsigned());
            // Without these bytes, the reply has no players.
            writer.u32_be(0);
        }
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is neither a challenge nor a status, or ends within the settings.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| DecodeError::new(field, kind);
        if datagram.is_empty() {
            return Err(error("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        let kind = reader.u8("type")?;
        let session = *reader.array("session")?;
        match kind {
            CHALLENGE => {
                let digits = reader.until(0, "challenge")?;
                let number = core::str::from_utf8(digits).ok().and_then(|digits| digits.trim().parse().ok());
                let challenge = number.ok_or(error("challenge", DecodeErrorKind::Invalid))?;
                Ok(Self::Challenge { session, challenge })
            }
            STATUS => {
                if reader.bytes(11, "settings")?[..9] != *b"splitnum\0" {
                    return Err(error("settings", DecodeErrorKind::Unknown));
                }
                let all = reader.rest();
                while !reader.until(0, "settings")?.is_empty() {
                    reader.until(0, "settings")?;
                }
                let settings = &all[..all.len() - reader.rest().len() - 1];
                Ok(Self::Status { session, status: Status { settings, players: reader.take_rest() } })
            }
            _ => Err(error("type", DecodeErrorKind::Unknown)),
        }
    }

    /// The number of the query.
    #[must_use]
    pub fn session(&self) -> [u8; 4] {
        match self {
            Self::Challenge { session, .. } | Self::Status { session, .. } => *session,
        }
    }
}

impl<'a> Status<'a> {
    /// The settings, in order.
    pub fn settings(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.settings);
        core::iter::from_fn(move || Some((reader.until(0, "settings").ok()?, reader.until(0, "settings").ok()?)))
    }

    /// The first value of a setting.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.settings().find(|(known, _)| *known == key.as_bytes()).map(|(_, value)| value)
    }

    /// The names of the players. An error takes the place of those that are cut off.
    pub fn players(&self) -> impl Iterator<Item = Result<&'a [u8], DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.players);
        let head = reader.bytes(10, "players").map(drop);
        let mut problem = head.err();
        let mut has_ended = false;
        core::iter::from_fn(move || {
            if has_ended {
                return None;
            }
            let next = match problem.take() {
                Some(error) => Err(error),
                None => reader.until(0, "players"),
            };
            has_ended = next.is_err() || next == Ok(&[]);
            (next != Ok(&[])).then_some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &[u8] = b"\0\x01\x02\x03\x04splitnum\0\x80\0hostname\0A \xa7bServer\0numplayers\x002\0\0\
        \x01player_\0\0Ada\0Grace\0\0";

    fn status(datagram: &[u8]) -> Status<'_> {
        let Ok(Response::Status { status, .. }) = Response::parse(datagram) else { panic!("not a status") };
        status
    }

    #[test]
    fn a_status_has_settings_and_players() {
        let parsed = status(STATUS);
        assert!(parsed.settings().eq([(&b"hostname"[..], &b"A \xa7bServer"[..]), (b"numplayers", b"2")]));
        assert_eq!(parsed.get("numplayers"), Some(&b"2"[..]));
        assert_eq!(parsed.get("map"), None);
        assert!(parsed.players().eq([Ok(&b"Ada"[..]), Ok(b"Grace")]));
        assert_eq!(Response::parse(STATUS).unwrap().session(), [1, 2, 3, 4]);
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let settings = STATUS.len() - 21;
        for end in 0..STATUS.len() {
            match Response::parse(&STATUS[..end]) {
                Ok(_) => {
                    assert!(end >= settings, "{end}");
                    assert!(status(&STATUS[..end]).players().last().unwrap().is_err(), "{end}");
                }
                Err(_) => assert!(end < settings, "{end}"),
            }
        }
    }

    #[test]
    fn a_query_for_the_status_asks_for_the_players() {
        let mut out = Vec::new();
        Request { session: Request::session([0xff, 0x10, 0x2a, 4]), challenge: Some(-2) }.emit(&mut out);
        assert_eq!(out, b"\xfe\xfd\x00\x0f\x00\x0a\x04\xff\xff\xff\xfe\0\0\0\0");
    }

    #[test]
    fn challenges_are_numbers() {
        let challenge = |text: &[u8]| match Response::parse(&[b"\x09\0\0\0\0", text].concat()) {
            Ok(Response::Challenge { challenge, .. }) => Ok(challenge),
            Ok(Response::Status { .. }) => panic!("not a challenge"),
            Err(error) => Err(error.field),
        };
        assert_eq!(challenge(b"-12\0"), Ok(-12));
        assert_eq!(challenge(b"12\0\0"), Ok(12));
        for wrong in [&b"\0"[..], b"x\0", b"12", b"99999999999\0", b"\xff\0"] {
            assert_eq!(challenge(wrong), Err("challenge"));
        }
        assert_eq!(Response::parse(b"").unwrap_err().field, "datagram");
        assert_eq!(Response::parse(&[7; 9]).unwrap_err().field, "type");
        assert_eq!(Response::parse(&[0; 30]).unwrap_err().field, "settings");
    }
}
