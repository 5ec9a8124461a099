//! Which connection wants to be woken next: a heap that knows where each of them stands.

use std::time::Instant;

/// Deadlines of connections by their index. Setting one costs a few steps, whatever came before.
#[derive(Debug)]
pub(crate) struct Deadlines {
    heap: Vec<(Instant, u8)>,
    /// Where an index stands in the heap.
    places: [Option<u8>; 256],
}

impl Deadlines {
    pub fn new() -> Self {
        Self { heap: Vec::with_capacity(256), places: [None; 256] }
    }

    /// The earliest.
    pub fn first(&self) -> Option<(Instant, u8)> {
        self.heap.first().copied()
    }

    pub fn set(&mut self, index: u8, at: Option<Instant>) {
        match (self.places[usize::from(index)], at) {
            (Some(place), Some(at)) => {
                let place = usize::from(place);
                if self.heap[place].0 != at {
                    self.heap[place].0 = at;
                    self.settle(place);
                }
            }
            (None, Some(at)) => {
                self.heap.push((at, index));
                self.places[usize::from(index)] = Some((self.heap.len() - 1) as u8);
                self.settle(self.heap.len() - 1);
            }
            (Some(place), None) => {
                let place = usize::from(place);
                self.places[usize::from(index)] = None;
                self.heap.swap_remove(place);
                if let Some(&(_, moved)) = self.heap.get(place) {
                    self.places[usize::from(moved)] = Some(place as u8);
                    self.settle(place);
                }
            }
            (None, None) => {}
        }
    }

    /// Moves an entry to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.heap[place].0 < self.heap[(place - 1) / 2].0 {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let children = [2 * place + 1, 2 * place + 2];
            let smaller = children.into_iter().filter(|&child| child < self.heap.len());
            let Some(child) = smaller.min_by_key(|&child| self.heap[child].0) else { return };
            if self.heap[place].0 <= self.heap[child].0 {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.places[usize::from(self.heap[place].1)] = Some(place as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{collections::BTreeMap, time::Duration};

    proptest! {
        /// Against a map that is searched.
        #[test]
        fn the_earliest_comes_first(steps in prop::collection::vec((0..40u8, prop::option::of(0..1000u64)), 1..300)) {
            let (start, mut deadlines, mut model) = (Instant::now(), Deadlines::new(), BTreeMap::new());
            for (index, at) in steps {
                let at = at.map(|ms| start + Duration::from_millis(ms));
                deadlines.set(index, at);
                match at {
                    Some(at) => model.insert(index, at),
                    None => model.remove(&index),
                };
                prop_assert_eq!(deadlines.first().map(|(at, _)| at), model.values().min().copied());
            }
        }
    }
}
