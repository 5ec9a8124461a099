//! Strings: a length in groups of seven bits, then that many bytes (B2).
//!
//! ```text
//! 7f          127      one group: the single byte that the document shows
//! 80 01       128      the low group first; the high bit means that another follows
//! ac 02       300
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};

/// Maximum number of groups of a length: as many as 32 bits need. Longer forms than the shortest one are accepted (W4).
const MAX_GROUPS: u32 = 5;

pub(super) fn parse<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let mut length = 0u64;
    for group in 0..MAX_GROUPS {
        let byte = reader.u8(field)?;
        length |= u64::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            // A length beyond the address space cannot be present either.
            let length = usize::try_from(length).map_err(|_| DecodeError::new(field, DecodeErrorKind::Truncated))?;
            return reader.bytes(length, field);
        }
    }
    Err(DecodeError::new(field, DecodeErrorKind::TooLong))
}

pub(super) fn emit(string: &[u8], writer: &mut Writer<'_>) {
    let mut length = string.len();
    while length >= 0x80 {
        writer.u8((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    writer.u8(length as u8);
    writer.bytes(string);
}

/// Number of bytes that `emit` writes.
pub(super) fn size(string: &[u8]) -> usize {
    let mut groups = 1;
    let mut length = string.len();
    while length >= 0x80 {
        groups += 1;
        length >>= 7;
    }
    groups + string.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    fn read(bytes: &[u8]) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        let string = parse(&mut reader, "title")?;
        reader.finish("title").map(|()| string.len())
    }

    #[test]
    fn b2_lengths_are_groups_of_seven_bits() {
        let cases: [(usize, &[u8]); 6] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (300, &[0xac, 0x02]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 0x01]),
        ];
        for (length, groups) in cases {
            let string = vec![b'x'; length];
            let mut bytes = Vec::new();
            emit(&string, &mut Writer::new(&mut bytes));
            assert_eq!(bytes[..groups.len()], *groups, "{length}");
            assert_eq!(bytes.len(), size(&string), "{length}");
            assert_eq!(read(&bytes), Ok(length));
        }
    }

    #[test]
    fn b2_hostile_lengths_are_errors() {
        assert_eq!(read(&[]), Err(DecodeError::new("title", DecodeErrorKind::Truncated)));
        assert_eq!(read(&[2, b'x']), Err(DecodeError::new("title", DecodeErrorKind::Truncated)));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x7f]), Err(DecodeError::new("title", DecodeErrorKind::Truncated)));
        assert_eq!(read(&[0x80; 6]), Err(DecodeError::new("title", DecodeErrorKind::TooLong)));
    }

    #[test]
    fn w4_a_length_in_more_groups_than_needed_is_accepted() {
        assert_eq!(read(&[0x81, 0x80, 0x00, b'x']), Ok(1));
    }
}
