//! Legacy list requests and replies.
//!
//! ```text
//! request:  + 0   version                        see `version`: 1 or 17 bytes
//! reply:    + 0   Server count (uint8)           at most 255
//!           + 1   for each server:
//!                 + 0   info length (uint8)
//!                 + 1   info text                see `info`
//!                 + n   IPv4 address (4 bytes)
//!                 + n+4 port (uint16, little-endian)
//! ```

use super::{Info, MAX_SERVERS, version};
use crate::{
    DecodeError, DecodeErrorKind, Reader, Writer,
    counted::counted,
    lobby::{Endpoint, ProtocolId},
};
use alloc::vec::Vec;
use core::{net::Ipv4Addr, num::NonZeroU16};

/// A request for the servers of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// Protocol of the client.
    pub protocol_id: ProtocolId,
}

/// A server as the list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListEntry<'a> {
    /// Description of the server.
    pub info: Info<'a>,
    /// IPv4 endpoint of the server.
    pub endpoint: Endpoint<Ipv4Addr>,
}

impl ListRequest {
    /// Size in bytes of a request that starts with this byte.
    #[must_use]
    pub const fn size(first: u8) -> usize {
        if first == version::UUID_FOLLOWS { 17 } else { 1 }
    }

    /// Parses a request; bytes after it are ignored (as in L14).
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        version::parse(&mut Reader::new(bytes)).map(|protocol_id| Self { protocol_id })
    }

    /// Appends the request.
    pub fn emit(&self, out: &mut Vec<u8>) {
        version::emit(self.protocol_id, &mut Writer::new(out));
    }
}

impl<'a> ListEntry<'a> {
    /// The outer error is a truncated reply, the inner one an invalid entry.
    fn parse(reader: &mut Reader<'a>) -> Result<Result<Self, DecodeError>, DecodeError> {
        let info = Info::parse_counted(reader)?;
        let ip = Ipv4Addr::from(*reader.array("IPv4 address")?);
        let port = NonZeroU16::new(reader.u16_le("port")?).ok_or(DecodeError::new("port", DecodeErrorKind::Zero));
        Ok(port.map(|port| Self { info, endpoint: Endpoint { ip, port } }))
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        self.info.emit_counted(writer);
        writer.bytes(&self.endpoint.ip.octets());
        writer.u16_le(self.endpoint.port.get());
    }
}

/// Appends a complete reply with the first 255 entries: the count is one byte.
pub fn emit_list<'a>(entries: impl IntoIterator<Item = ListEntry<'a>>, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.u8(0);
    let mut count = 0;
    for entry in entries.into_iter().take(MAX_SERVERS) {
        entry.emit(&mut writer);
        count += 1;
    }
    writer.patch(0, &[count]);
}

/// Iterates over the servers of a complete reply.
///
/// An entry with port 0 yields an error, and the iteration continues with the next entry. A reply that is truncated or has
/// trailing bytes ends with an error.
pub fn entries(reply: &[u8]) -> impl Iterator<Item = Result<ListEntry<'_>, DecodeError>> {
    let mut reader = Reader::new(reply);
    let count = reader.u8("server count").map(u32::from);
    counted(reader, count, ListEntry::parse)
}

/// Parses a reply as it arrives, one entry at a time, like [`lobby::ListReader`](crate::lobby::ListReader).
#[derive(Debug)]
pub struct ListReader {
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that have been returned.
    taken: usize,
    /// Number of remaining entries; `None` before the count.
    left: Option<u8>,
}

impl Default for ListReader {
    fn default() -> Self {
        Self::new()
    }
}

