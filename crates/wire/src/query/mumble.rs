//! The ping of Mumble: how many users a voice server has.
//!
//! Every server answers the ping of 12 bytes; numbers are big-endian:
//!
//! ```text
//! client   00 00 00 00 TOKEN(8)
//! server   00 major minor patch TOKEN(8) users(4) maximum(4) bandwidth(4)
//! ```
//!
//! A patch level above 254 does not fit: it is 255 then. Servers from 1.5 on have another ping (`MumbleUDP.Ping`, Protocol
//! Buffers), whose version has 16 bits for each number:
//!
//! ```text
//! client   01 08 TOKEN(varint) 10 01
//! server   01 08 TOKEN(varint) 18 version(varint) 20 users(varint) 28 maximum(varint) 30 bandwidth(varint)
//! ```
//!
//! ```
//! use rallypoint_wire::query::mumble::{Query, Status, Token};
//!
//! let mut query = Vec::new();
//! Query::Short(Token([1, 2, 3, 4, 5, 6, 7, 8])).emit(&mut query);
//! assert_eq!(query, [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
//!
//! let status = Status::parse(b"\0\x01\x03\x04\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x02\0\0\0\x39\0\x01\x19\x40")?;
//! assert_eq!((status.version, status.users, status.max_users), ([1, 3, 4], 2, 57));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "mumble";

/// Name of the query protocol for people.
pub const TITLE: &str = "Mumble";

/// Default UDP port of a server.
pub const PORT: u16 = 64_738;

/// Longest reply in bytes, with room for fields of later versions.
pub const MAX_DATAGRAM: usize = 128;

/// The patch level of a version whose patch level does not fit into a byte.
pub const PATCH_OVERFLOW: u16 = 255;

/// A value that a reply repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub [u8; 8]);

/// A ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The one of all versions.
    Short(Token),
    /// The one of version 1.5.
    Extended(Token),
}

/// A reply to either ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether this is the reply to an extended ping.
    pub is_extended: bool,
    /// The token of the ping.
    pub token: Token,
    /// Version of the server: major, minor, patch.
    pub version: [u16; 3],
    /// Number of users.
    pub users: u32,
    /// Maximum number of users.
    pub max_users: u32,
    /// Maximum bandwidth of a user, in bits per second.
    pub bandwidth: u32,
}

impl Query {
    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        match self {
            Self::Short(token) => {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&token.0);
            }
            Self::Extended(token) => {
                out.extend_from_slice(&[1, 0x08]);
                let mut rest = u64::from_be_bytes(token.0);
                while rest >= 0x80 {
                    out.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                out.push(rest as u8);
                out.extend_from_slice(&[0x10, 1]);
            }
        }
    }
}

impl Status {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is no reply to a ping.
    pub fn parse(datagram: &[u8]) -> Result<Self, DecodeError> {
        let Some((kind, _)) = datagram.split_first() else {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        };
        match kind {
            0 => Self::parse_short(Reader::new(datagram)),
            1 => Self::parse_extended(Reader::new(&datagram[1..])),
            _ => Err(DecodeError::new("kind", DecodeErrorKind::Unknown)),
        }
    }

    fn parse_short(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let [_, major, minor, patch] = reader.array("version")?.map(u16::from);
        let status = Self {
            is_extended: false,
            token: Token(*reader.array("token")?),
            version: [major, minor, patch],
            users: reader.u32_be("users")?,
            max_users: reader.u32_be("maximum of users")?,
            bandwidth: reader.u32_be("bandwidth")?,
        };
        reader.finish("ping")?;
        Ok(status)
    }

    fn parse_extended(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        // A field that is 0 is left out.
        let mut fields = [0; 7];
        while !reader.is_empty() {
            let tag = varint(&mut reader, "tag")?;
            match tag & 7 {
                0 => {
                    let value = varint(&mut reader, "value")?;
                    if let Some(field) = usize::try_from(tag >> 3).ok().and_then(|number| fields.get_mut(number)) {
                        *field = value;
                    }
                }
                1 => drop(reader.bytes(8, "value")?),
                2 => {
                    let length = varint(&mut reader, "length")?;
                    reader.bytes(usize::try_from(length).unwrap_or(usize::MAX), "value")?;
                }
                5 => drop(reader.bytes(4, "value")?),
                _ => return Err(DecodeError::new("tag", DecodeErrorKind::Unknown)),
            }
        }
        let [_, token, _, version, users, max_users, bandwidth] = fields;
        if version == 0 {
            return Err(DecodeError::new("version", DecodeErrorKind::Missing));
        }
        let [a, b, c, d, e, f, ..] = version.to_be_bytes();
        let number =
            |value: u64, field| u32::try_from(value).map_err(|_| DecodeError::new(field, DecodeErrorKind::Invalid));
        Ok(Self {
            is_extended: true,
            token: Token(token.to_be_bytes()),
            version: [[a, b], [c, d], [e, f]].map(u16::from_be_bytes),
            users: number(users, "users")?,
            max_users: number(max_users, "maximum of users")?,
            bandwidth: number(bandwidth, "bandwidth")?,
        })
    }
}

/// An integer of at most ten bytes, the lowest seven bits first.
fn varint(reader: &mut Reader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = reader.u8(field)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(DecodeError::new(field, DecodeErrorKind::TooLong))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token([0, 0, 0, 0, 0, 0, 1, 0x2c]);

    #[test]
    fn an_extended_ping_is_a_protocol_buffer() {
        let mut out = Vec::new();
        Query::Extended(TOKEN).emit(&mut out);
        assert_eq!(out, b"\x01\x08\xac\x02\x10\x01");
        out.clear();
        Query::Extended(Token([0xff; 8])).emit(&mut out);
        assert_eq!(out, b"\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01");
        // 1.5.735: 0x0001_0005_02df_0000.
        let reply = b"\x01\x08\xac\x02\x18\x80\x80\xfc\x96\xd0\x80\x40\x20\x03\x28\x64\x30\xc0\xb2\x04";
        let expected = Status {
            is_extended: true,
            token: TOKEN,
            version: [1, 5, 735],
            users: 3,
            max_users: 100,
            bandwidth: 72_000,
        };
        assert_eq!(Status::parse(reply), Ok(expected));
        let later = [reply, &b"\x3a\x02ab\x41\0\0\0\0\0\0\0\0\x4d\0\0\0\0\xf8\x01\x05"[..]].concat();
        assert_eq!(Status::parse(&later), Ok(expected), "with fields of a later version");
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        let error = |datagram: &[u8]| Status::parse(datagram).unwrap_err().field;
        assert_eq!(
            [error(b""), error(b"\x02"), error(&[0; 23]), error(&[0; 25])],
            ["datagram", "kind", "bandwidth", "ping"]
        );
        assert_eq!([error(b"\x01"), error(b"\x01\x08\x80"), error(b"\x01\x0b")], ["version", "value", "tag"]);
        assert_eq!(error(b"\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "value");
        assert_eq!(error(b"\x01\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a"), "value");
        assert_eq!(error(b"\x01\x18\x01\x20\x80\x80\x80\x80\x10"), "users");
    }
}
