//! A position in the sequence of events.

use std::{fmt, str::FromStr};
use thiserror::Error;

/// The ID of an event: its number and the epoch of the process, because numbers start again with each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Random number chosen when the process starts.
    pub epoch: u32,
    /// Number of the event, counted from 1; 0 is the state before the first event.
    pub number: u64,
}

/// The text is not a valid [`Cursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected the id of an event, such as 5f3a09c1-1742")]
pub struct InvalidCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.epoch, self.number)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (epoch, number) = text.split_once('-').ok_or(InvalidCursor)?;
        let is_hex = epoch.len() == 8 && epoch.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        if !is_hex || !is_number {
            return Err(InvalidCursor);
        }
        let epoch = u32::from_str_radix(epoch, 16).map_err(|_| InvalidCursor)?;
        Ok(Self { epoch, number: number.parse().map_err(|_| InvalidCursor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_other_texts_are_invalid() {
        let cursor = Cursor { epoch: 0x5f3_a09c, number: 1742 };
        assert_eq!(cursor.to_string(), "05f3a09c-1742");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for invalid in ["", "-", "05f3a09c-", "05f3a09c", "5f3a09c-1", "05f3a09c-+1", "05f3a09c-99999999999999999999"] {
            assert_eq!(invalid.parse::<Cursor>(), Err(InvalidCursor), "{invalid}");
        }
    }
}
