//! Slots by the hash of their server's ID.
//!
//! A table of our own, because a refresh is little more than a lookup in it, and with a million servers that lookup is a wait
//! for memory. One row holds all that is needed, so there is one wait; and the first row to read does not depend on anything
//! read before, so the waits of several datagrams overlap (see
//! [`Registry::handle_datagrams`](crate::Registry::handle_datagrams)). The table of a library has two parts, control bytes
//! and values, which makes two waits, one after the other.

use crate::index::SlotIndex;

/// A hash table with open addressing and linear probing, at most half full.
#[derive(Debug, Default)]
pub(super) struct IdIndex {
    /// Their number is a power of two.
    rows: Vec<Row>,
    len: usize,
}

/// A row of the table; all zero if it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    /// The lower half of the hash.
    hash: u32,
    /// The slot plus one.
    slot: u32,
}

const MIN_ROWS: usize = 64;

impl Row {
    #[inline]
    fn new(hash: u64, slot: SlotIndex) -> Self {
        Self { hash: hash as u32, slot: slot.get() as u32 + 1 }
    }

    #[inline]
    fn is_free(self) -> bool {
        self.slot == 0
    }

    /// The slot of a row that is not free.
    #[inline]
    fn slot(self) -> SlotIndex {
        SlotIndex::new(self.slot as usize - 1)
    }
}

impl IdIndex {
    pub fn len(&self) -> usize {
        self.len
    }

    /// The slot with this hash for which `is_match` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_match: impl FnMut(SlotIndex) -> bool) -> Option<SlotIndex> {
        let mut at = self.first_row(hash as u32)?;
        loop {
            let row = self.rows[at];
            if row.is_free() {
                return None;
            }
            if row.hash == hash as u32 && is_match(row.slot()) {
                return Some(row.slot());
            }
            at = self.next_row(at);
        }
    }

    /// The content of the row where [`find`](Self::find) begins. There are no branches on it, so that the processor can
    /// execute many of these at a time.
    #[inline]
    pub fn touch(&self, hash: u64) -> u32 {
        self.first_row(hash as u32).map_or(0, |at| self.rows[at].slot)
    }

    /// Adds a slot that is not in the table.
    pub fn insert(&mut self, hash: u64, slot: SlotIndex) {
        if 2 * (self.len + 1) > self.rows.len() {
            let rows = (2 * self.rows.len()).max(MIN_ROWS);
            let old = std::mem::replace(&mut self.rows, vec![Row::default(); rows]);
            old.into_iter().filter(|row| !row.is_free()).for_each(|row| self.put(row));
        }
        self.put(Row::new(hash, slot));
        self.len += 1;
    }

    /// Removes a slot, if it is in the table.
    pub fn remove(&mut self, hash: u64, slot: SlotIndex) {
        let Some(mut at) = self.first_row(hash as u32) else { return };
        while self.rows[at].is_free() || self.rows[at].slot() != slot {
            if self.rows[at].is_free() {
                return;
            }
            at = self.next_row(at);
        }
        self.len -= 1;
        // Rows that were displaced by the removed one move up.
        let mut free = at;
        loop {
            self.rows[free] = Row::default();
            loop {
                at = self.next_row(at);
                let row = self.rows[at];
                if row.is_free() {
                    return;
                }
                let mask = self.rows.len() - 1;
                let distance = |from: usize, to: usize| to.wrapping_sub(from) & mask;
                if distance(row.hash as usize & mask, at) >= distance(free, at) {
                    self.rows[free] = row;
                    free = at;
                    break;
                }
            }
        }
    }

    fn put(&mut self, row: Row) {
        let Some(mut at) = self.first_row(row.hash) else { return };
        while !self.rows[at].is_free() {
            at = self.next_row(at);
        }
        self.rows[at] = row;
    }

    #[inline]
    fn first_row(&self, hash: u32) -> Option<usize> {
        Some(hash as usize & self.rows.len().checked_sub(1)?)
    }

    #[inline]
    fn next_row(&self, at: usize) -> usize {
        (at + 1) & (self.rows.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn an_empty_index_finds_nothing() {
        let mut index = IdIndex::default();
        assert_eq!(index.find(7, |_| true), None);
        assert_eq!(index.touch(7), 0);
        index.remove(7, SlotIndex::new(7));
        assert_eq!(index.len(), 0);
    }

    proptest! {
        /// Few different hashes, in the last and the first rows, so that rows are displaced far and around the end.
        #[test]
        fn the_index_behaves_like_a_map(steps in proptest::collection::vec((any::<bool>(), 0usize..40, prop::sample::select(vec![
            0u64, 1, 2, 60, 62, 63, 64, 127, 128, 1 << 32, (1 << 32) + 63, u64::MAX,
        ])), 0..300)) {
            let mut index = IdIndex::default();
            let mut model = HashMap::new();
            for (adds, slot, hash) in steps {
                if adds && !model.contains_key(&slot) {
                    index.insert(hash, SlotIndex::new(slot));
                    model.insert(slot, hash);
                } else if !adds {
                    let hash = model.remove(&slot).unwrap_or(hash);
                    index.remove(hash, SlotIndex::new(slot));
                }
                prop_assert_eq!(index.len(), model.len());
                for slot in 0..40 {
                    let known = model.get(&slot).copied();
                    let found = index.find(known.unwrap_or(hash), |found| found.get() == slot);
                    prop_assert_eq!(found.is_some(), known.is_some());
                }
            }
        }
    }
}
