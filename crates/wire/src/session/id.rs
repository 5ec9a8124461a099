//! Identification of a session: the slot of a player, its UID, and the secret of a plain session.

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use core::fmt;

/// Index of a player's slot on a server: 0 to 254 (S17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(u8);

impl SlotIndex {
    /// The highest slot.
    pub const MAX: Self = Self(254);

    /// Number of slots.
    pub const COUNT: usize = 255;

    /// A slot, unless the number is 255.
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        if index <= Self::MAX.0 { Some(Self(index)) } else { None }
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    #[inline]
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::new(reader.u8("user index")?).ok_or(DecodeError::new("user index", DecodeErrorKind::Invalid))
    }

    #[inline]
    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u8(self.0);
    }
}

impl From<SlotIndex> for usize {
    fn from(index: SlotIndex) -> Self {
        Self::from(index.0)
    }
}

/// Distinguishes the sessions of one slot. Not a secret: it is in every datagram of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uid(u32);

impl Uid {
    /// A UID as it was received.
    #[must_use]
    pub const fn new(uid: u32) -> Self {
        Self(uid)
    }

    /// A UID for a new session, from random bytes; `None` if one of them is zero: try again with other bytes.
    ///
    /// Without a zero byte, a login success can never be read as a login by another server (S17).
    #[must_use]
    pub fn from_random(random: [u8; 4]) -> Option<Self> {
        (!random.contains(&0)).then_some(Self(u32::from_le_bytes(random)))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u32_le("UID").map(Self)
    }

    #[inline]
    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u32_le(self.0);
    }
}

/// The secret of a plain session: it authenticates the player. `Debug` does not show it, there is no `Display`, and
/// comparison takes constant time.
#[derive(Clone, Copy)]
pub struct Rand(u64);

impl Rand {
    /// A secret as it was received.
    #[must_use]
    pub const fn new(rand: u64) -> Self {
        Self(rand)
    }

    /// A secret for a new session, from random bytes; `None` if one of them is zero: try again with other bytes (S17).
    #[must_use]
    pub fn from_random(random: [u8; 8]) -> Option<Self> {
        (!random.contains(&0)).then_some(Self(u64::from_le_bytes(random)))
    }

    /// The secret number, for the wire. It is never displayed.
    #[must_use]
    pub const fn expose(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u64_le("rand").map(Self)
    }

    #[inline]
    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u64_le(self.0);
    }
}

impl PartialEq for Rand {
    fn eq(&self, other: &Self) -> bool {
        // A single integer comparison: an early exit would reveal how many bytes match.
        self.0 == other.0
    }
}

impl Eq for Rand {}

impl fmt::Debug for Rand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rand(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn s17_there_are_255_slots() {
        assert_eq!((0..=255).filter_map(SlotIndex::new).count(), SlotIndex::COUNT);
        assert_eq!(SlotIndex::new(254), Some(SlotIndex::MAX));
        assert_eq!(SlotIndex::new(255), None);
    }

    #[test]
    fn s17_no_byte_of_a_random_number_is_zero() {
        assert_eq!(Uid::from_random([4, 3, 2, 1]), Some(Uid::new(0x0102_0304)));
        assert_eq!(Rand::from_random([8, 7, 6, 5, 4, 3, 2, 1]), Some(Rand::new(0x0102_0304_0506_0708)));
        for zero in 0..4 {
            let mut random = [0xff; 4];
            random[zero] = 0;
            assert_eq!(Uid::from_random(random), None);
        }
        for zero in 0..8 {
            let mut random = [0xff; 8];
            random[zero] = 0;
            assert_eq!(Rand::from_random(random), None);
        }
    }

    #[test]
    fn debug_does_not_show_a_rand() {
        assert_eq!(format!("{:?}", Rand::new(0x1234)), "Rand(secret)");
    }
}
