//! The third query protocol of GameSpy: Battlefield 2, Crysis, Unreal Tournament 3, S.T.A.L.K.E.R. and others.
//!
//! A server answers a query only with the challenge that it sent before, if it uses challenges at all. A challenge can be used
//! once. The reply consists of up to 128 datagrams, in any order, all with the number of the query:
//!
//! ```text
//! client   fe fd 09 NUMBER
//! server   09 NUMBER "-1287574694" 00               the challenge, or 0 if none is used
//! client   fe fd 00 NUMBER [CHALLENGE] ff ff ff 01  4 bytes, big-endian
//! server   00 NUMBER "splitnum" 00 PART SECTION SECTION ...     part: from 0 on, 80 is added to the last one
//!
//! section  00 KEY VALUE KEY VALUE ... 00            the server
//!          01 KEY FROM VALUE VALUE ... 00 KEY FROM VALUE ... 00 00        players: a column of values for each key
//!          02 KEY FROM VALUE VALUE ... 00 ...                             teams
//! ```
//!
//! `FROM` is the number of the player or team of the first value. What does not fit into a datagram is cut, and repeated in the
//! next one. A value may be empty, which looks like the end of its column.
//!
//! ```
//! use rallypoint_wire::query::gamespy3::{Item, Response};
//!
//! let reply = b"\0\x01\x02\x03\x04splitnum\0\x80\0hostname\0Ada's\0\0\x01player_\0\0Ada\0\0Cy\0\0\0";
//! let Response::Part(part) = Response::parse(reply)? else { panic!("not a part") };
//! assert_eq!((part.number, part.index, part.is_last), ([1, 2, 3, 4], 0, true));
//! let column = &b"player_"[..];
//! let expected = [
//!     Item::Key { key: b"hostname", value: b"Ada's" },
//!     Item::Player { column, number: 0, value: b"Ada" },
//!     Item::Player { column, number: 2, value: b"Cy" },
//! ];
//! assert!(part.items().eq(expected));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use super::gamespy2::{MAGIC, next_text};
use crate::{DecodeError, DecodeErrorKind};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "gamespy3";

/// Name of the query protocol for people.
pub const TITLE: &str = "GameSpy 3";

/// Default UDP port of a server: that for queries of Battlefield 2.
pub const PORT: u16 = 29_900;

/// Longest datagram of a server in bytes: more than the 1,400 of most games.
pub const MAX_DATAGRAM: usize = 16_384;

/// All keys of the server, the players and the teams, in several datagrams.
const EVERYTHING: [u8; 4] = [0xff, 0xff, 0xff, 0x01];

const SPLIT: &[u8] = b"splitnum\0";

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// For a challenge.
    Challenge,
    /// For everything, with a challenge if the server uses one.
    Everything(Option<[u8; 4]>),
}

/// A datagram of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// A challenge.
    Challenge {
        /// Number of the query.
        number: [u8; 4],
        /// The challenge; none if the server does not use any.
        challenge: Option<[u8; 4]>,
    },
    /// A part of the reply to a query for everything.
    Part(Part<'a>),
}

/// A part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Number of the query.
    pub number: [u8; 4],
    /// Number of the part, from 0 to 127.
    pub index: u8,
    /// Whether this is the last part.
    pub is_last: bool,
    sections: &'a [u8],
}

/// A value in a part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// Of the server.
    Key {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Of a player.
    Player {
        /// The key.
        column: &'a [u8],
        /// Number of the player.
        number: u16,
        /// The value, which is not empty.
        value: &'a [u8],
    },
    /// Of a team.
    Team {
        /// The key.
        column: &'a [u8],
        /// Number of the team.
        number: u16,
        /// The value, which is not empty.
        value: &'a [u8],
    },
}

