//! Reading what the caller passes: every pointer is checked as far as it can be.

use crate::failure::{Failure, RP_ERROR_INVALID_TEXT, RP_ERROR_NULL_POINTER, RP_ERROR_TOO_LARGE};
use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
    time::Duration,
};

/// A structure of the interface that begins with its own size in bytes as a `uint32_t`, set by the caller.
///
/// # Safety
/// The type is `repr(C)`, begins with that `u32`, and is valid if all of its bytes are zero.
pub(crate) unsafe trait SizedConfig: Copy {
    /// Size of the first published version of the structure.
    const MIN_SIZE: usize;

    /// The structure with its size and zero in every other field, which is the default of most settings.
    fn zeroed() -> Self {
        let mut config = MaybeUninit::<Self>::zeroed();
        // SAFETY: the structure begins with a `u32`, and is valid if all other bytes are zero.
        unsafe {
            config.as_mut_ptr().cast::<u32>().write(size_of::<Self>() as u32);
            config.assume_init()
        }
    }
}

/// Size beyond which no version of a structure will ever be: a larger one is a field that was never set.
const MAX_STRUCTURE: usize = 4096;

/// Reads a structure of a caller whose header may be older or newer than this library: missing fields are zero, unknown fields
/// have to be zero.
///
/// # Safety
/// `config` is null or points to as many readable bytes as its first field says.
pub(crate) unsafe fn config<T: SizedConfig>(config: *const T) -> Result<T, Failure> {
    if config.is_null() {
        return Err(Failure::new(RP_ERROR_NULL_POINTER, "the configuration is null"));
    }
    // SAFETY: the structure begins with its size.
    let size = unsafe { config.cast::<u32>().read_unaligned() } as usize;
    if !(T::MIN_SIZE..=MAX_STRUCTURE).contains(&size) {
        return Err(Failure::argument(format!("size is {size}: set it to the size of the structure")));
    }
    let known = size.min(size_of::<T>());
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: there are `size` readable bytes, and room for `known` of them in the copy. All types of structures are valid if
    // all bytes are zero.
    unsafe {
        let unknown = std::slice::from_raw_parts(config.cast::<u8>().add(known), size - known);
        if unknown.iter().any(|byte| *byte != 0) {
            return Err(Failure::argument("the configuration has fields that this version of the library lacks"));
        }
        std::ptr::copy_nonoverlapping(config.cast::<u8>(), copy.as_mut_ptr().cast(), known);
        Ok(copy.assume_init())
    }
}

/// A text, or `None` for a null pointer.
///
/// # Safety
/// `text` is null or zero-terminated, and not changed for `'a`.
pub(crate) unsafe fn optional_text<'a>(text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::of(RP_ERROR_INVALID_TEXT))
}

/// A text that must not be null; `name` is for the error.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: as promised by the caller.
    unsafe { optional_text(text) }?.ok_or_else(|| Failure::new(RP_ERROR_NULL_POINTER, format!("{name} is null")))
}

/// Maximum number of bytes that are passed to a function: no message, key or token is longer. A greater length is a
/// mistake of the caller, such as a negative number; the failed allocation of a copy of that size would end the process.
const MAX_BYTES: usize = 1 << 28;

/// Bytes. A null pointer is allowed if there are none.
///
/// # Safety
/// `data` points to `length` readable bytes that are not changed for `'a`, unless it is null or the length is 0.
pub(crate) unsafe fn bytes<'a>(data: *const u8, length: usize) -> Result<&'a [u8], Failure> {
    match length {
        0 => Ok(&[]),
        _ if data.is_null() => Err(Failure::of(RP_ERROR_NULL_POINTER)),
        _ if length > MAX_BYTES => {
            Err(Failure::new(RP_ERROR_TOO_LARGE, format!("there are {length} bytes: use fewer")))
        }
        // SAFETY: as promised by the caller; the length was checked.
        _ => Ok(unsafe { std::slice::from_raw_parts(data, length) }),
    }
}

/// An array of fixed length, or `None` for a null pointer.
///
/// # Safety
/// `data` is null or points to `N` readable bytes.
pub(crate) unsafe fn optional_array<const N: usize>(data: *const u8) -> Option<[u8; N]> {
    // SAFETY: as promised by the caller. An array of bytes needs no alignment.
    (!data.is_null()).then(|| unsafe { data.cast::<[u8; N]>().read() })
}

/// A number of milliseconds, or the default for 0.
pub(crate) fn milliseconds_or(value: u32, default: Duration) -> Duration {
    if value == 0 { default } else { Duration::from_millis(value.into()) }
}

/// A number, or the default for 0.
pub(crate) fn number_or(value: u32, default: usize) -> usize {
    if value == 0 { default } else { value as usize }
}

/// The items of a list in a text, separated by commas or white space.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::RP_ERROR_INVALID_ARGUMENT;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Config {
        size: u32,
        old: u32,
        new: u32,
    }

    // SAFETY: `repr(C)`, begins with its size, and consists of integers.
    unsafe impl SizedConfig for Config {
        const MIN_SIZE: usize = 8;
    }

    fn read(bytes: &[u32]) -> Result<Config, i32> {
        // SAFETY: every test passes at least as many bytes as the first number says, or a size that is refused.
        unsafe { config(bytes.as_ptr().cast::<Config>()) }.map_err(|failure| failure.code)
    }

    #[test]
    fn structures_of_older_and_newer_headers_are_read() {
        assert_eq!(read(&[8, 1, 2]), Ok(Config { size: 8, old: 1, new: 0 }));
        assert_eq!(read(&[12, 1, 2]), Ok(Config { size: 12, old: 1, new: 2 }));
        assert_eq!(read(&[16, 1, 2, 0]), Ok(Config { size: 16, old: 1, new: 2 }));
        assert_eq!(read(&[16, 1, 2, 3]), Err(RP_ERROR_INVALID_ARGUMENT));
        for size in [0, 7, 4097, u32::MAX] {
            assert_eq!(read(&[size, 1, 2]), Err(RP_ERROR_INVALID_ARGUMENT), "{size}");
        }
        // SAFETY: null is allowed.
        let null = unsafe { config::<Config>(std::ptr::null()) };
        assert_eq!(null.unwrap_err().code, RP_ERROR_NULL_POINTER);
    }

    #[test]
    fn lists_are_separated_by_commas_or_blanks() {
        assert_eq!(items(" a, b\tc ,,d").collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    }
}
