//! Text fields: bytes that should be UTF-8, each kind with its maximum length (S3, S4).
//!
//! Text that is not UTF-8 still parses: a server has to answer such a login, and a client displays such an info with
//! replacement characters.

use super::MAX_TEXT;
use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::{borrow::Cow, string::String};
use core::{
    fmt,
    ops::Deref,
    str::{self, Utf8Error},
};

/// A text of at most `MAX` bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Text<'a, const MAX: usize = MAX_TEXT>(&'a [u8]);

/// A text of at most `MAX` bytes, none of which is zero (S4).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Name<'a, const MAX: usize>(Text<'a, MAX>);

/// Why bytes do not fit into a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// There are too many bytes.
    TooLong {
        /// Maximum number of bytes.
        limit: usize,
        /// Number of bytes.
        length: usize,
    },
    /// There is a zero byte, which would end the field (S4).
    Nul,
}

impl<'a, const MAX: usize> Text<'a, MAX> {
    /// Creates a text.
    ///
    /// # Errors
    /// If it is longer than the field.
    pub const fn new(bytes: &'a [u8]) -> Result<Self, FieldError> {
        if bytes.len() <= MAX { Ok(Self(bytes)) } else { Err(FieldError::TooLong { limit: MAX, length: bytes.len() }) }
    }

    /// Creates a text, truncated to the field on a character boundary (S3).
    #[must_use]
    pub fn cut(text: &'a str) -> Self {
        Self::cut_to(MAX, text)
    }

    /// Creates a text, truncated to `limit` bytes and to the field on a character boundary (S3).
    #[must_use]
    pub fn cut_to(limit: usize, text: &'a str) -> Self {
        Self(&text.as_bytes()[..text.floor_char_boundary(limit.min(MAX))])
    }

    /// Takes all remaining bytes of a datagram.
    pub(super) fn parse(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, DecodeError> {
        Self::checked(reader.take_rest(), field)
    }

    fn checked(bytes: &'a [u8], field: &'static str) -> Result<Self, DecodeError> {
        Self::new(bytes).map_err(|_| DecodeError::new(field, DecodeErrorKind::TooLong))
    }

    /// The bytes as on the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, if it is UTF-8.
    ///
    /// # Errors
    /// If it is not.
    pub const fn to_str(&self) -> Result<&'a str, Utf8Error> {
        str::from_utf8(self.0)
    }

    /// The text, with replacement characters for invalid UTF-8 (S3). It can still contain control characters, which
    /// [`text::sanitize`](crate::text::sanitize) replaces.
    #[must_use]
    pub fn to_str_lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// The text, if it is UTF-8 without control characters, as a login requires (S3).
    pub(super) fn check(&self, field: &'static str) -> Result<&'a str, DecodeError> {
        match self.to_str() {
            Ok(text) if !text.contains(char::is_control) => Ok(text),
            _ => Err(DecodeError::new(field, DecodeErrorKind::Invalid)),
        }
    }
}

impl<'a, const MAX: usize> Name<'a, MAX> {
    /// Creates a name.
    ///
    /// # Errors
    /// If it is longer than the field or has a zero byte.
    pub fn new(bytes: &'a [u8]) -> Result<Self, FieldError> {
        match Text::new(bytes) {
            Ok(_) if bytes.contains(&0) => Err(FieldError::Nul),
            Ok(text) => Ok(Self(text)),
            Err(error) => Err(error),
        }
    }

    /// Creates a name, truncated to the field on a character boundary (S3) and at the first zero byte.
    #[must_use]
    pub fn cut(text: &'a str) -> Self {
        Self(Text::cut(until_nul(text)))
    }

    /// Takes the bytes up to the next zero byte, and that byte.
    pub(super) fn parse_until_nul(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, DecodeError> {
        Text::checked(reader.until(0, field)?, field).map(Self)
    }

    /// Takes all remaining bytes of a datagram.
    pub(super) fn parse(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, DecodeError> {
        Self::new(reader.take_rest()).map_err(|error| match error {
            FieldError::TooLong { .. } => DecodeError::new(field, DecodeErrorKind::TooLong),
            FieldError::Nul => DecodeError::new(field, DecodeErrorKind::Invalid),
        })
    }
}

/// The text up to its first zero byte.
pub(super) fn until_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

impl<'a, const MAX: usize> Deref for Name<'a, MAX> {
    type Target = Text<'a, MAX>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Text<'_, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_str_lossy().fmt(f)
    }
}

impl<const MAX: usize> fmt::Debug for Name<'_, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { limit, length } => write!(f, "at most {limit} bytes fit, but there are {length}"),
            Self::Nul => f.write_str("a zero byte cannot be part of it"),
        }
    }
}

impl core::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn s3_what_is_cut_is_cut_between_characters() {
        assert_eq!(Text::<4>::cut("abc").as_bytes(), b"abc");
        assert_eq!(Text::<4>::cut("abcde").as_bytes(), b"abcd");
        assert_eq!(Text::<4>::cut("abcä").as_bytes(), b"abc");
        assert_eq!(Text::<4>::cut("🎮🎮").as_bytes(), "🎮".as_bytes());
        assert_eq!(Text::<4>::cut_to(3, "🎮").as_bytes(), b"");
        assert_eq!(Text::<4>::cut_to(99, "abcde").as_bytes(), b"abcd");
    }

    #[test]
    fn s4_a_name_ends_before_its_first_nul() {
        assert_eq!(Name::<9>::cut("one\0two").as_bytes(), b"one");
        assert_eq!(Name::<9>::new(b"one\0two"), Err(FieldError::Nul));
        assert_eq!(
            Name::<9>::parse(&mut Reader::new(b"a\0"), "x"),
            Err(DecodeError::new("x", DecodeErrorKind::Invalid))
        );
    }

    #[test]
    fn s3_received_text_is_decoded_with_replacement() {
        let text = Text::<9>::new(b"Zo\xeb\xc3\xab").unwrap();
        assert!(text.to_str().is_err());
        assert_eq!(text.to_str_lossy(), "Zo\u{fffd}ë");
    }

    #[test]
    fn s3_a_login_is_made_of_utf8_without_control_characters() {
        let check = |bytes| Text::<9>::new(bytes).unwrap().check("x");
        assert_eq!(check("Zoë 🎮".as_bytes()), Ok("Zoë 🎮"));
        for wrong in [&b"\xff"[..], b"a\x00", b"\x1b[0m", b"a\n", b"\x7f", "\u{9b}".as_bytes()] {
            assert_eq!(check(wrong), Err(DecodeError::new("x", DecodeErrorKind::Invalid)), "{wrong:?}");
        }
    }

    #[test]
    fn s33_an_error_names_the_limit() {
        let error = Text::<4>::new(b"abcde").unwrap_err();
        assert_eq!(error, FieldError::TooLong { limit: 4, length: 5 });
        assert_eq!(error.to_string(), "at most 4 bytes fit, but there are 5");
    }
}
