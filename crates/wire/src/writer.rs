//! Writing fields to the end of a buffer.

use alloc::vec::Vec;
use core::fmt;

/// Appends fields to a buffer that the caller reuses: after its first few datagrams nothing is allocated.
///
/// There are no errors: what is emitted is made of types that can hold only what fits.
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

    /// How many bytes this writer has written.
    #[must_use]
    pub fn written(&self) -> usize {
        self.out.len() - self.start
    }

    /// The bytes this writer has written, from the one at `from` on.
    #[must_use]
    pub fn since(&self, from: usize) -> &[u8] {
        &self.out[self.start + from..]
    }

    /// The bytes this writer has written, from the one at `from` on, to be changed in their place.
    #[must_use]
    pub fn since_mut(&mut self, from: usize) -> &mut [u8] {
        &mut self.out[self.start + from..]
    }

    /// Bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Two bytes, the high one first.
    #[inline]
    pub fn u16_be(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Two bytes, the low one first.
    #[inline]
    pub fn u16_le(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Two bytes with a sign, the high one first.
    #[inline]
    pub fn i16_be(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes, the high one first.
    #[inline]
    pub fn u32_be(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes, the low one first.
    #[inline]
    pub fn u32_le(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes, the low one first.
    #[inline]
    pub fn u64_le(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Text, formatted as it is written.
    #[inline]
    pub fn display(&mut self, text: fmt::Arguments<'_>) {
        // Only a `Display` that fails by itself fails here, and none of ours does: appending cannot.
        let _ = fmt::Write::write_fmt(self, text);
    }

    /// Overwrites what was written at `at`, counted from this writer's start: for lengths and check values that are
    /// known only at the end.
    ///
    /// # Panics
    /// If nothing was written there: a mistake in the emitter, which no input can cause.
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
