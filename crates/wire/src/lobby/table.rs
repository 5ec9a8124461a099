//! The key/value table of registrations and list blocks.
//!
//! ```text
//! + 0     key length (uint8)
//! + 1     key
//! + n     value length (uint16)
//! + n+2   value                       001 says n+2; the n+1 of 000 is an error (L1)
//! ```

use super::MAX_REGISTRATION;
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::{
    vec,
    vec::{IntoIter, Vec},
};
use core::fmt;

/// Offset of the table in a registration of document 001.
pub(super) const OFFSET: usize = 61;

/// Size in bytes of an entry with an empty key and an empty value.
pub(super) const SMALLEST_ENTRY: usize = 3;

/// Maximum number of entries that are compared pairwise to find repeated keys. Real servers send 5 to 12 entries.
const PAIRWISE: usize = 16;

/// A validated key/value table: iterating over it cannot fail.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    /// Exactly `count` entries, without trailing bytes.
    bytes: &'a [u8],
    count: u16,
}

/// A key and its value: raw bytes, forwarded unchanged (L5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// At most 255 bytes.
    pub key: &'a [u8],
    /// At most 65,535 bytes.
    pub value: &'a [u8],
}

impl<'a> Table<'a> {
    /// Parses a table whose entries follow a count (001).
    pub(super) fn parse_counted(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.u16_be("entry count")?;
        let start = reader.rest();
        for _ in 0..count {
            Entry::parse(reader)?;
        }
        Ok(Self { bytes: &start[..start.len() - reader.rest().len()], count })
    }

    /// Parses a table of document 000: entries up to exactly the end of the datagram, without empty keys (L1).
    pub(super) fn parse_to_end(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = reader.rest();
        let mut count = 0u16;
        while !reader.is_empty() {
            if Entry::parse(&mut reader)?.key.is_empty() {
                return Err(DecodeError::new("key", DecodeErrorKind::Empty));
            }
            count = count.checked_add(1).ok_or(DecodeError::new("key/value table", DecodeErrorKind::TooLong))?;
        }
        Ok(Self { bytes, count })
    }

    /// The entries. A repeated key yields one entry: its last value, at its first position (L4).
    ///
    /// This allocates only if a key is repeated or there are more than 16 entries.
    #[must_use]
    pub fn iter(&self) -> Entries<'a> {
        Entries(if self.is_distinct() {
            Walk::RawEntries(self.raw_entries())
        } else {
            Walk::Merged(self.merged().into_iter())
        })
    }

    /// The value of a key; the last one if the key is repeated (L4).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.raw_entries().filter(|entry| entry.key == key).last().map(|entry| entry.value)
    }

    /// Size in bytes of the entries as sent; merging repeated keys does not make them larger.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the entries, without their count.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of entries as sent, with each repeated key counted each time.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// Writes the count and the entries, as in 001 and in the list.
    pub(super) fn emit_counted(&self, writer: &mut Writer<'_>) {
        let at = writer.written();
        writer.u16_be(self.count);
        if self.is_distinct() {
            writer.bytes(self.bytes);
        } else {
            let merged = self.merged();
            if merged.len() == self.count() {
                return writer.bytes(self.bytes);
            }
            // At most the number of parsed entries, whose count has 16 bits.
            writer.patch(at, &(merged.len() as u16).to_be_bytes());
            merged.iter().for_each(|entry| entry.emit(writer));
        }
    }

    /// Writes the entries only, as in 000.
    pub(super) fn emit_bare(&self, writer: &mut Writer<'_>) {
        self.iter().for_each(|entry| entry.emit(writer));
    }

    fn raw_entries(&self) -> RawEntries<'a> {
        RawEntries(Reader::new(self.bytes))
    }

    /// Whether a cheap check shows that no key is repeated.
    fn is_distinct(&self) -> bool {
        if usize::from(self.count) > PAIRWISE {
            return false;
        }
        let mut keys = [&[][..]; PAIRWISE];
        self.raw_entries().enumerate().all(|(seen, entry)| {
            keys[seen] = entry.key;
            !keys[..seen].contains(&entry.key)
        })
    }

    /// Merges repeated keys (L4) by sorting: a hostile table costs at most n log n comparisons, most of them of integers.
    fn merged(&self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = self.raw_entries().collect();
        let mut order: Vec<(u64, &[u8], usize)> =
            entries.iter().enumerate().map(|(place, entry)| (head(entry.key), entry.key, place)).collect();
        order.sort_unstable();
        let mut is_first = vec![true; entries.len()];
        for same in order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            if let [(.., first), later @ ..] = same
                && let Some((.., last)) = later.last()
            {
                entries[*first].value = entries[*last].value;
                later.iter().for_each(|(.., place)| is_first[*place] = false);
            }
        }
        let mut is_first = is_first.into_iter();
        entries.retain(|_| is_first.next() == Some(true));
        entries
    }
}

/// The start of a key as an integer. Keys of up to seven bytes with the same head are equal.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let count = key.len().min(7);
    head[..count].copy_from_slice(&key[..count]);
    head[7] = key.len().min(8) as u8;
    u64::from_be_bytes(head)
}

impl<'a> Entry<'a> {
    #[inline]
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let length = reader.u8("key length")?;
        let key = reader.bytes(usize::from(length), "key")?;
        let length = reader.u16_be("value length")?;
        let value = reader.bytes(usize::from(length), "value")?;
        Ok(Self { key, value })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        // Entries are created only by `parse` and `TableBuf::push`, so both lengths fit.
        writer.u8(self.key.len() as u8);
        writer.bytes(self.key);
        writer.u16_be(self.value.len() as u16);
        writer.bytes(self.value);
    }
}

