//! Who is meant: the slot of a player, and the two numbers that only its owner and the server know.

use crate::{DecodeError, Reader, Reason, Writer};
use core::fmt;

/// A player's place on a server: 0 to 254 (S17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(u8);

impl SlotIndex {
    /// The highest slot.
    pub const MAX: Self = Self(254);

    /// How many slots there are.
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
        Self::new(reader.u8("user index")?).ok_or(DecodeError::new("user index", Reason::Invalid))
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

/// What tells the sessions of one slot apart. Not a secret: it stands in every datagram of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uid(u32);

impl Uid {
    /// A UID as it was received.
    #[must_use]
    pub const fn new(uid: u32) -> Self {
        Self(uid)
    }

    /// A UID for a new session, from random bytes; `None` if one of them is zero, then draw again.
    ///
    /// Without a zero byte, a login success can never be read as a login by another server (S17).
    #[must_use]
    pub fn draw(random: [u8; 4]) -> Option<Self> {
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

/// The secret of a plain session: who knows it can speak for the player. It hides itself from `Debug`, has no `Display`,
/// and is compared in constant time.
#[derive(Clone, Copy)]
pub struct Rand(u64);

impl Rand {
    /// A secret as it was received.
    #[must_use]
    pub const fn new(rand: u64) -> Self {
        Self(rand)
    }

    /// A secret for a new session, from random bytes; `None` if one of them is zero, then draw again (S17).
    #[must_use]
    pub fn draw(random: [u8; 8]) -> Option<Self> {
        (!random.contains(&0)).then_some(Self(u64::from_le_bytes(random)))
    }

    /// The secret number: for the wire, never for a person.
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
        // One comparison of a number: no early exit that would tell how many bytes were right.
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
    fn s17_no_byte_of_a_drawn_number_is_zero() {
        assert_eq!(Uid::draw([4, 3, 2, 1]), Some(Uid::new(0x0102_0304)));
        assert_eq!(Rand::draw([8, 7, 6, 5, 4, 3, 2, 1]), Some(Rand::new(0x0102_0304_0506_0708)));
        for zero in 0..4 {
            let mut random = [0xff; 4];
            random[zero] = 0;
            assert_eq!(Uid::draw(random), None);
        }
        for zero in 0..8 {
            let mut random = [0xff; 8];
            random[zero] = 0;
            assert_eq!(Rand::draw(random), None);
        }
    }

    #[test]
    fn a_rand_does_not_print_itself() {
        assert_eq!(format!("{:?}", Rand::new(0x1234)), "Rand(secret)");
    }
}
