//! The beginning of a connection to Luanti (Minetest), which shows that a server is there. Its protocol over UDP has no
//! query: a server describes itself to the list of servers only.
//!
//! Numbers are big-endian. The client has the number 0 until the server gives it one:
//!
//! ```text
//! client   4f457403 0000 00  01                      an empty original message
//! server   4f457403 0001 00  03 SEQUENCE(2)  00 01 PEER(2)     reliable: the client's number
//! client   4f457403 PEER(2) 00  00 03                disconnected
//! ```
//!
//! A server sends the number again and again for half a minute, until it receives an acknowledgement or the disconnect.
//!
//! ```
//! use rallypoint_wire::query::luanti::{Peer, Query, Response};
//!
//! let mut query = Vec::new();
//! Query::Hello.emit(&mut query);
//! assert_eq!(query, b"\x4f\x45\x74\x03\0\0\0\x01");
//! let reply = Response::parse(b"\x4f\x45\x74\x03\0\x01\0\x03\xff\xdc\0\x01\0\x02")?;
//! query.clear();
//! Query::Disconnect(reply.peer).emit(&mut query);
//! assert_eq!(query, b"\x4f\x45\x74\x03\0\x02\0\0\x03");
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "luanti";

/// Name of the query protocol for people.
pub const TITLE: &str = "Luanti (Minetest), presence only";

/// Default UDP port of a server.
pub const PORT: u16 = 30_000;

/// Longest reply in bytes.
pub const MAX_DATAGRAM: usize = 64;

/// Number of the protocol, at the beginning of each datagram.
const MAGIC: &[u8; 4] = b"\x4f\x45\x74\x03";

/// Number of the server.
const SERVER: u16 = 1;

/// Number that a server has given to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub u16);

/// A datagram of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Begins a connection.
    Hello,
    /// Ends it.
    Disconnect(Peer),
}

/// The beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The number of the client.
    pub peer: Peer,
}

impl Query {
    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        match self {
            Self::Hello => out.extend_from_slice(&[0, 0, 0, 1]),
            Self::Disconnect(peer) => {
                out.extend_from_slice(&peer.0.to_be_bytes());
                out.extend_from_slice(&[0, 0, 3]);
            }
        }
    }

    /// Whether a datagram begins a connection.
    #[must_use]
    pub fn is_hello(datagram: &[u8]) -> bool {
        datagram.strip_prefix(MAGIC) == Some(&[0, 0, 0, 1])
    }
}

impl Response {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it does not contain the number of the client.
    pub fn parse(datagram: &[u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        if reader.array("magic")? != MAGIC {
            return Err(DecodeError::new("magic", DecodeErrorKind::Mismatch));
        }
        if reader.u16_be("sender")? != SERVER {
            return Err(DecodeError::new("sender", DecodeErrorKind::Invalid));
        }
        reader.u8("channel")?;
        if reader.u8("type")? != 3 {
            return Err(DecodeError::new("type", DecodeErrorKind::Unknown));
        }
        reader.u16_be("sequence number")?;
        if reader.array("message")? != &[0, 1] {
            return Err(DecodeError::new("message", DecodeErrorKind::Unknown));
        }
        let peer = reader.u16_be("peer")?;
        reader.finish("message")?;
        // 0 and 1 are a client without a number and the server.
        if peer <= SERVER {
            return Err(DecodeError::new("peer", DecodeErrorKind::Invalid));
        }
        Ok(Self { peer: Peer(peer) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_are_none_are_errors() {
        let field = |datagram: &[u8]| Response::parse(datagram).unwrap_err().field;
        assert_eq!([field(b""), field(b"\x4f\x45"), field(b"\x4f\x45\x74\x02")], ["datagram", "magic", "magic"]);
        let body = |body: &[u8]| field(&[MAGIC, body].concat());
        assert_eq!([body(b"\0\x02"), body(b"\0\x01\0"), body(b"\0\x01\0\x01")], ["sender", "type", "type"]);
        assert_eq!([body(b"\0\x01\0\x03\xff\xdc\0\0"), body(b"\0\x01\0\x03\xff\xdc\0\x01\0")], ["message", "peer"]);
        assert_eq!(body(b"\0\x01\0\x03\xff\xdc\0\x01\0\x01"), "peer");
        assert_eq!(body(b"\0\x01\0\x03\xff\xdc\0\x01\0\x02\0"), "message");
    }
}
