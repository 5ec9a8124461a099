//! Appends fields to a buffer.

use alloc::vec::Vec;
use core::fmt;

/// Appends fields to a buffer that the caller reuses: after the first few datagrams nothing is allocated.
///
/// There are no errors: emitters take types that can hold only valid values.
///
/// ```
/// use rallypoint_wire::Writer;
///
/// let mut out = Vec::new();
/// let mut writer = Writer::new(&mut out);
/// writer.u8(0);
/// writer.u16_be(8_198);
/// writer.patch(0, &[2]); // a length that is known only now
/// assert_eq!(out, [2, 0x20, 0x06]);
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// A writer that starts a message at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// Number of bytes written by this writer.
    #[must_use]
    pub fn written(&self) -> usize {
        self.out.len() - self.start
    }

    /// The bytes written by this writer, starting at index `from`.
    #[must_use]
    pub fn since(&self, from: usize) -> &[u8] {
        &self.out[self.start + from..]
    }

    /// The bytes written by this writer, starting at index `from`, for changes in place.
    #[must_use]
    pub fn since_mut(&mut self, from: usize) -> &mut [u8] {
        &mut self.out[self.start + from..]
    }

    /// Raw bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Two bytes, big-endian.
    #[inline]
    pub fn u16_be(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Two bytes, little-endian.
    #[inline]
    pub fn u16_le(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Two bytes, signed, big-endian.
    #[inline]
    pub fn i16_be(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes, big-endian.
    #[inline]
    pub fn u32_be(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32_le(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64_le(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Formatted text.
    #[inline]
    pub fn display(&mut self, text: fmt::Arguments<'_>) {
        // Appending cannot fail; only a `Display` that itself returns an error could, and none here does.
        let _ = fmt::Write::write_fmt(self, text);
    }

    /// Overwrites bytes at index `at`, counted from this writer's start: for lengths and check values that are known only
    /// at the end.
    ///
    /// # Panics
    /// If nothing was written there, which is a bug in the emitter that no input can cause.
    #[inline]
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.out[self.start + at..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