impl Request {
    /// Appends the datagram.
    pub fn emit(self, number: [u8; 4], out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.push(if self == Self::Challenge { 9 } else { 0 });
        out.extend_from_slice(&number);
        if let Self::Everything(challenge) = self {
            out.extend(challenge.into_iter().flatten());
            out.extend_from_slice(&EVERYTHING);
        }
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these replies. A part that is cut off is not an error.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        let Some((kind, rest)) = datagram.split_first() else { return error("datagram", DecodeErrorKind::Empty) };
        if !matches!(kind, 0 | 9) {
            return error("type", DecodeErrorKind::Unknown);
        }
        let Some((number, body)) = rest.split_first_chunk() else { return error("number", DecodeErrorKind::Truncated) };
        let number = *number;
        if *kind == 9 {
            let Some(challenge) = parse_challenge(body) else { return error("challenge", DecodeErrorKind::Invalid) };
            let challenge = (challenge != 0).then(|| challenge.to_be_bytes());
            return Ok(Self::Challenge { number, challenge });
        }
        let part = match body.strip_prefix(SPLIT) {
            Some([part, sections @ ..]) => Part { number, index: part & 0x7f, is_last: part & 0x80 != 0, sections },
            Some([]) => return error("part", DecodeErrorKind::Truncated),
            // Without parts, a reply consists of one, and begins with the keys of the server.
            None => Part { number, index: 0, is_last: true, sections: body },
        };
        if part.items().next().is_none() && part.index == 0 {
            return error("keys", DecodeErrorKind::Missing);
        }
        Ok(Self::Part(part))
    }
}

/// A challenge is a decimal number with a sign or without one. Some servers leave out its end.
fn parse_challenge(text: &[u8]) -> Option<u32> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    let number: i64 = str::from_utf8(text).ok()?.trim().parse().ok()?;
    i32::try_from(number).map(i32::cast_unsigned).or_else(|_| u32::try_from(number)).ok()
}

impl<'a> Part<'a> {
    /// All values, in order. What is cut off is left out.
    #[must_use]
    pub fn items(&self) -> Items<'a> {
        // A reply without parts does not say that it begins with the keys of the server.
        let (section, rest) = match self.sections {
            [section @ 0..=2, rest @ ..] => (*section, rest),
            rest => (0, rest),
        };
        Items { rest, section: Some(section), column: None }
    }
}

/// The values of a part of a reply.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
    /// The kind of the current section; none between sections.
    section: Option<u8>,
    /// The current column, and the number of the next value.
    column: Option<(&'a [u8], u16)>,
}

impl<'a> Items<'a> {
    fn begin_section(&mut self) -> Option<()> {
        let (section, rest) = self.rest.split_first()?;
        self.rest = rest;
        // Some servers fill up the space between sections.
        self.section = (*section <= 2).then_some(*section);
        self.section.map(|_| ())
    }

    fn key(&mut self) -> Option<Option<Item<'a>>> {
        let key = next_text(&mut self.rest)?;
        if key.is_empty() {
            self.section = None;
            return Some(None);
        }
        let value = next_text(&mut self.rest)?;
        Some(Some(Item::Key { key, value }))
    }

    fn begin_column(&mut self) -> Option<()> {
        let column = next_text(&mut self.rest)?;
        if column.is_empty() {
            self.section = None;
            return Some(());
        }
        let (from, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.column = Some((column, u16::from(*from)));
        Some(())
    }

    /// The next value of a column that is not empty; none at the end of the column.
    fn value(&mut self, column: &'a [u8], number: u16, section: u8) -> Option<Option<Item<'a>>> {
        let value = next_text(&mut self.rest)?;
        if !value.is_empty() {
            self.column = Some((column, number.saturating_add(1)));
            return Some(Some(match section {
                1 => Item::Player { column, number, value },
                _ => Item::Team { column, number, value },
            }));
        }
        let empty = 1 + self.rest.iter().take_while(|byte| **byte == 0).count();
        self.rest = &self.rest[empty - 1..];
        self.column = None;
        if is_end_of_section(self.rest) {
            self.section = None;
        } else if !begins_with_column(self.rest) {
            self.column = Some((column, number.saturating_add(u16::try_from(empty).unwrap_or(u16::MAX))));
        }
        Some(None)
    }
}

/// Whether this is the end of the datagram or the beginning of another section, rather than a value.
fn is_end_of_section(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [1 | 2, section @ ..] => matches!(section, [] | [0, ..]) || begins_with_column(section),
        _ => false,
    }
}