impl ListReader {
    /// A reader at the start of a reply.
    #[must_use]
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), taken: 0, left: None }
    }

    /// Adds received bytes. Call [`next_entry`](Self::next_entry) until it returns none before the next `push`: then at most
    /// one entry (262 bytes) and one piece are buffered.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.left == Some(0) && !self.buffer.is_empty() {
            // After the last entry, one byte is enough to know that there are trailing bytes.
            self.buffer.truncate(1);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next complete entry. An entry with port 0 yields an error.
    pub fn next_entry(&mut self) -> Option<Result<ListEntry<'_>, DecodeError>> {
        let mut reader = Reader::new(&self.buffer[self.taken..]);
        if self.left.is_none() {
            self.left = Some(reader.u8("server count").ok()?);
            self.taken += 1;
        }
        let left = self.left?.checked_sub(1)?;
        let entry = ListEntry::parse(&mut reader).ok()?;
        self.taken = self.buffer.len() - reader.rest().len();
        self.left = Some(left);
        Some(entry)
    }

    /// Number of servers that the reply announced, minus those already returned; `None` before the first byte.
    #[must_use]
    pub const fn remaining(&self) -> Option<u8> {
        self.left
    }

    /// Checks, when the connection is closed, that the reply was complete and had no trailing bytes.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.left {
            Some(0) => Reader::new(&self.buffer[self.taken..]).finish("list"),
            _ => Err(DecodeError::new("list", DecodeErrorKind::Truncated)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legacy::{Counts, protocol_of_version};
    use alloc::{string::ToString, vec};

    const REPLY: &[u8] = b"\x02\x0b[m] n [1/2]\xcb\x00\x71\x09\xfe\x1f\x07x [0/8]\xc0\x00\x02\x01\x01\x00";

    fn list() -> [ListEntry<'static>; 2] {
        let endpoint = |ip: [u8; 4], port: u16| Endpoint { ip: ip.into(), port: port.try_into().unwrap() };
        let counts = |players, slots| Some(Counts { players, bots: 0, slots });
        let first = Info { map: Some(b"m"), name: b"n", counts: counts(1, 2), ..Info::default() };
        let second = Info { name: b"x", counts: counts(0, 8), ..Info::default() };
        [
            ListEntry { info: first, endpoint: endpoint([203, 0, 113, 9], 8190) },
            ListEntry { info: second, endpoint: endpoint([192, 0, 2, 1], 1) },
        ]
    }

    #[test]
    fn l16_a_list_round_trips() {
        let mut bytes = Vec::new();
        emit_list(list(), &mut bytes);
        assert_eq!(bytes, REPLY);
        assert_eq!(entries(REPLY).collect::<Result<Vec<_>, _>>(), Ok(list().to_vec()));
        assert_eq!(entries(&[0]).count(), 0);
    }

    #[test]
    fn l16_a_list_in_pieces_of_any_size() {
        for size in 1..=REPLY.len() {
            let mut reader = ListReader::new();
            let mut seen = 0;
            assert_eq!(reader.remaining(), None);
            for piece in REPLY.chunks(size) {
                reader.push(piece);
                while let Some(entry) = reader.next_entry() {
                    assert_eq!(entry, Ok(list()[seen]));
                    seen += 1;
                }
            }
            assert_eq!((seen, reader.remaining()), (2, Some(0)));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn l16_truncated_lists_and_trailing_bytes_are_errors() {
        for length in 0..REPLY.len() {
            let last = entries(&REPLY[..length]).last().unwrap();
            assert_eq!(last.unwrap_err().kind, DecodeErrorKind::Truncated, "{length}");
        }
        let more = [REPLY, b"!"].concat();
        assert_eq!(entries(&more).last().unwrap().unwrap_err().to_string(), "trailing bytes after list");
        assert_eq!(entries(&more).count(), 3);
    }

    #[test]
    fn an_endless_reply_is_not_buffered() {
        let mut reader = ListReader::new();
        for _ in 0..1_000 {
            reader.push(&[0; 100]);
            assert_eq!(reader.next_entry(), None);
        }
        assert!(reader.buffer.len() <= 100);
        assert_eq!(reader.finish().unwrap_err().to_string(), "trailing bytes after list");
    }

    #[test]
    fn l16_an_entry_with_port_0_does_not_hide_the_next() {
        let mut bytes = REPLY.to_vec();
        bytes[17..19].fill(0);
        let read: Vec<_> = entries(&bytes).collect();
        assert_eq!(read, [Err(DecodeError::new("port", DecodeErrorKind::Zero)), Ok(list()[1])]);
    }

    #[test]
    fn l16_a_list_has_at_most_255_servers() {
        let mut bytes = Vec::new();
        emit_list(vec![list()[0]; 300], &mut bytes);
        assert_eq!(bytes[0], 255);
        assert_eq!(entries(&bytes).filter(Result::is_ok).count(), 255);
    }

    #[test]
    fn l16_a_request_in_both_forms() {
        for protocol_id in [protocol_of_version(41), protocol_of_version(128)] {
            let request = ListRequest { protocol_id };
            let mut bytes = Vec::new();
            request.emit(&mut bytes);
            assert_eq!(bytes.len(), ListRequest::size(bytes[0]));
            assert_eq!(ListRequest::parse(&bytes), Ok(request));
            assert_eq!(ListRequest::parse(&[&bytes[..], b"more"].concat()), Ok(request));
            for length in 0..bytes.len() {
                assert_eq!(ListRequest::parse(&bytes[..length]).unwrap_err().kind, DecodeErrorKind::Truncated);
            }
        }
    }
}
