//! Replies that are longer than a datagram: their parts.

use super::{SPLIT, WHOLE};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;

/// A part of a reply. Its form depends on the engine, which only the first part tells:
///
/// ```text
/// fe ff ff ff ID(4) TOTAL NUMBER SIZE(2) payload    Source; the highest bit of ID: compressed
/// fe ff ff ff ID(4) TOTAL NUMBER payload            Source before the Orange Box
/// fe ff ff ff ID(4) NUMBER|TOTAL payload            GoldSrc: four bits each
/// ```
///
/// The payloads make up a whole message: the first one begins with `ff ff ff ff`. That of a compressed message begins with
/// `SIZE(4) CRC(4)`, which are of the message, followed by the data of bzip2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Number of the message.
    pub id: u32,
    /// The bytes from `TOTAL` or `NUMBER|TOTAL` on.
    pub rest: &'a [u8],
}

/// The form of the parts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitForm {
    /// Number of bytes before the payload.
    header: u8,
    /// Whether the message is compressed.
    pub is_compressed: bool,
}

/// The header of a compressed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed<'a> {
    /// Size of the message in bytes.
    pub size: u32,
    /// CRC-32 of the message.
    pub crc: u32,
    /// Data of bzip2.
    pub data: &'a [u8],
}

/// Bit of the ID that tells that a message of Source may be compressed.
const COMPRESSED: u32 = 1 << 31;

/// First bytes of the data of bzip2.
const BZIP2: &[u8] = b"BZh";

/// Number of bytes before the payload in the three forms, from `TOTAL` or `NUMBER|TOTAL` on.
const SOURCE: u8 = 4;
const OLD_SOURCE: u8 = 2;
const GOLDSRC: u8 = 1;

/// Number of bytes before the data in a compressed message.
const COMPRESSED_HEADER: usize = 8;

impl<'a> Fragment<'a> {
    /// Parses a datagram of a server that begins as a part does.
    ///
    /// # Errors
    /// If it is too short for a part, or does not begin as one.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        if *reader.array("prefix")? != SPLIT {
            return Err(DecodeError::new("prefix", DecodeErrorKind::Mismatch));
        }
        let id = reader.u32_le("ID of a part")?;
        let rest = reader.take_rest();
        if rest.len() <= usize::from(GOLDSRC) {
            return Err(DecodeError::new("number of a part", DecodeErrorKind::Truncated));
        }
        Ok(Self { id, rest })
    }

    /// The form of the parts, if this is the first one.
    #[must_use]
    pub fn form(&self) -> Option<SplitForm> {
        let begins = |at: u8, with: &[u8]| self.rest.get(usize::from(at)..).is_some_and(|rest| rest.starts_with(with));
        let form = |header, is_compressed| Some(SplitForm { header, is_compressed });
        let [total, number, ..] = *self.rest else { return None };
        if total >> 4 == 0 && begins(GOLDSRC, &WHOLE) {
            return form(GOLDSRC, false);
        }
        if number != 0 {
            return None;
        }
        let data = |header| header + COMPRESSED_HEADER as u8;
        match [SOURCE, OLD_SOURCE] {
            [new, _] if begins(new, &WHOLE) => form(new, false),
            [_, old] if begins(old, &WHOLE) => form(old, false),
            [new, _] if self.id & COMPRESSED != 0 && begins(data(new), BZIP2) => form(new, true),
            [_, old] if self.id & COMPRESSED != 0 && begins(data(old), BZIP2) => form(old, true),
            _ => None,
        }
    }

    /// The number of this part, from 0 on, and the number of all parts; `None` if they are not possible in this form.
    #[must_use]
    pub fn position(&self, form: SplitForm) -> Option<(u8, u8)> {
        let (number, total) = match (self.rest, form.header) {
            (&[both, ..], GOLDSRC) => (both >> 4, both & 15),
            (&[total, number, ..], _) => (number, total),
            _ => return None,
        };
        (number < total && self.rest.len() > usize::from(form.header)).then_some((number, total))
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self, form: SplitForm) -> &'a [u8] {
        self.rest.get(usize::from(form.header)..).unwrap_or_default()
    }
}

impl<'a> Compressed<'a> {
    /// Parses the payloads of a compressed message, put together.
    ///
    /// # Errors
    /// If they end within the header.
    pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let size = reader.u32_le("size of a compressed message")?;
        let crc = reader.u32_le("CRC of a compressed message")?;
        Ok(Self { size, crc, data: reader.take_rest() })
    }

    /// The error for a message that is larger than any is allowed to be.
    #[must_use]
    pub fn too_large(&self) -> DecodeError {
        DecodeError::new("size of a compressed message", DecodeErrorKind::TooLong)
    }

    /// The error for data that does not become the message that was compressed.
    #[must_use]
    pub fn damaged(&self) -> DecodeError {
        DecodeError::new("compressed message", DecodeErrorKind::Mismatch)
    }

    /// Whether this is the message that was compressed.
    #[must_use]
    pub fn is(&self, message: &[u8]) -> bool {
        message.len() == self.size as usize && crc32fast::hash(message) == self.crc
    }
}

