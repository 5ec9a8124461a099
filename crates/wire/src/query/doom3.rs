//! The query of DOOM 3 and of the games on its engine: Quake 4, Prey, Enemy Territory: Quake Wars, Wolfenstein.
//!
//! A datagram begins with two bytes FF. Numbers are little-endian, texts end with 00:
//!
//! ```text
//! client   ff ff "getInfo" TASK CHALLENGE           two numbers of 4 bytes
//! server   ff ff "infoResponse" TASK                DOOM 3, Quake 4, Prey and Wolfenstein repeat the first one only
//!          [CHALLENGE] VERSION [SIZE]               4 bytes each, in brackets: Quake Wars only
//!          KEY VALUE KEY VALUE ... 00 00
//!          NUMBER PING [RATE] NAME ...              for each player, 1, 2 and 4 bytes: see `players`
//!          20 OSMASK ...                            the end of the players, and the systems that the server has files for
//! ```
//!
//! The description of a player differs by game and version, so that a list of players counts as understood only if it ends where
//! the datagram does.
//!
//! ```
//! use rallypoint_wire::query::doom3::{Reply, emit_query};
//!
//! let mut query = Vec::new();
//! emit_query(*b"12345678", &mut query);
//! assert_eq!(query, b"\xff\xffgetInfo\x0012345678");
//!
//! let reply = b"\xff\xffinfoResponse\x001234\x29\0\x01\0si_map\0game/mp/d3dm1\0\0\0\x03\x30\0\0\x40\0\0Ada\0\x20\xff\xff\xff\xff";
//! let reply = Reply::parse(reply)?;
//! assert_eq!((&reply.task, reply.has_challenge(*b"5678")), (b"1234", false));
//! let contents = reply.contents(false)?;
//! assert_eq!(contents.settings.get("si_map"), Some(&b"game/mp/d3dm1"[..]));
//! let player = contents.players?.iter().next().expect("a player");
//! assert_eq!((player.number, player.ping, player.name), (3, 48, &b"Ada"[..]));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

mod players;

pub use players::{Player, Players, Tail};

use crate::{DecodeError, DecodeErrorKind};
use alloc::{borrow::Cow, vec::Vec};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "doom3";

/// Name of the query protocol for people.
pub const TITLE: &str = "DOOM 3 and games on its engine";

/// Default UDP port of a server.
pub const PORT: u16 = 27_666;

/// Longest message of a server in bytes.
pub const MAX_MESSAGE: usize = 16_384;

const PREFIX: &[u8] = b"\xff\xff";
const QUERY: &[u8] = b"\xff\xffgetInfo\0";
const RESPONSE: &[u8] = b"infoResponse\0";

/// A reply whose contents have not been parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The first half of what the query contains.
    pub task: [u8; 4],
    rest: &'a [u8],
}

/// The contents of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents<'a> {
    /// Version of the protocol.
    pub version: Version,
    /// The settings.
    pub settings: Settings<'a>,
    /// The players, if they are in a form that is known.
    pub players: Result<Players<'a>, DecodeError>,
}

/// Version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The game: 1 is DOOM 3, 2 is Quake 4, 3 and 4 are Prey, 10 and above are Quake Wars and Wolfenstein.
    pub major: u16,
    /// The version of the game.
    pub minor: u16,
}

/// Keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<'a>(&'a [u8]);

/// Appends the query. A reply repeats the first half of the token, or all of it.
pub fn emit_query(token: [u8; 8], out: &mut Vec<u8>) {
    out.extend_from_slice(QUERY);
    out.extend_from_slice(&token);
}

