//! Messages within a datagram, and the query.
//!
//! ```text
//! + 0   Length of the packet (uint16, little-endian)   counts the whole message, these two bytes too (B1, B4)
//! + 2   Message code                                   13: query and reply; high bit: reliable form (B9)
//! + 3   (id, 4 bytes)                                  only in the reliable form
//! + 3   "Anything you like" (4 bytes)                  sent back byte for byte (B7)
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;
use core::iter::FusedIterator;

/// Message code of document 002, for query and reply.
pub(super) const SERVER_INFO: u8 = 13;

/// High bit of the message code: an id precedes the body, and the sender requests a confirmation (B9).
const RELIABLE: u8 = 0x80;

/// Size in bytes of the length field and the message code, which every message has.
const HEADER: usize = 3;

/// Four opaque bytes that a client chooses, preferably unpredictable, and the reply repeats (B7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Echo(pub [u8; 4]);

/// A query for the description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The bytes that the reply will repeat.
    pub echo: Echo,
}

/// A message of a datagram: any message of the game, of which only [`Query`] and [`Reply`](super::Reply) are parsed further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    code: u8,
    reliable: Option<[u8; 4]>,
    body: &'a [u8],
}

/// Iterates over the messages of a datagram (B3).
///
/// A malformed message yields an error, and the iteration continues. An invalid length ends it: the start of the next
/// message is then unknown, and the rest of the datagram is dropped (B4).
#[must_use]
pub fn messages(datagram: &[u8]) -> Messages<'_> {
    Messages(Reader::new(datagram))
}

/// Iterates over the queries of a datagram, each of which a server answers in a datagram of its own (B3).
///
/// A large datagram can hold thousands of queries: a server has to limit the number of its replies.
pub fn queries(datagram: &[u8]) -> impl FusedIterator<Item = Query> + '_ {
    messages(datagram).flatten().filter_map(|message| Query::parse(message).ok()).fuse()
}

impl Query {
    /// Size of a query in bytes.
    pub const SIZE: usize = 7;

    /// Parses a message as a query. Bytes after the echo are ignored (B4); the reliable form is accepted, too (B9).
    pub fn parse(message: Message<'_>) -> Result<Self, DecodeError> {
        let mut reader = message.server_info()?;
        Ok(Self { echo: Echo::parse(&mut reader)? })
    }

    /// Appends the query, as a datagram of its own or after other messages (B3).
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u16_le(Self::SIZE as u16);
        writer.u8(SERVER_INFO);
        writer.bytes(&self.echo.0);
    }
}

impl Echo {
    /// Position of the echo in an emitted query or reply: a server that reuses an encoded reply for many queries overwrites
    /// these bytes.
    pub const RANGE: core::ops::Range<usize> = HEADER..HEADER + 4;

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array("echo").map(|bytes| Self(*bytes))
    }
}

impl<'a> Message<'a> {
    /// Parses the bytes after the length field.
    pub(super) fn parse(content: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(content);
        let code = reader.u8("message code")?;
        let reliable = if code & RELIABLE == 0 { None } else { Some(*reader.array("message id")?) };
        Ok(Self { code: code & !RELIABLE, reliable, body: reader.rest() })
    }

    /// The message code, without the bit of the reliable form.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// The id that a message of the reliable form has (B9).
    #[must_use]
    pub const fn reliable(&self) -> Option<[u8; 4]> {
        self.reliable
    }

    /// The bytes after the code, or after the id.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The body, if this is a query or reply of document 002.
    pub(super) fn server_info(&self) -> Result<Reader<'a>, DecodeError> {
        match self.code {
            SERVER_INFO => Ok(Reader::new(self.body)),
            _ => Err(DecodeError::new("message code", DecodeErrorKind::Unknown)),
        }
    }
}

/// Parses a length field; returns the number of bytes that follow it.
pub(super) fn length(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    match usize::from(reader.u16_le("length")?) {
        length @ HEADER.. => Ok(length - 2),
        _ => Err(DecodeError::new("length", DecodeErrorKind::Invalid)),
    }
}

