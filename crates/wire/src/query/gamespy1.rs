//! The first query protocol of GameSpy: Unreal Tournament, Battlefield 1942 and a hundred other games.
//!
//! Queries and replies are text: keys and values. A long reply consists of several datagrams, which arrive in any order:
//!
//! ```text
//! client   \status\xserverquery
//! server   \gamename\ut\hostname\NAME\numplayers\2 ... \queryid\17.1
//!          \player_0\NAME\frags_0\12\player_1\NAME\frags_1\3 ... \final\\queryid\17.2
//! ```
//!
//! The number before the dot is the same in all datagrams of a reply, the one after it counts them, and `final` is in the last one,
//! before or after `queryid`. Some servers leave out the second number, some both, and netPanzer the first backslash. A value can
//! contain backslashes: names of players do. Nothing in a reply shows which query it answers.
//!
//! ```
//! use rallypoint_wire::query::gamespy1::Packet;
//!
//! let packet = Packet::parse(b"\\hostname\\Ada's\\player_0\\a\\b\\frags_0\\ 12\\final\\\\queryid\\17.2")?;
//! assert_eq!((packet.query, packet.part, packet.is_final), (Some(17), Some(2), true));
//! let pairs = [("hostname", "Ada's"), ("player_0", "a\\b"), ("frags_0", " 12")];
//! assert!(packet.iter().eq(pairs.map(|(key, value)| (key.as_bytes(), value.as_bytes()))));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "gamespy1";

/// Name of the query protocol for people.
pub const TITLE: &str = "GameSpy 1";

/// Default UDP port of a server: that for queries of Unreal Tournament.
pub const PORT: u16 = 7_778;

/// Longest datagram of a server in bytes: more than the 1,400 of most games.
pub const MAX_DATAGRAM: usize = 16_384;

/// Maximum number of datagrams of a reply.
pub const MAX_PARTS: u8 = 63;

/// All that a server says; the value makes Unreal Tournament say more of players.
const QUERY: &[u8] = b"\\status\\xserverquery";

const FINAL: &[u8] = b"\\final";
const QUERY_ID: &[u8] = b"\\queryid\\";

/// A datagram of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Number of the query that this answers, as counted by the server.
    pub query: Option<u32>,
    /// Number of the datagram in the reply, usually from 1 on.
    pub part: Option<u8>,
    /// Whether this is the last datagram of the reply.
    pub is_final: bool,
    pairs: &'a [u8],
}

/// Appends the query.
pub fn emit_query(out: &mut Vec<u8>) {
    out.extend_from_slice(QUERY);
}

/// Whether a datagram, which may be cut, is this query.
#[must_use]
pub fn is_query(datagram: &[u8]) -> bool {
    datagram.len() >= 8 && QUERY.starts_with(datagram)
}

impl<'a> Packet<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it does not consist of keys and values, or its number is too high.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| DecodeError::new(field, kind);
        let text = datagram.strip_suffix(b"\0").unwrap_or(datagram);
        if text.is_empty() {
            return Err(error("datagram", DecodeErrorKind::Empty));
        }
        let has_backslash = text.starts_with(b"\\");
        if matches!(text, [b'\\'] | [b'\\', b'\\', ..]) {
            return Err(error("key", DecodeErrorKind::Missing));
        }
        let id_at = text.windows(QUERY_ID.len()).rposition(|window| window == QUERY_ID);
        let (body, id, behind) = match id_at {
            Some(at) => {
                let id = &text[at + QUERY_ID.len()..];
                let (id, behind) = id.split_at(id.iter().position(|byte| *byte == b'\\').unwrap_or(id.len()));
                (&text[..at], id, behind)
            }
            None => (text, &[][..], &[][..]),
        };
        let without_mark = body.strip_suffix(b"\\").unwrap_or(body).strip_suffix(FINAL);
        let is_final = without_mark.is_some() || behind.starts_with(FINAL);
        // Otherwise any text would be a key.
        if !has_backslash && !is_final && id_at.is_none() {
            return Err(error("key", DecodeErrorKind::Missing));
        }
        let mut numbers = id.splitn(2, |byte| *byte == b'.');
        let mut number = || -> Option<u32> { str::from_utf8(numbers.next()?).ok()?.trim().parse().ok() };
        let query = number();
        let part = match number() {
            Some(part) if part > MAX_PARTS.into() => return Err(error("queryid", DecodeErrorKind::Invalid)),
            part => part.map(|part| part as u8),
        };
        Ok(Self { query, part, is_final, pairs: without_mark.unwrap_or(body) })
    }

    /// All keys with their values, in order, without those of the protocol. A key at the end without a value is left out.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.pairs;
        core::iter::from_fn(move || {
            let key = next_word(&mut rest)?;
            let start = rest;
            let mut value = next_word(&mut rest)?;
            while is_player_name(key) && continues(rest) {
                next_word(&mut rest)?;
                value = &start[1..start.len() - rest.len()];
            }
            Some((key, value))
        })
        .filter(|(key, _)| !key.is_empty())
    }
}