/// Emits a message in as many datagrams as it takes: one, or parts as of Source. Its ID is derived from its contents, so that
/// parts of equal messages complete each other. `None` if it takes more than 255 parts.
pub fn emit_split(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    if message.len() <= MAX_PART + WHOLE.len() {
        return Some([message.to_vec()].into());
    }
    let total = u8::try_from(message.len().div_ceil(MAX_PART)).ok()?;
    let id = crc32fast::hash(message) & !COMPRESSED;
    let part = |(number, payload): (u8, &[u8])| {
        let mut datagram = Vec::with_capacity(2 * SPLIT.len() + usize::from(SOURCE) + payload.len());
        let mut writer = Writer::new(&mut datagram);
        writer.bytes(&SPLIT);
        writer.u32_le(id);
        writer.bytes(&[total, number]);
        writer.u16_le(MAX_PART as u16);
        writer.bytes(payload);
        datagram
    };
    Some((0..total).zip(message.chunks(MAX_PART)).map(part).collect())
}

/// Maximum size of the payload of a part in bytes: Valve's.
const MAX_PART: usize = 1_248;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(datagram: &[u8]) -> Fragment<'_> {
        Fragment::parse(datagram).unwrap()
    }

    #[test]
    fn the_first_part_tells_the_form() {
        for (first, second, payload, is_compressed) in [
            (&b"\x02\x00\xe0\x04\xff\xff\xff\xffE"[..], &b"\x02\x01\xe0\x04rest"[..], 4, false),
            (b"\x02\x00\xff\xff\xff\xffE", b"\x02\x01rest", 2, false),
            (b"\x02\xff\xff\xff\xffE", b"\x12rest", 1, false),
            (b"\x02\x00\xe0\x04\x10\0\0\0\x01\x02\x03\x04BZh9", b"\x02\x01\xe0\x04rest", 4, true),
            (b"\x02\x00\x10\0\0\0\x01\x02\x03\x04BZh9", b"\x02\x01rest", 2, true),
        ] {
            let header = [&b"\xfe\xff\xff\xff\x02\0\0"[..], if is_compressed { b"\x80" } else { b"\0" }].concat();
            let [first, second] = [first, second].map(|part| [&header, part].concat());
            let (first, second) = (parse(&first), parse(&second));
            assert_eq!(first.id, second.id);
            let form = first.form().unwrap();
            assert_eq!(form.is_compressed, is_compressed);
            assert_eq!((first.position(form), second.position(form)), (Some((0, 2)), Some((1, 2))));
            assert_eq!((first.payload(form), second.payload(form)), (&first.rest[payload..], &b"rest"[..]));
            assert_eq!(second.form(), None);
        }
    }

    #[test]
    fn parts_that_are_none_are_errors() {
        for (bytes, field) in [
            (&b"\xfe\xff\xff"[..], "prefix"),
            (b"\xff\xff\xff\xff\0\0\0\0\x02\0", "prefix"),
            (b"\xfe\xff\xff\xff\0\0\0", "ID of a part"),
            (b"\xfe\xff\xff\xff\0\0\0\0\x02", "number of a part"),
        ] {
            assert_eq!(Fragment::parse(bytes).unwrap_err().field, field);
        }
        let form = parse(b"\xfe\xff\xff\xff\0\0\0\0\x02\xff\xff\xff\xffE").form().unwrap();
        assert_eq!(parse(b"\xfe\xff\xff\xff\0\0\0\0\x22rest").position(form), None, "the third of two");
        assert_eq!(parse(b"\xfe\xff\xff\xff\0\0\0\0\x10rest").position(form), None, "none in total");
    }

    #[test]
    fn long_messages_are_split_as_by_source() {
        let message: Vec<u8> = [0xff; 4].into_iter().chain((0..3_000_u32).map(|n| n as u8)).collect();
        let parts = emit_split(&message).unwrap();
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [1_260, 1_260, 520]);
        let form = parse(&parts[0]).form().unwrap();
        let positions: Vec<_> = parts.iter().map(|part| parse(part).position(form)).collect();
        assert_eq!(positions, [Some((0, 3)), Some((1, 3)), Some((2, 3))]);
        let whole: Vec<u8> = parts.iter().flat_map(|part| parse(part).payload(form)).copied().collect();
        assert_eq!(whole, message);
        assert_eq!(emit_split(&message[..1_252]).unwrap(), [&message[..1_252]]);
        assert_eq!(emit_split(&[0; 255 * 1_248 + 1]), None);
    }
}
