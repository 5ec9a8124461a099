//! Decoding errors.

use core::fmt;

/// Why bytes could not be parsed: the field, and what is wrong with it.
///
/// Small and `Copy`, so that a flood of malformed datagrams costs no allocation.
///
/// ```
/// use rallypoint_wire::{DecodeErrorKind, session::ClientDatagram};
///
/// let error = ClientDatagram::parse(&[]).unwrap_err();
/// assert_eq!((error.field, error.kind), ("datagram", DecodeErrorKind::Empty));
/// assert_eq!(error.kind.code(), "empty");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeError {
    /// Name of the field in the document.
    pub field: &'static str,
    /// The problem with it.
    pub kind: DecodeErrorKind,
}

/// The problem with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// There are no bytes.
    Empty,
    /// The bytes end before the field does.
    Truncated,
    /// Bytes are left over where the message should end.
    TrailingBytes,
    /// The field is longer than the document allows.
    TooLong,
    /// A type, protocol or transport that no document names.
    Unknown,
    /// Zero where zero has no meaning.
    Zero,
    /// A mandatory field is missing.
    Missing,
    /// A field of fixed size has another size; the value is the required size in bytes.
    NotBytes(u8),
    /// A check value (CRC, complement) does not match the bytes it protects.
    Mismatch,
    /// A number or text outside the range of the field.
    Invalid,
}

impl DecodeError {
    pub(crate) const fn new(field: &'static str, kind: DecodeErrorKind) -> Self {
        Self { field, kind }
    }
}

impl DecodeErrorKind {
    /// A stable code for counters and logs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Truncated => "truncated",
            Self::TrailingBytes => "trailing_bytes",
            Self::TooLong => "too_long",
            Self::Unknown => "unknown",
            Self::Zero => "zero",
            Self::Missing => "missing",
            Self::NotBytes(_) => "wrong_size",
            Self::Mismatch => "mismatch",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field;
        match self.kind {
            DecodeErrorKind::Empty => write!(f, "empty {field}"),
            DecodeErrorKind::Truncated => write!(f, "truncated in {field}"),
            DecodeErrorKind::TrailingBytes => write!(f, "trailing bytes after {field}"),
            DecodeErrorKind::TooLong => write!(f, "too long: {field}"),
            DecodeErrorKind::Unknown => write!(f, "unknown {field}"),
            DecodeErrorKind::Zero => write!(f, "{field} is 0"),
            DecodeErrorKind::Missing => write!(f, "no {field}"),
            DecodeErrorKind::NotBytes(size) => write!(f, "{field} is not {size} bytes"),
            DecodeErrorKind::Mismatch => write!(f, "{field} does not match"),
            DecodeErrorKind::Invalid => write!(f, "{field} is not valid"),
        }
    }
}

impl core::error::Error for DecodeError {}
