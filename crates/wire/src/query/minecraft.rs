//! The server list ping of Minecraft: Java Edition, over TCP, and its predecessors.
//!
//! Since 1.7, packets are preceded by their length. All numbers but the port are VarInts: seven bits per byte, the lowest first,
//! with the highest bit set in all bytes but the last. Strings are UTF-8 after their length in bytes:
//!
//! ```text
//! client   length 00 PROTOCOL "SERVER" PORT(2) 01        the handshake, which announces a status
//!          01     00                                     the request
//! server   length 00 "JSON"
//! ```
//!
//! Before, numbers are big-endian, and strings are UTF-16 after their length in characters. The reply is the packet that ends a
//! connection:
//!
//! ```text
//! client   fe 01 fa 000b "MC|PingHost" length(2) PROTOCOL(1) "SERVER" PORT(4)      1.6
//!          fe                                                                      before 1.4
//! server   ff length(2) "§1" 0000 "PROTOCOL" 0000 "VERSION" 0000 "TEXT" 0000 "PLAYERS" 0000 "SLOTS"     since 1.4
//!          ff length(2) "TEXT§PLAYERS§SLOTS"                                       before 1.4
//! ```
//!
//! ```
//! use rallypoint_wire::query::minecraft::{Request, parse_status, packet_length};
//!
//! let mut query = Vec::new();
//! Request::Status { server: "192.0.2.1", port: 25565 }.emit(&mut query);
//! assert_eq!(query, b"\x0f\x00\x2f\x09192.0.2.1\x63\xdd\x01\x01\x00");
//!
//! let reply = b"\x04\x00\x02{}";
//! assert_eq!(packet_length(reply, 1_000)?, Some(5));
//! assert_eq!(parse_status(reply)?, b"{}");
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::{string::String, vec::Vec};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "minecraft";

/// Title of the query protocol for people.
pub const TITLE: &str = "Minecraft: Java Edition (server list ping)";

/// Default TCP port of a server.
pub const PORT: u16 = 25_565;

/// Protocol number in a handshake: that of 1.8, which every server knows. It does not have to be that of the server.
const HANDSHAKE_PROTOCOL: i32 = 47;

/// Protocol number of 1.6.2 in its ping.
const LEGACY_PROTOCOL: u8 = 74;

/// Maximum length of a VarInt, in bytes.
const MAX_VAR_INT: usize = 5;

/// What a client sends over a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The ping since 1.7, with the address that the client knows the server by.
    Status {
        /// Name or IP address.
        server: &'a str,
        /// TCP port.
        port: u16,
    },
    /// The ping of 1.6, which servers since 1.4 answer.
    Legacy {
        /// Name or IP address.
        server: &'a str,
        /// TCP port.
        port: u16,
    },
    /// The ping before 1.4.
    Beta,
}

/// A reply to a legacy ping. Texts have formatting codes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyStatus {
    /// Protocol number: since 1.4.
    pub protocol: Option<i32>,
    /// Version of the server: since 1.4.
    pub version: Option<String>,
    /// Description of the server.
    pub description: String,
    /// Number of players.
    pub players: i32,
    /// Maximum number of players.
    pub max_players: i32,
}

impl Request<'_> {
    /// Appends the packets.
    pub fn emit(self, out: &mut Vec<u8>) {
        match self {
            Self::Status { server, port } => {
                let mut packet = Vec::with_capacity(server.len() + 12);
                packet.push(0);
                emit_var_int(HANDSHAKE_PROTOCOL, &mut packet);
                emit_string(server, &mut packet);
                packet.extend_from_slice(&port.to_be_bytes());
                packet.push(1);
                emit_packet(&packet, out);
                emit_packet(&[0], out);
            }
            Self::Legacy { server, port } => {
                let mut writer = Writer::new(out);
                writer.bytes(&[0xfe, 0x01, 0xfa]);
                emit_utf16("MC|PingHost", &mut writer);
                let length = writer.written();
                writer.u16_be(0);
                writer.u8(LEGACY_PROTOCOL);
                emit_utf16(server, &mut writer);
                writer.u32_be(port.into());
                let size = writer.written() - length - 2;
                writer.patch(length, &u16::try_from(size).unwrap_or(u16::MAX).to_be_bytes());
            }
            Self::Beta => out.push(0xfe),
        }
    }
}