/// Whether this is the key of a column, rather than a value.
fn begins_with_column(text: &[u8]) -> bool {
    let mut rest = text;
    let name = next_text(&mut rest).unwrap_or_default();
    name.ends_with(b"_") || name.ends_with(b"_t")
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            let item = match (self.section, self.column) {
                (None, _) => self.begin_section().map(|()| None),
                (Some(0), _) => self.key(),
                (Some(_), None) => self.begin_column().map(|()| None),
                (Some(section), Some((column, number))) => self.value(column, number, section),
            };
            match item {
                Some(Some(item)) => return Some(item),
                Some(None) => {}
                None => {
                    self.rest = &[];
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_the_bytes_of_the_library() {
        let emit = |request: Request| {
            let mut out = Vec::new();
            request.emit([1, 2, 3, 4], &mut out);
            out
        };
        assert_eq!(emit(Request::Challenge), b"\xfe\xfd\x09\x01\x02\x03\x04");
        assert_eq!(emit(Request::Everything(None)), b"\xfe\xfd\0\x01\x02\x03\x04\xff\xff\xff\x01");
        let challenge = Request::Everything(Some([0xb3, 0x41, 0x2b, 0x5a]));
        assert_eq!(emit(challenge), b"\xfe\xfd\0\x01\x02\x03\x04\xb3\x41\x2b\x5a\xff\xff\xff\x01");
    }

    #[test]
    fn a_challenge_is_a_number_with_or_without_a_sign() {
        for (text, expected) in [
            (&b"-1287574694\0"[..], Ok(Some([0xb3, 0x41, 0x2b, 0x5a]))),
            (b"3007392602", Ok(Some([0xb3, 0x41, 0x2b, 0x5a]))),
            (b"0\0", Ok(None)),
            (b"", Err("challenge")),
            (b"x\0", Err("challenge")),
            (b"4294967296\0", Err("challenge")),
        ] {
            let datagram = [b"\x09\x01\x02\x03\x04", text].concat();
            let challenge = Response::parse(&datagram).map_err(|error| error.field).map(|response| match response {
                Response::Challenge { challenge, .. } => challenge,
                Response::Part(_) => panic!("not a challenge"),
            });
            assert_eq!(challenge, expected, "{}", text.escape_ascii());
        }
    }

    fn items(sections: &[u8]) -> Vec<Item<'_>> {
        Part { number: [0; 4], index: 1, is_last: false, sections }.items().collect()
    }

    fn player(column: &'static str, number: u16, value: &'static str) -> Item<'static> {
        Item::Player { column: column.as_bytes(), number, value: value.as_bytes() }
    }

    fn team(column: &'static str, number: u16, value: &'static str) -> Item<'static> {
        Item::Team { column: column.as_bytes(), number, value: value.as_bytes() }
    }

    #[test]
    fn sections_follow_each_other_and_may_begin_anywhere() {
        let sections = b"\x01score_\0\x03-3\x007\0\0ping_\0\0\x0048\0\0\0\x02team_t\0\0red\0blue\0\0\0";
        let expected = [
            player("score_", 3, "-3"),
            player("score_", 4, "7"),
            player("ping_", 1, "48"),
            team("team_t", 0, "red"),
            team("team_t", 1, "blue"),
        ];
        assert_eq!(items(sections), expected);
        assert_eq!(items(b"\x00a\x001\0\0\x01\0\x02\0"), [Item::Key { key: b"a", value: b"1" }]);
        assert_eq!(items(b"\x01player_\0\0\0\x02team_t\0\0\0\0"), []);
    }

    #[test]
    fn empty_values_are_not_the_end_of_their_column() {
        let sections = b"\x01player_\0\0\0\0Ada\0\0Cy\0\0\0team_\0\x01\x001\0\0\0";
        assert_eq!(items(sections), [player("player_", 2, "Ada"), player("player_", 4, "Cy"), player("team_", 2, "1")]);
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        assert_eq!(items(b"\x01player_\0\0Ada\0Bo"), [player("player_", 0, "Ada")]);
        assert_eq!(items(b"\x00a\x001\0b\x002"), [Item::Key { key: b"a", value: b"1" }]);
        for nothing in
            [&b""[..], b"\x01", b"\x01player_", b"\x01player_\0", b"\x01player_\0\x05", b"\x00a\0", b"\x02\0\0\0\0"]
        {
            assert_eq!(items(nothing), [], "{}", nothing.escape_ascii());
        }
    }

    #[test]
    fn datagrams_that_are_no_replies_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\x01", "type"),
            (b"\0\x01\x02\x03", "number"),
            (b"\0\x01\x02\x03\x04", "keys"),
            (b"\0\x01\x02\x03\x04splitnum\0", "part"),
            (b"\0\x01\x02\x03\x04splitnum\0\x80\0", "keys"),
        ] {
            assert_eq!(Response::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
        let Ok(Response::Part(part)) = Response::parse(b"\0\x01\x02\x03\x04hostname\0x\0\0") else { panic!("no part") };
        assert_eq!((part.index, part.is_last, part.items().count()), (0, true, 1));
    }
}
