//! The unconnected ping of Minecraft: Bedrock Edition, a message of RakNet.
//!
//! Numbers are big-endian. The server repeats the time of the ping, which may be any eight bytes:
//!
//! ```text
//! client   01 TIME(8) MAGIC(16) CLIENT(8)
//! server   1c TIME(8) SERVER(8) MAGIC(16) length(2)
//!          "MCPE;NAME;PROTOCOL;VERSION;PLAYERS;SLOTS;SERVER;LEVEL;MODE;MODE NUMBER;PORT;PORT FOR IPv6;"
//! ```
//!
//! Old servers leave out fields at the end. A semicolon within a field has a backslash before it.
//!
//! ```
//! use rallypoint_wire::query::bedrock::{Ping, Pong};
//!
//! let mut query = Vec::new();
//! Ping { time: [7; 8], client: [0; 8] }.emit(&mut query);
//! assert_eq!(query.len(), 33);
//! assert_eq!(Ping::parse(&query).map(|ping| ping.time), Some([7; 8]));
//!
//! let mut reply = Vec::new();
//! Pong { time: [7; 8], server: [1; 8], status: b"MCPE;My Server;649;1.20.61;3;20" }.emit(&mut reply);
//! let pong = Pong::parse(&reply)?;
//! assert_eq!(pong.fields().nth(3), Some(&b"1.20.61"[..]));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "bedrock";

/// Title of the query protocol for people.
pub const TITLE: &str = "Minecraft: Bedrock Edition";

/// Default UDP port of a server.
pub const PORT: u16 = 19_132;

/// Length of the longest reply of interest, in bytes: no server sends more than one packet.
pub const MAX_PONG: usize = 2_048;

/// Maximum length of a status, in bytes.
pub const MAX_STATUS: usize = 1_024;

/// Offset of the time in a pong.
pub const TIME: core::ops::Range<usize> = 1..9;

const MAGIC: [u8; 16] = *b"\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78";

const PING: u8 = 0x01;
/// A ping that a server answers only if it has room.
const PING_OPEN: u8 = 0x02;
const PONG: u8 = 0x1c;

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The bytes that the reply repeats.
    pub time: [u8; 8],
    /// Identity of the client.
    pub client: [u8; 8],
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong<'a> {
    /// The time of the ping.
    pub time: [u8; 8],
    /// Identity of the server.
    pub server: [u8; 8],
    /// The description: fields, each followed by a semicolon.
    pub status: &'a [u8],
}

impl Ping {
    /// Parses a datagram from a client. `None` if it is something else.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(datagram);
        let is_ping = matches!(reader.u8("type").ok()?, PING | PING_OPEN);
        let time = *reader.array("time").ok()?;
        let magic: &[u8; 16] = reader.array("magic").ok()?;
        // Old clients leave it out.
        let client = reader.array("client").copied().unwrap_or_default();
        (is_ping && *magic == MAGIC).then_some(Self { time, client })
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(PING);
        writer.bytes(&self.time);
        writer.bytes(&MAGIC);
        writer.bytes(&self.client);
    }
}

impl<'a> Pong<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is not a reply to a ping, or cut off.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        if reader.u8("type")? != PONG {
            return Err(DecodeError::new("type", DecodeErrorKind::Unknown));
        }
        let time = *reader.array("time")?;
        let server = *reader.array("server")?;
        if *reader.array("magic")? != MAGIC {
            return Err(DecodeError::new("magic", DecodeErrorKind::Mismatch));
        }
        let length = usize::from(reader.u16_be("length of the status")?);
        // Some servers count characters rather than bytes, which are at least as many.
        let status = reader.take_rest();
        if status.len() < length {
            return Err(DecodeError::new("status", DecodeErrorKind::Truncated));
        }
        Ok(Self { time, server, status })
    }

    /// Appends the datagram. A status that is too long is cut.
    pub fn emit(self, out: &mut Vec<u8>) {
        let status = &self.status[..self.status.len().min(MAX_STATUS)];
        let mut writer = Writer::new(out);
        writer.u8(PONG);
        writer.bytes(&self.time);
        writer.bytes(&self.server);
        writer.bytes(&MAGIC);
        writer.u16_be(status.len() as u16);
        writer.bytes(status);
    }

    /// The fields of the status, in order, with their backslashes.
    pub fn fields(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut before = 0;
        self.status.split(move |byte| {
            let is_escaped = before == b'\\';
            before = *byte;
            *byte == b';' && !is_escaped
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pong(status: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Pong { time: [1; 8], server: [2; 8], status }.emit(&mut out);
        out
    }

    #[test]
    fn a_pong_is_read_as_it_is_written() {
        let bytes = pong(b"MCPE;a\\;b;390");
        assert_eq!(bytes[..9], [0x1c, 1, 1, 1, 1, 1, 1, 1, 1]);
        let parsed = Pong::parse(&bytes).unwrap();
        assert!(parsed.fields().eq([&b"MCPE"[..], b"a\\;b", b"390"]));
        for end in 0..bytes.len() {
            assert!(Pong::parse(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_length_in_characters_cuts_nothing() {
        let mut bytes = pong("MCPE;Größe;390".as_bytes());
        bytes[34] -= 2;
        assert_eq!(Pong::parse(&bytes).unwrap().status, "MCPE;Größe;390".as_bytes());
    }

    #[test]
    fn other_datagrams_are_none() {
        let field = |bytes: &[u8]| Pong::parse(bytes).unwrap_err().field;
        assert_eq!(field(b""), "datagram");
        assert_eq!(field(&[0x1d; 40]), "type");
        assert_eq!(field(&[0x1c; 40]), "magic");
        let mut ping = Vec::new();
        Ping { time: [3; 8], client: [4; 8] }.emit(&mut ping);
        assert_eq!(field(&ping), "type");
        assert_eq!(Ping::parse(&ping), Some(Ping { time: [3; 8], client: [4; 8] }));
        assert_eq!(Ping::parse(&ping[..25]), Some(Ping { time: [3; 8], client: [0; 8] }));
        assert_eq!(Ping::parse(&ping[..24]), None);
        assert_eq!(Ping::parse(&pong(b"MCPE")), None);
    }
}