/// The length of the first packet, with the number before it; `None` if it is not complete.
///
/// # Errors
/// If it is longer than `limit`, or if this is the packet that ends a connection before 1.7.
pub fn packet_length(received: &[u8], limit: usize) -> Result<Option<usize>, DecodeError> {
    if received.starts_with(&[0xff, 0x00]) {
        // As a VarInt, it would have a byte too many.
        return Err(DecodeError::new("length of the packet", DecodeErrorKind::Unknown));
    }
    let mut reader = Reader::new(received);
    let length = match var_int(&mut reader, "length of the packet") {
        Ok(length) => length,
        Err(error) if error.kind == DecodeErrorKind::Truncated => return Ok(None),
        Err(error) => return Err(error),
    };
    let total = usize::try_from(length).ok().filter(|length| (1..=limit).contains(length));
    let total = total.ok_or(DecodeError::new("length of the packet", DecodeErrorKind::Invalid))?;
    let total = total + received.len() - reader.rest().len();
    Ok((received.len() >= total).then_some(total))
}

/// The JSON in a reply to a status request.
///
/// # Errors
/// If the packet is another one, or cut off.
pub fn parse_status(packet: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = Reader::new(packet);
    let length = var_int(&mut reader, "length of the packet")?;
    if usize::try_from(length) != Ok(reader.rest().len()) {
        return Err(DecodeError::new("length of the packet", DecodeErrorKind::Mismatch));
    }
    if var_int(&mut reader, "type of the packet")? != 0 {
        return Err(DecodeError::new("type of the packet", DecodeErrorKind::Unknown));
    }
    let length = var_int(&mut reader, "status")?;
    let length = usize::try_from(length).map_err(|_| DecodeError::new("status", DecodeErrorKind::Invalid))?;
    let status = reader.bytes(length, "status")?;
    reader.finish("status")?;
    Ok(status)
}

/// Appends a reply to a status request.
pub fn emit_status(json: &str, out: &mut Vec<u8>) {
    let mut packet = Vec::with_capacity(json.len() + 6);
    packet.push(0);
    emit_string(json, &mut packet);
    emit_packet(&packet, out);
}

impl LegacyStatus {
    /// The length of the reply; `None` if it is not complete.
    ///
    /// # Errors
    /// If this is another packet.
    pub fn packet_length(received: &[u8]) -> Result<Option<usize>, DecodeError> {
        match *received {
            [] | [0xff] | [0xff, _] => Ok(None),
            [0xff, high, low, ..] => {
                let total = 3 + 2 * usize::from(u16::from_be_bytes([high, low]));
                Ok((received.len() >= total).then_some(total))
            }
            _ => Err(DecodeError::new("type of the packet", DecodeErrorKind::Unknown)),
        }
    }

