//! The key/value table of registrations and list blocks.
//!
//! ```text
//! + 0     key length (uint8)
//! + 1     key
//! + n     value length (uint16)
//! + n+2   value                       001 says n+2; the n+1 of 000 is a slip (L1)
//! ```

use super::MAX_REGISTRATION;
use crate::{DecodeError, Reader, Reason, Writer};
use alloc::{
    vec,
    vec::{IntoIter, Vec},
};
use core::fmt;

/// Where the table starts in a registration of document 001.
pub(super) const OFFSET: usize = 61;

/// An entry with an empty key and an empty value, in bytes.
pub(super) const SMALLEST_ENTRY: usize = 3;

/// Up to this many entries are compared pairwise to see whether a key appears twice. Real servers send 5 to 12.
const PAIRWISE: usize = 16;

/// A key/value table that has been checked: it can be walked without errors.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    /// Exactly `count` entries, nothing behind them.
    bytes: &'a [u8],
    count: u16,
}

/// One key and its value: bytes, passed on unchanged (L5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// At most 255 bytes.
    pub key: &'a [u8],
    /// At most 65,535 bytes.
    pub value: &'a [u8],
}

impl<'a> Table<'a> {
    /// The table of a message in which a count precedes the entries (001).
    pub(super) fn parse_counted(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.u16_be("entry count")?;
        let start = reader.rest();
        for _ in 0..count {
            Entry::parse(reader)?;
        }
        Ok(Self { bytes: &start[..start.len() - reader.rest().len()], count })
    }

    /// The table of document 000: entries up to exactly the end of the datagram, no empty keys (L1).
    pub(super) fn parse_to_end(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = reader.rest();
        let mut count = 0u16;
        while !reader.is_empty() {
            if Entry::parse(&mut reader)?.key.is_empty() {
                return Err(DecodeError::new("key", Reason::Empty));
            }
            count = count.checked_add(1).ok_or(DecodeError::new("key/value table", Reason::TooLong))?;
        }
        Ok(Self { bytes, count })
    }

    /// The entries. Of a key that appears several times there is one entry: the last value, at the first place (L4).
    ///
    /// Only a table with a repeated key, or with more than 16 entries, makes this allocate.
    #[must_use]
    pub fn iter(&self) -> Entries<'a> {
        Entries(if self.is_distinct() { Walk::AsSent(self.as_sent()) } else { Walk::Merged(self.merged().into_iter()) })
    }

    /// The value of a key; the last one, if it appears several times (L4).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.as_sent().filter(|entry| entry.key == key).last().map(|entry| entry.value)
    }

    /// How many bytes the entries have as they were sent: at least as many as they have once repeated keys are merged.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// How many entries were sent, repeated keys counted each time.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// The count and the entries, as 001 and the list have them.
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
            // There are at most as many as were parsed, and those were counted in 16 bits.
            writer.patch(at, &(merged.len() as u16).to_be_bytes());
            merged.iter().for_each(|entry| entry.emit(writer));
        }
    }

    /// The entries alone, as 000 has them.
    pub(super) fn emit_bare(&self, writer: &mut Writer<'_>) {
        self.iter().for_each(|entry| entry.emit(writer));
    }

    fn as_sent(&self) -> AsSent<'a> {
        AsSent(Reader::new(self.bytes))
    }

    /// Whether it is certain, at little cost, that no key appears twice.
    fn is_distinct(&self) -> bool {
        if usize::from(self.count) > PAIRWISE {
            return false;
        }
        let mut keys = [&[][..]; PAIRWISE];
        self.as_sent().enumerate().all(|(seen, entry)| {
            keys[seen] = entry.key;
            !keys[..seen].contains(&entry.key)
        })
    }

    /// The entries with repeated keys merged (L4), by sorting: a hostile table costs no more than n log n, and most of
    /// that are comparisons of numbers.
    fn merged(&self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = self.as_sent().collect();
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

/// What a key begins with, as a number. Keys of up to seven bytes that have the same are the same.
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
        // An entry is made by `parse` or `TableBuf::push` only, so both lengths fit.
        writer.u8(self.key.len() as u8);
        writer.bytes(self.key);
        writer.u16_be(self.value.len() as u16);
        writer.bytes(self.value);
    }
}

impl PartialEq for Table<'_> {
    /// Tables are the same if they mean the same: repeated keys are merged first.
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
    AsSent(AsSent<'a>),
    Merged(IntoIter<Entry<'a>>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        match &mut self.0 {
            Walk::AsSent(walk) => walk.next(),
            Walk::Merged(walk) => walk.next(),
        }
    }
}

/// The entries as they stand in the bytes, repeated keys included.
#[derive(Clone, Copy, Debug)]
struct AsSent<'a>(Reader<'a>);

impl<'a> Iterator for AsSent<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        // The bytes were checked when the table was made, so an error can only mean the end.
        Entry::parse(&mut self.0).ok()
    }
}

/// A table to be filled, for whoever sends one.
#[derive(Clone, Debug, Default)]
pub struct TableBuf {
    bytes: Vec<u8>,
    count: u16,
}

/// Why an entry does not fit into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// The key is longer than 255 bytes.
    KeyTooLong,
    /// The value is longer than 65,535 bytes.
    ValueTooLong,
    /// With this entry the registration would not fit into a datagram of 65,507 bytes.
    TableFull,
}

impl TableBuf {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0 }
    }

    /// Adds an entry at the end. A key that is there already gets the new value, at its first place (L4).
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
        // The smallest entry has three bytes, so the count cannot reach 65,536 within the bytes allowed.
        self.count += 1;
        Entry { key, value }.emit(&mut Writer::new(&mut self.bytes));
        Ok(())
    }

    /// The table, to be sent.
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
    fn l4_the_last_value_stands_at_the_first_place() {
        let table = table(&[(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"", b"4"), (b"a", b"5")]);
        let table = table.as_table();
        let entries: Vec<_> = table.iter().map(|entry| (entry.key, entry.value)).collect();
        assert_eq!(entries, [(&b"a"[..], &b"5"[..]), (b"b", b"2"), (b"", b"4")]);
        assert_eq!(table.get(b"a"), Some(&b"5"[..]));
    }

    #[test]
    fn l4_a_hostile_table_of_twenty_thousand_keys_is_merged_in_good_time() {
        let mut buf = TableBuf::new();
        while buf.push(b"k", b"").is_ok() {}
        assert!(buf.count > 16_000);
        assert_eq!(buf.as_table().iter().count(), 1);
    }

    #[test]
    fn l4_long_keys_that_begin_the_same_are_told_apart() {
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
    fn entries_that_do_not_fit_are_refused_by_name() {
        let mut buf = TableBuf::new();
        assert_eq!(buf.push(&[b'k'; 256], b""), Err(EntryError::KeyTooLong));
        assert_eq!(buf.push(b"k", &vec![0; 65_536]), Err(EntryError::ValueTooLong));
        assert_eq!(buf.push(b"k", &vec![0; 65_535]), Err(EntryError::TableFull));
        assert_eq!(buf.push(b"k", &vec![0; 65_442]), Ok(()));
        assert_eq!(buf.push(b"", b""), Err(EntryError::TableFull));
    }
}
