//! Message numbers, and the lists of numbers in acks and resends.
//!
//! ```text
//! <u8: # of messages>[<u32: message #><u32: message # bitwise NOT>]...
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use core::{fmt, iter::FusedIterator};

/// Maximum number of message numbers in an ack or resend: what fits into 508 bytes (S23).
pub const MAX_NUMBERS: usize = 63;

/// Sequence number of a message in its direction: it starts at 0, increments by 1, and wraps after 2³² - 1 (S21).
///
/// Numbers that wrap have no order that a sorted collection could use, so there is no `Ord`: compare with
/// [`is_before`](Self::is_before), or by [`distance_from`](Self::distance_from) the start of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    /// The number of the first message.
    pub const FIRST: Self = Self(0);

    /// An encrypted session ends before this number and logs in again (S21).
    pub const ENCRYPTED_END: Self = Self(1 << 30);

    /// Creates a message number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number as on the wire.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number of the message after this one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number `steps` messages after this one.
    #[inline]
    #[must_use]
    pub const fn plus(self, steps: u32) -> Self {
        Self(self.0.wrapping_add(steps))
    }

    /// Number of steps forward from `earlier` to this number, with wrap-around.
    ///
    /// `number.distance_from(start) < window` is the complete window check, for every number that a peer can send.
    #[inline]
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this number comes before `other`, in the sense of RFC 1982.
    ///
    /// Two numbers exactly 2³¹ apart have no order there: neither is before the other, so a number that far away is
    /// neither old nor in any window.
    #[inline]
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        let ahead = other.distance_from(self);
        ahead != 0 && ahead < 1 << 31
    }

    /// The later of two numbers.
    #[inline]
    #[must_use]
    pub const fn newer(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }

    #[inline]
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u32_le("message #").map(Self)
    }

    #[inline]
    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u32_le(self.0);
    }
}

impl fmt::Display for MessageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The message numbers of an ack or a resend: at most 63, each with its valid complement (S23).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NumberList<'a> {
    pairs: &'a [[u8; 8]],
}

impl<'a> NumberList<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.u8("# of messages")?;
        // A datagram has no space for more than 63 (S1), so a larger count is an error for truncation.
        let (pairs, _) = reader.bytes(usize::from(count) * 8, "message #")?.as_chunks();
        // All numbers are checked without an early exit, which is faster for valid lists.
        if pairs.iter().fold(0, |wrong, &pair| wrong | wrong_bits(pair)) != 0 {
            return Err(DecodeError::new("complement", DecodeErrorKind::Mismatch));
        }
        Ok(Self { pairs })
    }

    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        // Lists are created only by `parse` and `NumberListBuf`, so there are at most 63 numbers.
        writer.u8(self.pairs.len() as u8);
        writer.bytes(self.pairs.as_flattened());
    }

    /// The numbers, in the order they were sent.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = MessageNumber> + DoubleEndedIterator + FusedIterator + use<'a> {
        self.pairs.iter().map(|&[a, b, c, d, ..]| MessageNumber(u32::from_le_bytes([a, b, c, d])))
    }

    /// Number of message numbers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// The bits in which the second half of a pair differs from the complement of the first.
#[inline]
fn wrong_bits(pair: [u8; 8]) -> u32 {
    let pair = u64::from_le_bytes(pair);
    !(pair ^ (pair >> 32)) as u32
}

impl fmt::Debug for NumberList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(MessageNumber::get)).finish()
    }
}

/// The message numbers for an ack or a resend to be sent. It holds up to 63 and never allocates.
///
/// ```
/// use rallypoint_wire::session::{ClientDatagram, Control, MessageNumber, NumberListBuf};
///
/// let mut numbers = NumberListBuf::new();
/// assert!(numbers.push(MessageNumber::FIRST));
/// let mut datagram = Vec::new();
/// Control::Ack(numbers.as_list()).emit(&mut datagram);
/// let Ok(ClientDatagram::Control(Control::Ack(list))) = ClientDatagram::parse(&datagram) else { panic!("not an ack") };
/// assert!(list.iter().eq([MessageNumber::FIRST]));
/// ```
#[derive(Clone)]
pub struct NumberListBuf {
    pairs: [[u8; 8]; MAX_NUMBERS],
    count: usize,
}

impl NumberListBuf {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { pairs: [[0; 8]; MAX_NUMBERS], count: 0 }
    }

    /// Adds a number; returns `false` if the list is full.
    pub fn push(&mut self, number: MessageNumber) -> bool {
        let Some(pair) = self.pairs.get_mut(self.count) else { return false };
        *pair = (u64::from(number.0) | u64::from(!number.0) << 32).to_le_bytes();
        self.count += 1;
        true
    }

    /// Whether the list is full.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.count == MAX_NUMBERS
    }

    /// Removes all numbers.
    pub const fn clear(&mut self) {
        self.count = 0;
    }

    /// The list for an ack or a resend.
    #[must_use]
    pub fn as_list(&self) -> NumberList<'_> {
        NumberList { pairs: &self.pairs[..self.count] }
    }
}

impl Default for NumberListBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for NumberListBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_list().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u32 = 1 << 31;

    fn number(number: u32) -> MessageNumber {
        MessageNumber::new(number)
    }

    #[test]
    fn s21_numbers_wrap() {
        assert_eq!(number(u32::MAX).next(), MessageNumber::FIRST);
        assert_eq!(number(5).distance_from(number(u32::MAX - 4)), 10);
        assert!(number(u32::MAX).is_before(number(0)));
        assert!(!number(0).is_before(number(u32::MAX)));
    }

    #[test]
    fn s21_a_number_is_not_before_itself_nor_half_way_around() {
        for start in [0, 1, 7, HALF - 1, HALF, HALF + 1, u32::MAX] {
            let here = number(start);
            assert!(!here.is_before(here));
            assert!(here.is_before(here.next()) && !here.next().is_before(here));
            assert!(here.is_before(here.plus(HALF - 1)) && !here.plus(HALF - 1).is_before(here));
            assert!(!here.is_before(here.plus(HALF)) && !here.plus(HALF).is_before(here));
            assert!(!here.is_before(here.plus(HALF + 1)) && here.plus(HALF + 1).is_before(here));
        }
    }

    #[test]
    fn s22_the_window_check_holds_for_every_number() {
        for start in [0, 100, u32::MAX - 10] {
            let start = number(start);
            for inside in [0, 1, 4_095] {
                assert!(start.plus(inside).distance_from(start) < 4_096);
            }
            for outside in [4_096, HALF, u32::MAX] {
                assert!(start.plus(outside).distance_from(start) >= 4_096);
            }
        }
    }

    #[test]
    fn s23_a_list_holds_63_numbers() {
        let mut list = NumberListBuf::new();
        for next in 0..63 {
            assert!(!list.is_full() && list.push(number(next)));
        }
        assert!(list.is_full() && !list.push(number(63)));
        assert!(list.as_list().iter().map(MessageNumber::get).eq(0..63));
        list.clear();
        assert!(list.as_list().is_empty() && list.push(number(9)));
    }

    #[test]
    fn s23_one_wrong_complement_invalidates_the_list() {
        let right = [2, 1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0x7f];
        let list = NumberList::parse(&mut Reader::new(&right)).unwrap();
        assert!(list.iter().eq([number(1), number(HALF)]));
        for bit in 0..64 {
            let mut wrong = right;
            wrong[9 + bit / 8] ^= 1 << (bit % 8);
            let error = NumberList::parse(&mut Reader::new(&wrong)).unwrap_err();
            assert_eq!(error, DecodeError::new("complement", DecodeErrorKind::Mismatch));
        }
    }
}