    /// Parses a reply to a legacy ping.
    ///
    /// # Errors
    /// If the packet is another one, or ends a connection for another reason.
    pub fn parse(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        if reader.u8("type of the packet")? != 0xff {
            return Err(DecodeError::new("type of the packet", DecodeErrorKind::Unknown));
        }
        let length = usize::from(reader.u16_be("status")?);
        let units = reader.bytes(2 * length, "status")?;
        reader.finish("status")?;
        let units = units.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        let text: String = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        let number = |text: &str, field| {
            text.trim().parse::<i32>().map_err(|_| DecodeError::new(field, DecodeErrorKind::Invalid))
        };
        if let Some(fields) = text.strip_prefix("§1\0") {
            let mut fields = fields.split('\0');
            let mut next = |field| fields.next().ok_or(DecodeError::new(field, DecodeErrorKind::Truncated));
            return Ok(Self {
                protocol: Some(number(next("protocol")?, "protocol")?),
                version: Some(next("version")?.into()),
                description: next("description")?.into(),
                players: number(next("number of players")?, "number of players")?,
                max_players: number(next("number of slots")?, "number of slots")?,
            });
        }
        // The description may have formatting codes, which begin with the same character.
        let mut fields = text.rsplitn(3, '§');
        let (slots, players, description) = (fields.next(), fields.next(), fields.next());
        let missing = DecodeError::new("number of players", DecodeErrorKind::Missing);
        Ok(Self {
            protocol: None,
            version: None,
            max_players: number(slots.unwrap_or_default(), "number of slots")?,
            players: number(players.ok_or(missing)?, "number of players")?,
            description: description.ok_or(missing)?.into(),
        })
    }
}

/// Removes formatting codes: a `§` and the character after it.
///
/// ```
/// use rallypoint_wire::query::minecraft::strip_formatting;
///
/// assert_eq!(strip_formatting("§aGreen §x§f§f§0§0§0§0red §"), "Green red ");
/// ```
#[must_use]
pub fn strip_formatting(text: &str) -> String {
    let mut chars = text.chars();
    let mut stripped = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        if c == '§' {
            chars.next();
        } else {
            stripped.push(c);
        }
    }
    stripped
}

/// The next VarInt, of at most five bytes.
///
/// # Errors
/// If it is longer, or cut off.
pub fn var_int(reader: &mut Reader<'_>, field: &'static str) -> Result<i32, DecodeError> {
    let mut value: u32 = 0;
    for place in 0..MAX_VAR_INT {
        let byte = reader.u8(field)?;
        value |= u32::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(value.cast_signed());
        }
    }
    Err(DecodeError::new(field, DecodeErrorKind::TooLong))
}