/// The messages of a datagram: see [`messages`].
#[derive(Clone, Debug)]
pub struct Messages<'a>(Reader<'a>);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = &mut self.0;
        if reader.is_empty() {
            return None;
        }
        let content = length(reader).and_then(|length| reader.bytes(length, "message"));
        if content.is_err() {
            reader.take_rest();
        }
        Some(content.and_then(Message::parse))
    }
}

impl FusedIterator for Messages<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec};

    fn echoes(datagram: &[u8]) -> Vec<[u8; 4]> {
        queries(datagram).map(|query| query.echo.0).collect()
    }

    const ASKED: [u8; 4] = [1, 2, 3, 4];

    #[test]
    fn b1_the_length_is_little_endian() {
        let mut bytes = Vec::new();
        Query { echo: Echo(ASKED) }.emit(&mut bytes);
        assert_eq!(bytes, [7, 0, 13, 1, 2, 3, 4]);
        assert_eq!(echoes(&bytes), [ASKED]);
        assert!(echoes(&[0, 7, 13, 1, 2, 3, 4]).is_empty());
    }

    #[test]
    fn b3_each_query_of_a_datagram_counts_and_a_rest_that_is_none_does_not() {
        let datagram = [7, 0, 13, 1, 2, 3, 4, 4, 0, 99, 0xff, 7, 0, 13, 5, 6, 7, 8, 7];
        assert_eq!(echoes(&datagram), [ASKED, [5, 6, 7, 8]]);
        let all: Vec<_> = messages(&datagram).collect();
        assert_eq!(all.len(), 4);
        assert_eq!(all[1].map(|message| (message.code(), message.body())), Ok((99, &[0xff][..])));
        assert_eq!(format!("{}", all[3].unwrap_err()), "truncated in length");
    }

    #[test]
    fn b4_a_length_beyond_the_datagram_drops_the_rest() {
        assert!(echoes(&[8, 0, 13, 1, 2, 3, 4]).is_empty());
        assert!(echoes(&[0, 0, 13, 1, 2, 3, 4, 7, 0, 13, 1, 2, 3, 4]).is_empty());
        assert!(echoes(&[2, 0, 7, 0, 13, 1, 2, 3, 4]).is_empty());
        assert_eq!(messages(&[8, 0, 13, 1, 2, 3, 4]).count(), 1, "one error, then the end");
    }

    #[test]
    fn b4_extra_bytes_in_a_query_are_ignored_and_a_short_one_is_none() {
        assert_eq!(echoes(&[11, 0, 13, 1, 2, 3, 4, 9, 9, 9, 9]), [ASKED]);
        assert!(echoes(&[6, 0, 13, 1, 2, 3]).is_empty());
        assert_eq!(echoes(&[3, 0, 13, 7, 0, 13, 1, 2, 3, 4]), [ASKED]);
    }

    #[test]
    fn b9_the_reliable_form_is_a_query_too() {
        assert_eq!(echoes(&[11, 0, 141, 0, 0, 0, 5, 1, 2, 3, 4]), [ASKED]);
        assert!(echoes(&[7, 0, 141, 1, 2, 3, 4]).is_empty(), "the echo is eaten as id");
        assert!(echoes(&[3, 0, 141]).is_empty());
        assert_eq!(echoes(&[3, 0, 141, 7, 0, 13, 1, 2, 3, 4]), [ASKED], "one broken message does not hide the next");
    }

    #[test]
    fn b10_an_empty_datagram_holds_nothing() {
        assert_eq!(messages(&[]).next(), None);
    }

    #[test]
    fn a_datagram_full_of_queries_yields_each_of_them() {
        let mut datagram = vec![];
        (0..9_000u32).for_each(|i| Query { echo: Echo(i.to_be_bytes()) }.emit(&mut datagram));
        assert_eq!(queries(&datagram).count(), 9_000);
        assert_eq!(queries(&datagram).nth(4_242).map(|query| query.echo), Some(Echo(4_242u32.to_be_bytes())));
    }
}
