//! The second query protocol of GameSpy: Battlefield Vietnam, Halo, America's Army and dozens of other games.
//!
//! A query asks for keys of the server, of its players and of its teams, or for some of these. A reply repeats its number. Texts
//! end with 00, and the count is big-endian:
//!
//! ```text
//! client   fe fd 00 NUMBER ff 00 00                 the server; 00 ff 00: the players; 00 00 ff: the teams
//! server   00 NUMBER KEY VALUE KEY VALUE ... 00     the server
//!          00 NUMBER COUNT KEY KEY ... 00 VALUE VALUE ...        a table of players or of teams, with rows of values
//! ```
//!
//! A reply has at most 1,400 bytes: what does not fit is left out. Some games leave out the lower byte of the count.
//!
//! ```
//! use rallypoint_wire::query::gamespy2::{Reply, Request};
//!
//! let mut query = Vec::new();
//! Request::Players.emit([1, 2, 3, 4], &mut query);
//! assert_eq!(query, [0xfe, 0xfd, 0, 1, 2, 3, 4, 0, 0xff, 0]);
//!
//! let reply = Reply::parse(b"\0\x01\x02\x03\x04\0\x01player_\0score_\0\0Ada\x0012\0")?;
//! assert_eq!(reply.number, [1, 2, 3, 4]);
//! let table = reply.table()?;
//! assert_eq!((table.columns.len(), table.count), (2, Some(1)));
//! assert_eq!(table.rows().next(), Some(vec![&b"Ada"[..], b"12"]));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "gamespy2";

/// Name of the query protocol for people.
pub const TITLE: &str = "GameSpy 2";

/// Default UDP port of a server: that for queries of Battlefield Vietnam.
pub const PORT: u16 = 23_000;

/// Longest datagram of a server in bytes: more than the 1,400 of most games.
pub const MAX_DATAGRAM: usize = 16_384;

/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 64;

/// First bytes of a query.
pub(super) const MAGIC: [u8; 2] = [0xfe, 0xfd];

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The keys of the server.
    Server,
    /// The players.
    Players,
    /// The teams.
    Teams,
}

/// A reply whose contents have not been parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The number of the query.
    pub number: [u8; 4],
    body: &'a [u8],
}

/// Keys and values of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// The keys with their values, in order.
    pub pairs: Vec<(&'a [u8], &'a [u8])>,
    /// Whether the end of the keys is there.
    pub is_complete: bool,
}

/// A table of players or of teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<'a> {
    /// The keys.
    pub columns: Vec<&'a [u8]>,
    /// Number of rows on the server, which may be more than there are. None if the game leaves it out.
    pub count: Option<u16>,
    values: &'a [u8],
}

impl Request {
    /// Appends the datagram.
    pub fn emit(self, number: [u8; 4], out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.push(0);
        out.extend_from_slice(&number);
        out.extend_from_slice(match self {
            Self::Server => &[0xff, 0, 0],
            Self::Players => &[0, 0xff, 0],
            Self::Teams => &[0, 0, 0xff],
        });
    }
}

impl<'a> Reply<'a> {
    /// Parses the beginning of a datagram from a server.
    ///
    /// # Errors
    /// If it is not such a reply.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        match datagram {
            [] => error("datagram", DecodeErrorKind::Empty),
            [0, a, b, c, d, body @ ..] => Ok(Self { number: [*a, *b, *c, *d], body }),
            [0, ..] => error("number", DecodeErrorKind::Truncated),
            _ => error("type", DecodeErrorKind::Unknown),
        }
    }

    /// Parses the keys of a server. What is cut off is left out.
    ///
    /// # Errors
    /// If there is no key.
    pub fn keys(&self) -> Result<Keys<'a>, DecodeError> {
        let mut rest = self.body;
        let mut pairs = Vec::new();
        let is_complete = loop {
            match next_text(&mut rest) {
                Some([]) => break true,
                Some(key) => match next_text(&mut rest) {
                    Some(value) => pairs.push((key, value)),
                    None => break false,
                },
                None => break false,
            }
        };
        if !is_complete {
            // The engine cuts the last value, and ends it all the same.
            pairs.pop();
        }
        if pairs.is_empty() {
            return Err(DecodeError::new("keys", DecodeErrorKind::Missing));
        }
        Ok(Keys { pairs, is_complete })
    }

    /// Parses a table of players or of teams.
    ///
    /// # Errors
    /// If it ends before the values.
    pub fn table(&self) -> Result<Table<'a>, DecodeError> {
        let error = |field, kind| DecodeError::new(field, kind);
        let (&high, behind_high) = self.body.split_first().ok_or(error("count", DecodeErrorKind::Truncated))?;
        let has_count = !(high == 0 && begins_with_column(behind_high));
        let (count, mut rest) = match (has_count, behind_high) {
            (true, [low, rest @ ..]) => (Some(u16::from_be_bytes([high, *low])), rest),
            // Nothing follows where there are no rows.
            (true, []) if high == 0 => (Some(0), behind_high),
            (true, []) => return Err(error("count", DecodeErrorKind::Truncated)),
            (false, _) => (None, behind_high),
        };
        let mut columns = Vec::new();
        if count == Some(0) {
            return Ok(Table { columns, count, values: &[] });
        }
        loop {
            match next_text(&mut rest) {
                Some([]) => break,
                Some(_) if columns.len() >= MAX_COLUMNS => return Err(error("columns", DecodeErrorKind::TooLong)),
                Some(column) => columns.push(column),
                None => return Err(error("columns", DecodeErrorKind::Truncated)),
            }
        }
        if columns.is_empty() {
            return Err(error("columns", DecodeErrorKind::Missing));
        }
        Ok(Table { columns, count, values: rest })
    }
}