fn emit_var_int(value: i32, out: &mut Vec<u8>) {
    let mut rest = value.cast_unsigned();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string after its length. None of these strings is longer than a VarInt can tell.
fn emit_string(text: &str, out: &mut Vec<u8>) {
    emit_var_int(text.len() as i32, out);
    out.extend_from_slice(text.as_bytes());
}

fn emit_packet(packet: &[u8], out: &mut Vec<u8>) {
    emit_var_int(packet.len() as i32, out);
    out.extend_from_slice(packet);
}

fn emit_utf16(text: &str, writer: &mut Writer<'_>) {
    writer.u16_be(text.encode_utf16().count() as u16);
    text.encode_utf16().for_each(|unit| writer.u16_be(unit));
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecodeErrorKind::{Invalid, Mismatch, Missing, TooLong, Truncated, Unknown};

    fn kick(text: &str) -> Vec<u8> {
        let mut out = alloc::vec![0xff];
        emit_utf16(text, &mut Writer::new(&mut out));
        out
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (25_565, &[0xdd, 0xc7, 0x01]),
            (i32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x07]),
            (-1, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            let mut out = Vec::new();
            emit_var_int(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(var_int(&mut Reader::new(bytes), "number"), Ok(value));
        }
        let kind = |bytes: &[u8]| var_int(&mut Reader::new(bytes), "number").unwrap_err().kind;
        assert_eq!(kind(&[0x80, 0x80]), Truncated);
        assert_eq!(kind(&[0x80; 6]), TooLong);
    }

    #[test]
    fn pings_have_the_documented_bytes() {
        let emit = |request: Request<'_>| {
            let mut out = Vec::new();
            request.emit(&mut out);
            out
        };
        let status = emit(Request::Status { server: "localhost", port: 25_565 });
        assert_eq!(status, b"\x0f\x00\x2f\x09localhost\x63\xdd\x01\x01\x00");
        let legacy = emit(Request::Legacy { server: "localhost", port: 25_565 });
        assert_eq!(
            legacy,
            b"\xfe\x01\xfa\x00\x0b\x00M\x00C\x00|\x00P\x00i\x00n\x00g\x00H\x00o\x00s\x00t\x00\x19\x4a\
              \x00\x09\x00l\x00o\x00c\x00a\x00l\x00h\x00o\x00s\x00t\x00\x00\x63\xdd"
        );
        assert_eq!(emit(Request::Beta), [0xfe]);
    }

    #[test]
    fn a_status_arrives_in_pieces() {
        let json = "x".repeat(300);
        let mut packet = Vec::new();
        emit_status(&json, &mut packet);
        for end in 0..packet.len() {
            assert_eq!(packet_length(&packet[..end], 1_000), Ok(None), "{end}");
            assert!(parse_status(&packet[..end]).is_err(), "{end}");
        }
        assert_eq!(packet_length(&packet, 1_000), Ok(Some(packet.len())));
        assert_eq!(packet_length(&[&packet[..], b"more"].concat(), 1_000), Ok(Some(packet.len())));
        assert_eq!(parse_status(&packet), Ok(json.as_bytes()));
    }

    #[test]
    fn lengths_are_bounded() {
        let kind = |bytes: &[u8]| packet_length(bytes, 1_000).unwrap_err().kind;
        assert_eq!(kind(&[0]), Invalid);
        assert_eq!(kind(&[0xe9, 0x07]), Invalid);
        assert_eq!(kind(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Invalid);
        assert_eq!(kind(&[0x80; 9]), TooLong);
        assert_eq!(kind(&kick("no")), Unknown);
        for (packet, expected) in [
            (&[3, 1, 1, b'x'][..], Unknown),
            (&[3, 0, 2, b'x'], Truncated),
            (&[4, 0, 1, b'x', b'y'], DecodeErrorKind::TrailingBytes),
            (&[5, 0, 1, b'x'], Mismatch),
            (&[6, 0, 0xff, 0xff, 0xff, 0xff, 0x0f], Invalid),
        ] {
            assert_eq!(parse_status(packet).unwrap_err().kind, expected, "{packet:?}");
        }
    }

    #[test]
    fn replies_to_a_legacy_ping_have_two_forms() {
        let new = kick("§1\x0051\x001.4.7\0A §bServer\x002\x0020");
        assert_eq!(new[..9], [0xff, 0x00, 0x1b, 0x00, 0xa7, 0x00, 0x31, 0x00, 0x00]);
        assert_eq!(LegacyStatus::packet_length(&new), Ok(Some(new.len())));
        let expected = LegacyStatus {
            protocol: Some(51),
            version: Some("1.4.7".into()),
            description: "A §bServer".into(),
            players: 2,
            max_players: 20,
        };
        assert_eq!(LegacyStatus::parse(&new), Ok(expected.clone()));
        let beta = LegacyStatus { protocol: None, version: None, ..expected };
        assert_eq!(LegacyStatus::parse(&kick("A §bServer§2§20")), Ok(beta));
        for end in 0..new.len() {
            assert_eq!(LegacyStatus::packet_length(&new[..end]), Ok(None));
            assert!(LegacyStatus::parse(&new[..end]).is_err());
        }
    }

    #[test]
    fn other_ends_of_a_connection_are_no_replies() {
        let kind = |text: &str| LegacyStatus::parse(&kick(text)).unwrap_err().kind;
        assert_eq!(kind("Protocol error"), Invalid);
        assert_eq!(kind("20"), Missing);
        assert_eq!(kind("§20"), Invalid);
        assert_eq!(kind("§1\x0051\x001.4.7\0text\x002"), Truncated);
        assert_eq!(kind("§1\x0051\x001.4.7\0text\x002\x0099999999999"), Invalid);
        assert_eq!(LegacyStatus::packet_length(b"\x00").unwrap_err().kind, Unknown);
    }
}
