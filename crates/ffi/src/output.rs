//! Writing into buffers of the caller.

use crate::failure::{Failure, RP_ERROR_BUFFER_TOO_SMALL, RP_ERROR_NULL_POINTER};
use std::ffi::c_char;

/// Writes a value through a pointer of the caller.
///
/// # Safety
/// `out` is null or points to room for a `T`.
pub(crate) unsafe fn write<T>(out: *mut T, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::new(RP_ERROR_NULL_POINTER, "the pointer for the result is null"));
    }
    // SAFETY: as promised by the caller; a C compiler aligns it, other callers may not.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Writes a value through a pointer of the caller, unless that is null.
///
/// # Safety
/// As [`write`].
pub(crate) unsafe fn write_optional<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: as promised by the caller.
        unsafe { out.write_unaligned(value) };
    }
}

/// Copies bytes into a buffer, followed by a zero byte if there is room for it.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
pub(crate) unsafe fn copy(bytes: &[u8], buffer: *mut u8, capacity: usize) -> Result<(), Failure> {
    if bytes.len() > capacity {
        return Err(Failure::of(RP_ERROR_BUFFER_TOO_SMALL));
    }
    if buffer.is_null() {
        return if bytes.is_empty() { Ok(()) } else { Err(Failure::of(RP_ERROR_NULL_POINTER)) };
    }
    // SAFETY: there is room for the bytes, and for one more if the capacity is larger.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len());
        if bytes.len() < capacity {
            buffer.add(bytes.len()).write(0);
        }
    }
    Ok(())
}

/// Copies a zero-terminated text into a buffer and returns its length without the zero byte.
///
/// # Safety
/// As [`copy`].
pub(crate) unsafe fn copy_text(text: &str, buffer: *mut c_char, capacity: usize) -> Result<i32, Failure> {
    if buffer.is_null() {
        return Err(Failure::of(RP_ERROR_NULL_POINTER));
    }
    if text.len() >= capacity {
        return Err(Failure::of(RP_ERROR_BUFFER_TOO_SMALL));
    }
    // SAFETY: as promised by the caller.
    unsafe { copy(text.as_bytes(), buffer.cast(), capacity) }?;
    Ok(i32::try_from(text.len()).unwrap_or(i32::MAX))
}

/// A value for a structure of the caller whose header may be older or newer than this library: only as many bytes are written
/// as the caller's first field says that there is room for. That field is kept.
///
/// # Safety
/// `out` is null or points to as many writable bytes as its first field says, a `u32`; `T` is `repr(C)`, begins with the same
/// field and has no padding.
pub(crate) unsafe fn write_sized<T>(out: *mut T, value: &T, min_size: usize) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::new(RP_ERROR_NULL_POINTER, "the pointer for the result is null"));
    }
    const FIELD: usize = size_of::<u32>();
    // SAFETY: the structure begins with its size, and has that size.
    unsafe {
        let size = out.cast::<u32>().read_unaligned() as usize;
        if size < min_size {
            return Err(Failure::argument(format!("size is {size}: set it to the size of the structure")));
        }
        let length = size.min(size_of::<T>()) - FIELD;
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(value).cast::<u8>().add(FIELD),
            out.cast::<u8>().add(FIELD),
            length,
        );
    }
    Ok(())
}

/// The largest length up to `max` at which a text can be cut.
pub(crate) fn floor_char_boundary(text: &str, max: usize) -> usize {
    (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Places zero-terminated texts one after the other in a buffer of the caller.
pub(crate) struct TextWriter {
    buffer: *mut u8,
    capacity: usize,
    /// Bytes that all texts take, whether they fit or not.
    pub(crate) needed: usize,
}

impl TextWriter {
    /// # Safety
    /// `buffer` is null or points to `capacity` writable bytes, for as long as the writer is used.
    pub(crate) unsafe fn new(buffer: *mut c_char, capacity: usize) -> Self {
        let capacity = if buffer.is_null() { 0 } else { capacity };
        Self { buffer: buffer.cast(), capacity, needed: 0 }
    }

    /// Adds a text; zero bytes in it are left out. Returns where it is, or null if it does not fit.
    pub(crate) fn push(&mut self, text: &str) -> *const c_char {
        let at = self.needed;
        let length = text.bytes().filter(|byte| *byte != 0).count();
        self.needed += length + 1;
        if self.needed > self.capacity {
            return std::ptr::null();
        }
        // SAFETY: `at + length + 1` bytes are within the buffer.
        unsafe {
            for (offset, byte) in text.bytes().filter(|byte| *byte != 0).enumerate() {
                self.buffer.add(at + offset).write(byte);
            }
            self.buffer.add(at + length).write(0);
            self.buffer.add(at).cast()
        }
    }

    /// Whether everything fitted.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        if self.needed <= self.capacity {
            return Ok(());
        }
        Err(Failure::new(
            RP_ERROR_BUFFER_TOO_SMALL,
            format!("the buffer is too small: {} bytes are needed", self.needed),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_placed_one_after_the_other_and_never_beyond_the_buffer() {
        let mut buffer = [b'x'; 10];
        // SAFETY: the buffer is longer than the capacity.
        let mut writer = unsafe { TextWriter::new(buffer.as_mut_ptr().cast(), 7) };
        assert!(!writer.push("ab").is_null());
        assert!(!writer.push("c\0d").is_null());
        assert!(writer.finish().is_ok());
        assert!(!writer.push("").is_null());
        assert!(writer.push("").is_null());
        assert_eq!(writer.finish().unwrap_err().text, "the buffer is too small: 8 bytes are needed");
        assert_eq!(buffer, *b"ab\0cd\0\0xxx");
    }

    #[test]
    fn a_structure_is_written_as_far_as_the_caller_has_room() {
        let value = [0, 7_u32, 8];
        let mut out = [8, 0, 0];
        // SAFETY: the first number is at most the size in bytes.
        unsafe { write_sized(&raw mut out, &value, 8) }.unwrap();
        assert_eq!(out, [8, 7, 0]);
        out[0] = 12;
        // SAFETY: as above.
        unsafe { write_sized(&raw mut out, &value, 8) }.unwrap();
        assert_eq!(out, [12, 7, 8]);
        out[0] = 4;
        // SAFETY: as above.
        assert!(unsafe { write_sized(&raw mut out, &value, 8) }.is_err());
    }
}
