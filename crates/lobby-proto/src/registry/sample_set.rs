//! All entries that are not proven, from which some can be chosen at random.

use super::Slots;
use crate::{hash::KeyedHash, index::SlotIndex};
use std::hash::BuildHasher;

/// A set of entries. Each knows its position, so that it can be removed without a search.
#[derive(Debug)]
pub(super) struct SampleSet {
    members: Vec<SlotIndex>,
    random: RandomIndices,
}

/// Indices that cannot be predicted without the secret key.
#[derive(Debug)]
pub(super) struct RandomIndices {
    keyed: KeyedHash,
    drawn: u64,
}

impl RandomIndices {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { keyed, drawn: 0 }
    }

    /// Up to `count` indices below `len`: all of them if there are no more, otherwise random ones, which may repeat.
    pub fn draw(&mut self, len: usize, count: usize) -> impl Iterator<Item = usize> {
        let first = self.drawn;
        self.drawn += count as u64;
        let keyed = self.keyed;
        let random = move |number: usize| (keyed.hash_one(first + number as u64) % len.max(1) as u64) as usize;
        (0..count.min(len)).map(move |number| if len <= count { number } else { random(number) })
    }
}

impl SampleSet {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { members: Vec::new(), random: RandomIndices::new(keyed) }
    }

    pub fn insert(&mut self, slots: &mut Slots, slot: SlotIndex) {
        slots.cold_mut(slot).links.sample = self.members.len() as u32;
        self.members.push(slot);
    }

    pub fn remove(&mut self, slots: &mut Slots, slot: SlotIndex) {
        let at = slots.cold(slot).links.sample;
        self.members.swap_remove(at as usize);
        if let Some(&moved) = self.members.get(at as usize) {
            slots.cold_mut(moved).links.sample = at;
        }
    }

    /// Some members: all of them if there are at most `count`, otherwise random ones.
    pub fn sample(&mut self, count: usize) -> impl Iterator<Item = SlotIndex> {
        let Self { members, random } = self;
        random.draw(members.len(), count).map(|at| members[at])
    }

    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, slots: &Slots, unproven: usize) {
        assert_eq!(self.members.len(), unproven, "entries that are not proven");
        for (at, &slot) in self.members.iter().enumerate() {
            assert_eq!(slots.cold(slot).links.sample as usize, at, "position of an entry that is not proven");
        }
    }
}
