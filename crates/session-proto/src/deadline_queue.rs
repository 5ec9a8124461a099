//! Which connection has to be woken next: a binary heap that knows the position of every entry.
//!
//! `BinaryHeap` cannot change an entry, and a map ordered by time allocates. A deadline changes with every datagram.

use rallypoint_wire::session::SlotIndex;
use std::time::Instant;

/// Deadlines of connections by slot. Changing one takes a logarithmic number of steps, whatever the order of the changes.
#[derive(Debug)]
pub(crate) struct DeadlineQueue {
    heap: Vec<(Instant, SlotIndex)>,
    /// Position of a slot's entry in the heap.
    positions: [Option<u8>; SlotIndex::COUNT],
}

// Indexing in this file cannot fail: positions are those of entries of the heap, and slot indices are below `COUNT`.
impl DeadlineQueue {
    pub fn new() -> Self {
        Self { heap: Vec::with_capacity(SlotIndex::COUNT), positions: [None; _] }
    }

    /// The earliest deadline and its slot.
    pub fn first(&self) -> Option<(Instant, SlotIndex)> {
        self.heap.first().copied()
    }

    /// Sets or removes the deadline of a slot.
    pub fn set(&mut self, index: SlotIndex, at: Option<Instant>) {
        match (self.positions[usize::from(index)], at) {
            (Some(position), Some(at)) => {
                let position = usize::from(position);
                if self.heap[position].0 != at {
                    self.heap[position].0 = at;
                    self.sift(position);
                }
            }
            (None, Some(at)) => {
                let position = self.heap.len();
                self.heap.push((at, index));
                self.positions[usize::from(index)] = Some(position as u8);
                self.sift(position);
            }
            (Some(position), None) => {
                let position = usize::from(position);
                self.positions[usize::from(index)] = None;
                self.heap.swap_remove(position);
                if let Some(&(_, moved)) = self.heap.get(position) {
                    self.positions[usize::from(moved)] = Some(position as u8);
                    self.sift(position);
                }
            }
            (None, None) => {}
        }
    }

    /// Moves an entry up or down to where it belongs.
    fn sift(&mut self, mut position: usize) {
        while position > 0 && self.heap[position].0 < self.heap[(position - 1) / 2].0 {
            self.swap(position, (position - 1) / 2);
            position = (position - 1) / 2;
        }
        loop {
            let children = [2 * position + 1, 2 * position + 2];
            let existing = children.into_iter().filter(|&child| child < self.heap.len());
            let Some(child) = existing.min_by_key(|&child| self.heap[child].0) else { return };
            if self.heap[position].0 <= self.heap[child].0 {
                return;
            }
            self.swap(position, child);
            position = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for position in [a, b] {
            self.positions[usize::from(self.heap[position].1)] = Some(position as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{collections::BTreeMap, time::Duration};

    proptest! {
        /// Compares the queue with a map that is searched.
        #[test]
        fn the_earliest_deadline_comes_first(
            steps in prop::collection::vec((0..40u8, prop::option::of(0..1000u64)), 1..300),
        ) {
            let start = Instant::now();
            let mut deadlines = DeadlineQueue::new();
            let mut model = BTreeMap::new();
            for (index, at) in steps {
                let at = at.map(|ms| start + Duration::from_millis(ms));
                deadlines.set(SlotIndex::new(index).unwrap(), at);
                match at {
                    Some(at) => model.insert(index, at),
                    None => model.remove(&index),
                };
                prop_assert_eq!(deadlines.first().map(|(at, _)| at), model.values().min().copied());
            }
        }
    }
}
