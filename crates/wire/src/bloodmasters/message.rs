//! Messages within a datagram, and the one that asks.
//!
//! ```text
//! + 0   Length of the packet (uint16, little-endian)   counts the whole message, these two bytes too (B1, B4)
//! + 2   Message code                                   13 asks and answers; high bit: the reliable form (B9)
//! + 3   (id, 4 bytes)                                  only in the reliable form
//! + 3   "Anything you like" (4 bytes)                  sent back byte for byte (B7)
//! ```

use crate::{DecodeError, Reader, Reason, Writer};
use alloc::vec::Vec;
use core::iter::FusedIterator;

/// The message code of document 002, for the question and for the answer.
pub(super) const SERVER_INFO: u8 = 13;

/// What the high bit of a message code says: an id precedes the body, and the sender would like it confirmed (B9).
const RELIABLE: u8 = 0x80;

/// The length field and the message code: what every message has.
const HEADER: usize = 3;

/// Four bytes that a client makes up and gets back: opaque, and unpredictable if it is wise (B7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Echo(pub [u8; 4]);

/// A client asks a server about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// What the answer will carry.
    pub echo: Echo,
}

/// One message of a datagram: any message of the game, of which only [`Query`] and [`Reply`](super::Reply) are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    code: u8,
    reliable: Option<[u8; 4]>,
    body: &'a [u8],
}

/// The messages of a datagram, as far as they can be told apart (B3).
///
/// A message that is broken in itself is an error in its place. A length that cannot be one is the last thing that comes:
/// where the next message starts is then unknown, and the rest of the datagram is dropped (B4).
#[must_use]
pub fn messages(datagram: &[u8]) -> Messages<'_> {
    Messages(Reader::new(datagram))
}

/// The queries of a datagram, each of which a server answers in a datagram of its own (B3).
///
/// A large datagram can hold thousands of them: whoever answers has to stop at a budget.
pub fn queries(datagram: &[u8]) -> impl FusedIterator<Item = Query> + '_ {
    messages(datagram).flatten().filter_map(|message| Query::parse(message).ok()).fuse()
}

impl Query {
    /// How long a query is.
    pub const SIZE: usize = 7;

    /// Reads a message as a query. Bytes behind the echo are ignored (B4), the reliable form is a query too (B9).
    pub fn parse(message: Message<'_>) -> Result<Self, DecodeError> {
        let mut reader = message.server_info()?;
        Ok(Self { echo: Echo::parse(&mut reader)? })
    }

    /// Appends the query, as a datagram of its own or behind others (B3).
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u16_le(Self::SIZE as u16);
        writer.u8(SERVER_INFO);
        writer.bytes(&self.echo.0);
    }
}

impl Echo {
    /// Where the echo stands in an emitted query or reply: whoever keeps an encoded reply to answer many queries with it
    /// overwrites these bytes.
    pub const RANGE: core::ops::Range<usize> = HEADER..HEADER + 4;

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array("echo").map(|bytes| Self(*bytes))
    }
}

impl<'a> Message<'a> {
    /// Reads what follows the length field.
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

    /// What follows the code, or the id.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The body, if this is the message that document 002 is about.
    pub(super) fn server_info(&self) -> Result<Reader<'a>, DecodeError> {
        match self.code {
            SERVER_INFO => Ok(Reader::new(self.body)),
            _ => Err(DecodeError::new("message code", Reason::Unknown)),
        }
    }
}

/// Reads a length field: how many bytes of the message follow it.
pub(super) fn length(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    match usize::from(reader.u16_le("length")?) {
        length @ HEADER.. => Ok(length - 2),
        _ => Err(DecodeError::new("length", Reason::Invalid)),
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
    fn a_datagram_full_of_queries_is_walked_one_by_one() {
        let mut datagram = vec![];
        (0..9_000u32).for_each(|i| Query { echo: Echo(i.to_be_bytes()) }.emit(&mut datagram));
        assert_eq!(queries(&datagram).count(), 9_000);
        assert_eq!(queries(&datagram).nth(4_242).map(|query| query.echo), Some(Echo(4_242u32.to_be_bytes())));
    }
}
