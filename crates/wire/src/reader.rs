//! Reads fields from the front of a datagram.

use crate::{DecodeError, DecodeErrorKind};

/// Reads fields from the front of a slice.
///
/// Every call names its field, so that an error names the field that is wrong, and its byte order, because the documents
/// differ: 000 and 001 are big-endian, 003 is little-endian, 002 and the legacy lobby are mixed. Messages have an exact
/// length: [`finish`](Self::finish) fails on trailing bytes.
///
/// ```
/// use rallypoint_wire::Reader;
///
/// let mut reader = Reader::new(&[0x20, 0x06, 7]);
/// assert_eq!(reader.u16_be("port")?, 8_198);
/// assert_eq!(reader.u8("count")?, 7);
/// reader.finish("message")?;
/// # Ok::<(), rallypoint_wire::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(DecodeError::new(field, DecodeErrorKind::Truncated));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(DecodeError::new(field, DecodeErrorKind::Truncated));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        let [byte] = *self.array(field)?;
        Ok(byte)
    }

    /// Two bytes, big-endian.
    #[inline]
    pub fn u16_be(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// Two bytes, little-endian.
    #[inline]
    pub fn u16_le(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(|bytes| u16::from_le_bytes(*bytes))
    }

    /// Two bytes, signed, big-endian.
    #[inline]
    pub fn i16_be(&mut self, field: &'static str) -> Result<i16, DecodeError> {
        self.array(field).map(|bytes| i16::from_be_bytes(*bytes))
    }

    /// Four bytes, big-endian.
    #[inline]
    pub fn u32_be(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32_le(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64_le(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The bytes up to the next `end` byte, which is taken as well.
    #[inline]
    pub fn until(&mut self, end: u8, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let at = self.rest.iter().position(|&byte| byte == end);
        let at = at.ok_or(DecodeError::new(field, DecodeErrorKind::Truncated))?;
        let taken = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Ok(taken)
    }

    /// Takes all remaining bytes.
    #[inline]
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// All remaining bytes, without taking them.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether no bytes remain.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if bytes remain after the message called `field`.
    #[inline]
    pub fn finish(self, field: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::new(field, DecodeErrorKind::TrailingBytes)) }
    }
}
