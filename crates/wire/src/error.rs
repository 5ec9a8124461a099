//! What was wrong in the bytes.

use core::fmt;

/// Why a datagram was not understood: which field, and what about it.
///
/// Small and `Copy`, so that a flood of nonsense costs nothing but the look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeError {
    /// The field as the document calls it.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// There is nothing at all.
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
    /// A mandatory field is not there.
    Missing,
    /// A field of fixed size has another size; the number is the right one, in bytes.
    NotBytes(u8),
    /// A check value (CRC, complement) does not fit what it protects.
    Mismatch,
    /// A number or text outside of what the field can mean.
    Invalid,
}

impl DecodeError {
    pub(crate) const fn new(field: &'static str, reason: Reason) -> Self {
        Self { field, reason }
    }
}

impl Reason {
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
        match self.reason {
            Reason::Empty => write!(f, "empty {field}"),
            Reason::Truncated => write!(f, "truncated in {field}"),
            Reason::TrailingBytes => write!(f, "trailing bytes after {field}"),
            Reason::TooLong => write!(f, "too long: {field}"),
            Reason::Unknown => write!(f, "unknown {field}"),
            Reason::Zero => write!(f, "{field} is 0"),
            Reason::Missing => write!(f, "no {field}"),
            Reason::NotBytes(size) => write!(f, "{field} is not {size} bytes"),
            Reason::Mismatch => write!(f, "{field} does not match"),
            Reason::Invalid => write!(f, "{field} is not valid"),
        }
    }
}

impl core::error::Error for DecodeError {}
