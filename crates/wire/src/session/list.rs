//! Lists of texts: n items are separated by n-1 zero bytes, and an empty list has no bytes (S4).

use super::{FieldError, MAX_TEXT, Text, field::until_nul};
use crate::{DecodeError, Reader};
use core::fmt;

/// A list of texts in at most 507 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TextList<'a>(Text<'a>);

impl<'a> TextList<'a> {
    /// Takes all remaining bytes of a datagram.
    pub(super) fn parse(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, DecodeError> {
        Text::parse(reader, field).map(Self)
    }

    /// The bytes as on the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// The items.
    pub fn iter(&self) -> impl Iterator<Item = Text<'a>> + Clone + use<'a> {
        let bytes = self.as_bytes();
        let items = (!bytes.is_empty()).then(|| bytes.split(|&byte| byte == 0));
        // An item is not longer than the list.
        items.into_iter().flatten().flat_map(Text::new)
    }

    /// Whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for TextList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A list of texts to be sent. It holds up to 507 bytes and never allocates.
#[derive(Clone)]
pub struct TextListBuf {
    bytes: [u8; MAX_TEXT],
    length: usize,
    /// Whether the next item is the first one, which no zero byte precedes.
    fresh: bool,
}

impl TextListBuf {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; MAX_TEXT], length: 0, fresh: true }
    }

    /// Takes items up to the first that does not fit (S3), so that two lists of corresponding items have the same length.
    #[must_use]
    pub fn cut<'i>(items: impl IntoIterator<Item = &'i str>) -> Self {
        let mut list = Self::new();
        let _ = items.into_iter().try_for_each(|item| list.push(until_nul(item)));
        list
    }

    /// Adds an item. A list of nothing but one empty item has no bytes, so it is received as an empty list.
    ///
    /// # Errors
    /// If the list would be longer than 507 bytes, or the item has a zero byte (S4).
    pub fn push(&mut self, item: &str) -> Result<(), FieldError> {
        if item.contains('\0') {
            return Err(FieldError::Nul);
        }
        // The zero byte between two items is already in the buffer: only items are ever written.
        let start = if self.fresh { 0 } else { self.length + 1 };
        let length = start + item.len();
        if length > MAX_TEXT {
            return Err(FieldError::TooLong { limit: MAX_TEXT, length });
        }
        self.bytes[start..length].copy_from_slice(item.as_bytes());
        self.length = length;
        self.fresh = false;
        Ok(())
    }

    /// The list for a datagram.
    #[must_use]
    pub fn as_list(&self) -> TextList<'_> {
        // `push` keeps the length within the field, so nothing is truncated here.
        TextList(Text::new(&self.bytes[..self.length]).unwrap_or_default())
    }
}

impl Default for TextListBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TextListBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_list().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn items<'a>(bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let list: TextList<'a> = TextList::parse(&mut Reader::new(bytes), "x").unwrap();
        list.iter().map(|item| item.as_bytes()).collect()
    }

    #[test]
    fn s4_items_are_separated_by_one_zero_byte() {
        assert_eq!(items(b""), [&b""[..]; 0]);
        assert_eq!(items(b"a"), [b"a"]);
        assert_eq!(items(b"a\0bc"), [&b"a"[..], b"bc"]);
        assert_eq!(items(b"\0"), [b"", b""]);
        assert_eq!(items(b"\0a\0\0"), [&b""[..], b"a", b"", b""]);
    }

    #[test]
    fn s4_items_round_trip() {
        for put in [&[][..], &["a"], &["a", "bc"], &["", "a"], &["a", "", ""], &["", ""]] {
            let mut list = TextListBuf::new();
            put.iter().for_each(|item| list.push(item).unwrap());
            let out: Vec<_> = list.as_list().iter().map(|item| item.to_str().unwrap()).collect();
            assert_eq!(out, put);
        }
        assert_eq!(TextListBuf::new().push("a\0b"), Err(FieldError::Nul));
    }

    #[test]
    fn s3_a_list_is_truncated_between_items() {
        let long = "x".repeat(250);
        let list = TextListBuf::cut([&*long, "a\0never", &long, "sixth", "b"]);
        assert_eq!(list.as_list().iter().map(|item| item.len()).collect::<Vec<_>>(), [250, 1, 250]);
        let mut list = TextListBuf::cut([&*long, &long]);
        assert_eq!(list.push("sixth."), Err(FieldError::TooLong { limit: 507, length: 508 }));
        assert_eq!(list.push("fifth"), Ok(()));
        assert_eq!(list.as_list().as_bytes().len(), 507);
    }
}