impl PartialEq for Table<'_> {
    /// Tables are equal if their merged entries are.
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes || self.iter().eq(other.iter())
    }
}

impl Eq for Table<'_> {}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|e| (crate::text::display(e.key), crate::text::display(e.value))))
            .finish()
    }
}

impl<'a> IntoIterator for &Table<'a> {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The entries of a [`Table`], each key once.
#[derive(Debug)]
pub struct Entries<'a>(Walk<'a>);

#[derive(Debug)]
enum Walk<'a> {
    RawEntries(RawEntries<'a>),
    Merged(IntoIter<Entry<'a>>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        match &mut self.0 {
            Walk::RawEntries(walk) => walk.next(),
            Walk::Merged(walk) => walk.next(),
        }
    }
}

/// The entries in the order of the bytes, including repeated keys.
#[derive(Clone, Copy, Debug)]
struct RawEntries<'a>(Reader<'a>);

impl<'a> Iterator for RawEntries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        // The bytes were validated when the table was created, so an error can only mean the end.
        Entry::parse(&mut self.0).ok()
    }
}

/// A table to be sent, with space of its own.
///
/// ```
/// use rallypoint_wire::lobby::TableBuf;
///
/// let mut table = TableBuf::new();
/// table.push(b"name", b"Bacon Town")?;
/// assert_eq!(table.as_table().get(b"name"), Some(&b"Bacon Town"[..]));
/// # Ok::<(), rallypoint_wire::lobby::EntryError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableBuf {
    bytes: Vec<u8>,
    count: u16,
}

/// Why an entry does not fit into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryError {
    /// The key is longer than 255 bytes.
    KeyTooLong,
    /// The value is longer than 65,535 bytes.
    ValueTooLong,
    /// The registration would no longer fit into a datagram of 65,507 bytes.
    TableFull,
}

impl TableBuf {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0 }
    }

    /// Adds an entry at the end. A repeated key takes the new value, at its first position (L4).
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), EntryError> {
        if key.len() > usize::from(u8::MAX) {
            return Err(EntryError::KeyTooLong);
        }
        if value.len() > usize::from(u16::MAX) {
            return Err(EntryError::ValueTooLong);
        }
        let size = 1 + key.len() + 2 + value.len();
        if self.bytes.len() + size > MAX_REGISTRATION - OFFSET {
            return Err(EntryError::TableFull);
        }
        // The smallest entry has three bytes, so the count cannot reach 65,536 within the size limit.
        self.count += 1;
        Entry { key, value }.emit(&mut Writer::new(&mut self.bytes));
        Ok(())
    }

    /// The table for a registration.
    #[must_use]
    pub fn as_table(&self) -> Table<'_> {
        Table { bytes: &self.bytes, count: self.count }
    }
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeyTooLong => "a key can have at most 255 bytes",
            Self::ValueTooLong => "a value can have at most 65,535 bytes",
            Self::TableFull => "all keys and values together can have at most 65,446 bytes",
        })
    }
}

impl core::error::Error for EntryError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&[u8], &[u8])]) -> TableBuf {
        let mut table = TableBuf::new();
        for (key, value) in entries {
            table.push(key, value).unwrap();
        }
        table
    }

    #[test]
    fn l4_a_repeated_key_has_its_last_value_at_its_first_position() {
        let table = table(&[(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"", b"4"), (b"a", b"5")]);
        let table = table.as_table();
        let entries: Vec<_> = table.iter().map(|entry| (entry.key, entry.value)).collect();
        assert_eq!(entries, [(&b"a"[..], &b"5"[..]), (b"b", b"2"), (b"", b"4")]);
        assert_eq!(table.get(b"a"), Some(&b"5"[..]));
    }

    #[test]
    fn l4_a_hostile_table_of_twenty_thousand_keys_is_merged_quickly() {
        let mut buf = TableBuf::new();
        while buf.push(b"k", b"").is_ok() {}
        assert!(buf.count > 16_000);
        assert_eq!(buf.as_table().iter().count(), 1);
    }

    #[test]
    fn l4_long_keys_with_the_same_start_are_distinct() {
        let mut buf = TableBuf::new();
        let keys: Vec<Vec<u8>> =
            (0..50u8).map(|n| [&b"x-the-same-"[..], &[n; 3][..usize::from(n) % 4]].concat()).collect();
        (0u8..).zip(&keys).for_each(|(n, key)| buf.push(key, &[n]).unwrap());
        let mut naive: Vec<(&[u8], u8)> = Vec::new();
        for (n, key) in (0u8..).zip(&keys) {
            match naive.iter_mut().find(|(known, _)| known == key) {
                Some((_, value)) => *value = n,
                None => naive.push((key, n)),
            }
        }
        let entries: Vec<_> = buf.as_table().iter().map(|entry| (entry.key, entry.value[0])).collect();
        assert_eq!(entries, naive);
        assert!(entries.len() < keys.len());
    }

    #[test]
    fn entries_that_do_not_fit_are_rejected_with_their_cause() {
        let mut buf = TableBuf::new();
        assert_eq!(buf.push(&[b'k'; 256], b""), Err(EntryError::KeyTooLong));
        assert_eq!(buf.push(b"k", &vec![0; 65_536]), Err(EntryError::ValueTooLong));
        assert_eq!(buf.push(b"k", &vec![0; 65_535]), Err(EntryError::TableFull));
        assert_eq!(buf.push(b"k", &vec![0; 65_442]), Ok(()));
        assert_eq!(buf.push(b"", b""), Err(EntryError::TableFull));
    }
}