/// Takes the word after a backslash, or the first one of all without it.
fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let text = rest.strip_prefix(b"\\").unwrap_or(rest);
    let (word, behind) = text.split_at(text.iter().position(|byte| *byte == b'\\').unwrap_or(text.len()));
    *rest = behind;
    Some(word)
}

/// Whether what follows the name of a player belongs to it: up to three words before the next field of a player, or an odd
/// number of them at the end.
fn continues(mut rest: &[u8]) -> bool {
    for count in 0..4 {
        match next_word(&mut rest) {
            Some(word) if has_index(word) => return count > 0,
            Some(_) => {}
            None => return count % 2 == 1,
        }
    }
    false
}

fn is_player_name(key: &[u8]) -> bool {
    has_index(key) && (key.starts_with(b"player_") || key.starts_with(b"playername_"))
}

/// Whether this is a key with a number at the end: of a player, `frags_3`, or of a team, `score_t1`.
fn has_index(key: &[u8]) -> bool {
    split_index(key).is_some()
}

/// Splits a key with the number of a player or of a team.
///
/// ```
/// use rallypoint_wire::query::gamespy1::{Index, split_index};
///
/// assert_eq!(split_index(b"frags_3"), Some((&b"frags"[..], Index::Player(3))));
/// assert_eq!(split_index(b"score_t1"), Some((&b"score"[..], Index::Team(1))));
/// assert_eq!(split_index(b"time_limit"), None);
/// ```
#[must_use]
pub fn split_index(key: &[u8]) -> Option<(&[u8], Index)> {
    let at = key.iter().rposition(|byte| *byte == b'_')?;
    let (name, index) = (&key[..at], &key[at + 1..]);
    let number = |digits: &[u8]| -> Option<u16> {
        let is_plain = digits.first().is_some_and(u8::is_ascii_digit);
        str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
    };
    let index = match index {
        [b't' | b'T', digits @ ..] => Index::Team(number(digits)?),
        digits => Index::Player(number(digits)?),
    };
    Some((name, index))
}

/// The number at the end of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// The number of a player, or of a team if the key says so by its name.
    Player(u16),
    /// The number of a team.
    Team(u16),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(datagram: &[u8]) -> (Option<u32>, Option<u8>, bool, usize) {
        let packet = Packet::parse(datagram).unwrap();
        (packet.query, packet.part, packet.is_final, packet.iter().count())
    }

    #[test]
    fn the_end_of_a_datagram_has_many_forms() {
        for (datagram, expected) in [
            (&b"\\a\\1\\b\\2\\queryid\\17.1"[..], (Some(17), Some(1), false, 2)),
            (b"\\a\\1\\b\\2\\final\\\\queryid\\17.2", (Some(17), Some(2), true, 2)),
            (b"\\a\\1\\b\\2\\queryid\\17.2\\final\\", (Some(17), Some(2), true, 2)),
            (b"\\a\\1\\b\\\\queryid\\17.2\\final", (Some(17), Some(2), true, 2)),
            (b"\\a\\1\\b\\2\\final\\queryid\\17", (Some(17), None, true, 2)),
            (b"\\a\\1\\final\\\0", (None, None, true, 1)),
            (b"\\a\\1\\queryid\\x.y\\final\\", (None, None, true, 1)),
            (b"\\a\\1\\b", (None, None, false, 1)),
            (b"a\\1\\b\\2\\final\\", (None, None, true, 2)),
            (b"\\final\\\\queryid\\3.1", (Some(3), Some(1), true, 0)),
        ] {
            assert_eq!(head(datagram), expected, "{}", datagram.escape_ascii());
        }
    }

    fn pairs(text: &[u8]) -> Vec<(&[u8], &[u8])> {
        Packet::parse(text).unwrap().iter().collect()
    }

    #[test]
    fn names_may_contain_backslashes() {
        let expected: [(&[u8], &[u8]); 2] = [(b"player_0", b"a\\b\\"), (b"frags_0", b"1")];
        assert_eq!(pairs(b"\\player_0\\a\\b\\\\frags_0\\1"), expected);
        assert_eq!(pairs(b"\\frags_0\\1\\player_0\\a\\b"), [(&b"frags_0"[..], &b"1"[..]), (b"player_0", b"a\\b")]);
        // An empty name, and a key of the server after a name.
        assert_eq!(pairs(b"\\player_0\\\\frags_0\\1"), [(&b"player_0"[..], &b""[..]), (b"frags_0", b"1")]);
        assert_eq!(
            pairs(b"\\player_0\\a\\map\\b\\c\\d"),
            [(&b"player_0"[..], &b"a"[..]), (b"map", b"b"), (b"c", b"d")]
        );
    }

    #[test]
    fn datagrams_that_are_no_replies_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\0", "datagram"),
            (b"hostname\\x", "key"),
            (b"\\", "key"),
            (b"\\\\\\\\", "key"),
            (b"\\a\\1\\queryid\\1.64", "queryid"),
        ] {
            assert_eq!(Packet::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }
}
