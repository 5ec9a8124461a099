//! A place in the row of events.

use std::{fmt, str::FromStr};
use thiserror::Error;

/// An event, by its number and the start of the program that counted it: numbers begin anew with each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Chosen at random when the program starts.
    pub epoch: u32,
    /// How many events there were, this one included.
    pub number: u64,
}

/// A text is not a [`Cursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected the id of an event, such as 5f3a09c1-1742")]
pub struct NotACursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.epoch, self.number)
    }
}

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (epoch, number) = text.split_once('-').ok_or(NotACursor)?;
        let is_hex = epoch.len() == 8 && epoch.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        if !is_hex || !is_number {
            return Err(NotACursor);
        }
        let epoch = u32::from_str_radix(epoch, 16).map_err(|_| NotACursor)?;
        Ok(Self { epoch, number: number.parse().map_err(|_| NotACursor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_what_they_print_and_nothing_else() {
        let cursor = Cursor { epoch: 0x5f3_a09c, number: 1742 };
        assert_eq!(cursor.to_string(), "05f3a09c-1742");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "-", "05f3a09c-", "05f3a09c", "5f3a09c-1", "05f3a09c-+1", "05f3a09c-99999999999999999999"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(NotACursor), "{wrong}");
        }
    }
}