impl<'a> Reply<'a> {
    /// Parses the beginning of a datagram from a server.
    ///
    /// # Errors
    /// If it is not such a reply.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        if datagram.is_empty() {
            return error("datagram", DecodeErrorKind::Empty);
        }
        let Some(message) = datagram.strip_prefix(PREFIX) else { return error("prefix", DecodeErrorKind::Mismatch) };
        let Some(rest) = message.strip_prefix(RESPONSE) else { return error("command", DecodeErrorKind::Unknown) };
        let Some((task, rest)) = rest.split_first_chunk() else {
            return error("challenge", DecodeErrorKind::Truncated);
        };
        Ok(Self { task: *task, rest })
    }

    /// Whether the reply repeats the second half of the token, too, as that of Quake Wars does.
    #[must_use]
    pub fn has_challenge(&self, challenge: [u8; 4]) -> bool {
        self.rest.starts_with(&challenge)
    }

    /// Parses the rest of the reply, with or without the second half of the token.
    ///
    /// # Errors
    /// If the reply ends before the players.
    pub fn contents(&self, has_challenge: bool) -> Result<Contents<'a>, DecodeError> {
        let truncated = |field| DecodeError::new(field, DecodeErrorKind::Truncated);
        let rest = if has_challenge { self.rest.get(4..).ok_or(truncated("challenge"))? } else { self.rest };
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(truncated("version"))?;
        let [minor_low, minor_high, major_low, major_high] = *version;
        let version = Version {
            // The highest bit marks games of other companies.
            major: u16::from_le_bytes([major_low, major_high & 0x7f]),
            minor: u16::from_le_bytes([minor_low, minor_high]),
        };
        let rest = if has_challenge { rest.get(4..).ok_or(truncated("size"))? } else { rest };
        let (settings, rest) = Settings::split(rest).ok_or(truncated("settings"))?;
        Ok(Contents { version, settings, players: Players::parse(rest, version, has_challenge) })
    }
}

impl<'a> Settings<'a> {
    /// Splits off the settings, which end with an empty key and an empty value.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut rest = bytes;
        loop {
            let key = next_text(&mut rest)?;
            let value = next_text(&mut rest)?;
            if key.is_empty() && value.is_empty() {
                return Some((Self(&bytes[..bytes.len() - rest.len() - 2]), rest));
            }
        }
    }

    /// All keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.0;
        core::iter::from_fn(move || Some((next_text(&mut rest)?, next_text(&mut rest)?)))
    }

    /// The first value of a key, in upper or lower case.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(key.as_bytes())).map(|(_, value)| value)
    }
}

fn next_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (text, behind) = rest.split_at(end);
    *rest = &behind[1..];
    Some(text)
}

/// Removes colour codes: a `^` and any character but a space, and in Quake 4 the longer ones for colours and icons.
///
/// ```
/// use rallypoint_wire::query::doom3::strip_colours;
///
/// assert_eq!(*strip_colours(b"^1Red ^ ^c900x^", false), *b"Red ^ 900x^");
/// assert_eq!(*strip_colours(b"^1Red ^ ^c900x^idm0y", true), *b"Red ^ xy");
/// ```
#[must_use]
pub fn strip_colours(text: &[u8], is_quake4: bool) -> Cow<'_, [u8]> {
    if !text.contains(&b'^') {
        return Cow::Borrowed(text);
    }
    let mut stripped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'^', [b'c' | b'C' | b'i' | b'I', _, _, _, behind @ ..]) if is_quake4 => behind,
            (b'^', [b'n' | b'N', _, behind @ ..]) if is_quake4 => behind,
            (b'^', [code, behind @ ..]) if *code != b' ' => behind,
            _ => {
                stripped.push(byte);
                behind
            }
        };
    }
    Cow::Owned(stripped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_are_none_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\xff", "prefix"),
            (b"\xff\xff", "command"),
            (b"\xff\xff\xff\xffinfoResponse\n", "command"),
            (b"\xff\xffinfoResponse\x00123", "challenge"),
        ] {
            assert_eq!(Reply::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn contents_that_are_cut_are_errors() {
        let reply = |rest| Reply { task: [0; 4], rest };
        for (rest, has_challenge, field) in [
            (&b"123"[..], true, "challenge"),
            (b"\x29\0\x01", false, "version"),
            (b"1234\x13\0\x0a\0\x01\0", true, "size"),
            (b"\x29\0\x01\0a\0b\0", false, "settings"),
            (b"\x29\0\x01\0a\0b\0\0", false, "settings"),
        ] {
            assert_eq!(reply(rest).contents(has_challenge).unwrap_err().field, field, "{}", rest.escape_ascii());
        }
        let contents = reply(b"\x29\0\x01\x80a\0\0\0b\0\0\0").contents(false).unwrap();
        assert_eq!(contents.version, Version { major: 1, minor: 41 });
        assert!(contents.settings.iter().eq([(&b"a"[..], &b""[..]), (b"", b"b")]));
        assert!(contents.players.is_err());
    }
}
