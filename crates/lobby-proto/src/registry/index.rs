//! Slots by the hash of their server's ID.
//!
//! A table of our own, because a refresh is little more than a look into it, and with a million servers that look is a
//! wait for memory. One row holds all that is needed, so it is one wait; and where to look does not depend on what was
//! found before, so the waits of several datagrams overlap (see `batch`). A library's table has two parts, control bytes and
//! values, which are two waits, one after the other.

/// Open addressing with linear probing, at most half full.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The number of rows is a power of two.
    rows: Vec<Row>,
    len: usize,
}

/// The lower half of the hash, and the slot plus one; all zero if the row is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    hash: u32,
    slot: u32,
}

const FEWEST_ROWS: usize = 64;

impl Index {
    pub fn len(&self) -> usize {
        self.len
    }

    /// The slot with this hash that is the right one, which the caller knows.
    #[inline]
    pub fn find(&self, hash: u64, mut is_right: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash as u32)?;
        loop {
            let row = self.rows[at];
            if row.slot == 0 {
                return None;
            }
            if row.hash == hash as u32 && is_right(row.slot - 1) {
                return Some(row.slot - 1);
            }
            at = self.after(at);
        }
    }

    /// What stands in the row where [`find`](Self::find) begins. It takes no decisions on the way, so that the processor
    /// can do many of these at a time.
    #[inline]
    pub fn touch(&self, hash: u64) -> u32 {
        self.home(hash as u32).map_or(0, |at| self.rows[at].slot)
    }

    /// Adds a slot that is not there yet.
    pub fn insert(&mut self, hash: u64, slot: u32) {
        if 2 * (self.len + 1) > self.rows.len() {
            let rows = (2 * self.rows.len()).max(FEWEST_ROWS);
            let old = std::mem::replace(&mut self.rows, vec![Row::default(); rows]);
            old.into_iter().filter(|row| row.slot != 0).for_each(|row| self.put(row));
        }
        self.put(Row { hash: hash as u32, slot: slot + 1 });
        self.len += 1;
    }

    /// Takes a slot out, if it is there.
    pub fn remove(&mut self, hash: u64, slot: u32) {
        let Some(mut at) = self.home(hash as u32) else { return };
        while self.rows[at].slot != slot + 1 {
            if self.rows[at].slot == 0 {
                return;
            }
            at = self.after(at);
        }
        self.len -= 1;
        // Rows that were pushed away from their home by the one that goes move up.
        let mut free = at;
        loop {
            self.rows[free] = Row::default();
            loop {
                at = self.after(at);
                let row = self.rows[at];
                if row.slot == 0 {
                    return;
                }
                let distance = |from: usize, to: usize| to.wrapping_sub(from) & (self.rows.len() - 1);
                if distance(row.hash as usize & (self.rows.len() - 1), at) >= distance(free, at) {
                    self.rows[free] = row;
                    free = at;
                    break;
                }
            }
        }
    }

    fn put(&mut self, row: Row) {
        let Some(mut at) = self.home(row.hash) else { return };
        while self.rows[at].slot != 0 {
            at = self.after(at);
        }
        self.rows[at] = row;
    }

    #[inline]
    fn home(&self, hash: u32) -> Option<usize> {
        Some(hash as usize & self.rows.len().checked_sub(1)?)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.rows.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn an_empty_one_has_nothing() {
        let mut index = Index::default();
        assert_eq!(index.find(7, |_| true), None);
        assert_eq!(index.touch(7), 0);
        index.remove(7, 7);
        assert_eq!(index.len(), 0);
    }

    proptest! {
        /// Few different hashes, in the last and the first rows, so that rows are pushed far and around the end.
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((any::<bool>(), 0u32..40, prop::sample::select(vec![
            0u64, 1, 2, 60, 62, 63, 64, 127, 128, 1 << 32, (1 << 32) + 63, u64::MAX,
        ])), 0..300)) {
            let (mut index, mut model) = (Index::default(), HashMap::new());
            for (adds, slot, hash) in steps {
                if adds && !model.contains_key(&slot) {
                    index.insert(hash, slot);
                    model.insert(slot, hash);
                } else if !adds {
                    let hash = model.remove(&slot).unwrap_or(hash);
                    index.remove(hash, slot);
                }
                prop_assert_eq!(index.len(), model.len());
                for slot in 0..40 {
                    let known = model.get(&slot).copied();
                    let found = index.find(known.unwrap_or(hash), |found| found == slot);
                    prop_assert_eq!(found.is_some(), known.is_some());
                }
            }
        }
    }
}
