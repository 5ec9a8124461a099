//! Which player slots are free (S17), and how many each address holds (W35).

use foldhash::quality::FixedState;
use rallypoint_limit::Lan;
use rallypoint_wire::session::{SlotIndex, Uid};
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// Time for which a freed slot is not reused: late datagrams of its last player are still under way.
const QUARANTINE: Duration = Duration::from_secs(10);

/// Allocates slots, lowest index first.
pub(super) struct SlotAllocator {
    free: SlotSet,
    /// Freed slots, and when each can be reused.
    quarantined: VecDeque<(Instant, SlotIndex)>,
    /// Sessions whose late datagrams are not answered while their slot is in quarantine (S28).
    silenced: [Option<Uid>; SlotIndex::COUNT],
    /// The holder of each slot, until the end of the slot's quarantine.
    holders: [Option<Lan>; SlotIndex::COUNT],
    /// Number of slots of each holder.
    held: HashMap<Lan, usize, FixedState>,
    max_per_holder: usize,
}

// Indexing by a slot index cannot fail: it is below `SlotIndex::COUNT`.
impl SlotAllocator {
    pub fn new(count: usize, max_per_holder: usize, seed: u64) -> Self {
        let mut free = SlotSet::default();
        (0..=u8::MAX).take(count).filter_map(SlotIndex::new).for_each(|index| free.insert(index));
        Self {
            free,
            quarantined: VecDeque::new(),
            silenced: [None; _],
            holders: [None; _],
            held: HashMap::with_hasher(FixedState::with_seed(seed)),
            max_per_holder,
        }
    }

    /// Whether a holder can have one more slot.
    pub fn has_room_for(&mut self, now: Instant, holder: Lan) -> bool {
        self.end_quarantines(now);
        self.held.get(&holder).is_none_or(|held| *held < self.max_per_holder)
    }

    /// The lowest free slot that is not promised to another login; if there is none, a random free one.
    pub fn choose(&mut self, now: Instant, is_promised: impl Fn(SlotIndex) -> bool, random: u64) -> Option<SlotIndex> {
        self.end_quarantines(now);
        let unpromised = self.free.iter().find(|&index| !is_promised(index));
        unpromised.or_else(|| {
            let count = self.free.iter().count() as u64;
            self.free.iter().nth((random % count.max(1)) as usize)
        })
    }

    /// Whether a slot can be taken.
    pub fn is_free(&mut self, now: Instant, index: SlotIndex) -> bool {
        self.end_quarantines(now);
        self.free.contains(index)
    }

    pub fn take(&mut self, index: SlotIndex, holder: Lan) {
        self.free.remove(index);
        self.silenced[usize::from(index)] = None;
        self.holders[usize::from(index)] = Some(holder);
        *self.held.entry(holder).or_default() += 1;
    }

    /// Frees a slot, which is then in quarantine. Late datagrams of the session `silenced` are not answered.
    pub fn release(&mut self, now: Instant, index: SlotIndex, silenced: Option<Uid>) {
        self.quarantined.push_back((now + QUARANTINE, index));
        self.silenced[usize::from(index)] = silenced;
    }

    pub fn is_silenced(&self, index: SlotIndex, uid: Uid) -> bool {
        self.silenced[usize::from(index)] == Some(uid)
    }

    fn end_quarantines(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.quarantined.front()
            && at <= now
        {
            self.quarantined.pop_front();
            self.free.insert(index);
            self.silenced[usize::from(index)] = None;
            if let Some(holder) = self.holders[usize::from(index)].take()
                && let Some(held) = self.held.get_mut(&holder)
            {
                *held -= 1;
                if *held == 0 {
                    self.held.remove(&holder);
                }
            }
        }
    }
}

/// A set of slots, one bit each.
#[derive(Clone, Copy, Default)]
struct SlotSet([u64; 4]);

impl SlotSet {
    fn insert(&mut self, index: SlotIndex) {
        self.0[usize::from(index) / 64] |= 1 << (usize::from(index) % 64);
    }

    fn remove(&mut self, index: SlotIndex) {
        self.0[usize::from(index) / 64] &= !(1 << (usize::from(index) % 64));
    }

    fn contains(&self, index: SlotIndex) -> bool {
        self.0[usize::from(index) / 64] & 1 << (usize::from(index) % 64) != 0
    }

    /// The members, lowest first.
    fn iter(self) -> impl Iterator<Item = SlotIndex> {
        [0, 64, 128, 192].into_iter().zip(self.0).flat_map(|(start, mut bits)| {
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as u8)?;
                bits &= bits - 1;
                SlotIndex::new(start + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(last: u8) -> Lan {
        Lan::of([192, 0, 2, last].into())
    }

    #[test]
    fn w35_slots_in_quarantine_count_for_their_last_holder() {
        let now = Instant::now();
        let mut slots = SlotAllocator::new(9, 2, 0);
        for _ in 0..2 {
            assert!(slots.has_room_for(now, holder(1)));
            let index = slots.choose(now, |_| false, 0).unwrap();
            slots.take(index, holder(1));
            slots.release(now, index, None);
        }
        assert!(!slots.has_room_for(now, holder(1)) && slots.has_room_for(now, holder(2)));
        assert!(slots.has_room_for(now + QUARANTINE, holder(1)) && slots.held.is_empty());
    }

    #[test]
    fn s17_the_lowest_slot_that_was_not_freed_lately_is_chosen() {
        let now = Instant::now();
        let mut slots = SlotAllocator::new(3, 3, 0);
        let choose = |slots: &mut SlotAllocator, now| slots.choose(now, |_| false, 0).map(SlotIndex::get);
        for index in 0..3 {
            assert_eq!(choose(&mut slots, now), Some(index));
            slots.take(SlotIndex::new(index).unwrap(), holder(1));
        }
        assert_eq!(choose(&mut slots, now), None);
        let first = SlotIndex::new(0).unwrap();
        let uid = Uid::new(7);
        slots.release(now, first, Some(uid));
        assert!(slots.is_silenced(first, uid) && !slots.is_silenced(first, Uid::new(8)));
        assert_eq!(choose(&mut slots, now + Duration::from_millis(9_999)), None);
        assert_eq!(choose(&mut slots, now + QUARANTINE), Some(0));
        assert!(!slots.is_silenced(first, uid));
    }

    #[test]
    fn s14_a_slot_is_promised_twice_only_if_all_are_promised() {
        let now = Instant::now();
        let mut slots = SlotAllocator::new(200, 200, 0);
        assert_eq!(slots.choose(now, |index| index.get() < 77, 0).map(SlotIndex::get), Some(77));
        assert_eq!(slots.choose(now, |_| true, 199).map(SlotIndex::get), Some(199));
        assert_eq!(slots.choose(now, |_| true, 200).map(SlotIndex::get), Some(0));
    }
}