/// Whether a key of a table begins here, rather than the lower byte of the count.
fn begins_with_column(text: &[u8]) -> bool {
    const KNOWN: [&[u8]; 12] = [
        b"player_", b"name_", b"score_", b"ping_", b"team_", b"deaths_", b"kills_", b"honor_", b"goal_", b"leader_",
        b"team_t", b"score_t",
    ];
    KNOWN.iter().any(|known| text.strip_prefix(*known).is_some_and(|rest| rest.starts_with(b"\0")))
}

impl<'a> Table<'a> {
    /// The rows that are complete, as many as there should be. Without a number, a row that begins with an empty text is the end.
    pub fn rows(&self) -> impl Iterator<Item = Vec<&'a [u8]>> {
        let mut rest = self.values;
        let limit = self.count.map_or(usize::MAX, usize::from);
        let row = move || {
            let row: Option<Vec<_>> = self.columns.iter().map(|_| next_text(&mut rest)).collect();
            row.filter(|row| {
                !row.is_empty() && (self.count.is_some() || row.first().is_some_and(|first| !first.is_empty()))
            })
        };
        core::iter::from_fn(row).take(limit)
    }
}

pub(super) fn next_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (text, behind) = rest.split_at(end);
    *rest = &behind[1..];
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(body: &[u8]) -> Reply<'_> {
        Reply { number: [0; 4], body }
    }

    #[test]
    fn keys_that_are_cut_are_left_out() {
        let keys = |bytes| body(bytes).keys().map(|keys| (keys.pairs, keys.is_complete)).ok();
        let a = (&b"a"[..], &b"1"[..]);
        let b = (&b"b"[..], &b""[..]);
        assert_eq!(keys(b"a\x001\0b\0\0\0"), Some(([a, b].to_vec(), true)));
        assert_eq!(keys(b"a\x001\0b\0\0"), Some(([a].to_vec(), false)));
        assert_eq!(keys(b"a\x001\0b\0x"), None);
        assert_eq!(keys(b""), None);
        assert_eq!(keys(b"\0"), None);
    }

    fn table(bytes: &[u8]) -> Result<(usize, Option<u16>, usize), &'static str> {
        let table = body(bytes).table().map_err(|error| error.field)?;
        Ok((table.columns.len(), table.count, table.rows().count()))
    }

    #[test]
    fn tables_have_a_count_of_rows_or_none() {
        assert_eq!(table(b"\0\x02player_\0score_\0\0Ada\x001\0Bob\0\0"), Ok((2, Some(2), 2)));
        assert_eq!(table(b"\0player_\0score_\0\0Ada\x001\0Bob\0\0"), Ok((2, None, 2)));
        assert_eq!(table(b"\0player_\0score_\0\0Ada\x001\0\0\0"), Ok((2, None, 1)));
        assert_eq!(table(b"\0\x02player_\0\0\0Bob\0"), Ok((1, Some(2), 2)), "an empty name");
        assert_eq!(table(b"\0\0"), Ok((0, Some(0), 0)));
        assert_eq!(table(b"\0"), Ok((0, Some(0), 0)));
        assert_eq!(table(b"\0\0player_\0score_\0\0"), Ok((0, Some(0), 0)));
        // The letter p is a number as well.
        let many = [b"\0pplayer_\0\0".as_slice(), &b"x\0".repeat(112)].concat();
        assert_eq!(table(&many), Ok((1, Some(112), 112)));
        let many = [b"\x01\x2cplayer_\0\0".as_slice(), &b"x\0".repeat(300)].concat();
        assert_eq!(table(&many), Ok((1, Some(300), 300)));
    }

    #[test]
    fn tables_that_are_cut_have_fewer_rows_or_are_errors() {
        assert_eq!(table(b"\0\x03player_\0score_\0\0Ada\x001\0Bob\x0012"), Ok((2, Some(3), 1)));
        assert_eq!(table(b""), Err("count"));
        assert_eq!(table(b"\x01"), Err("count"));
        assert_eq!(table(b"\0\x01player_\0score_"), Err("columns"));
        assert_eq!(table(b"\0\x01\0"), Err("columns"));
        let wide = [b"\0\x01".as_slice(), &b"x\0".repeat(65)].concat();
        assert_eq!(table(&wide), Err("columns"));
    }

    #[test]
    fn datagrams_that_are_no_replies_are_errors() {
        for (bytes, field) in [(&b""[..], "datagram"), (b"\0\x01\x02\x03", "number"), (b"\x09\x01\x02\x03\x04", "type")]
        {
            assert_eq!(Reply::parse(bytes).unwrap_err().field, field);
        }
    }
}
