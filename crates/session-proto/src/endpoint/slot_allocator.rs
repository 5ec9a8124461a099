//! Which player slots are free (S17), and how many each address holds (W35).

use foldhash::quality::FixedState;
use rallypoint_limit::Lan;
use rallypoint_wire::session::{SlotIndex, Uid};
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// Time for which a freed slot is not reused while there are others: late datagrams of its last player are still under way.
const REUSE_DELAY: Duration = Duration::from_secs(10);

/// Allocates slots, lowest index first. Slots that were freed lately are used only if there are no others.
pub(super) struct SlotAllocator {
    free: SlotSet,
    /// Freed slots and the end of their reuse delay, the earliest first.
    recently_freed: VecDeque<(Instant, SlotIndex)>,
    /// For each slot, a session whose late datagrams are not answered until this time (S28).
    silenced: [Option<(Uid, Instant)>; SlotIndex::COUNT],
    /// The holder of each slot that is taken.
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
            recently_freed: VecDeque::new(),
            silenced: [None; _],
            holders: [None; _],
            held: HashMap::with_hasher(FixedState::with_seed(seed)),
            max_per_holder,
        }
    }

    /// Whether a holder can have one more slot, if it gives `replaced` back.
    pub fn has_room_for(&self, holder: Lan, replaced: Option<SlotIndex>) -> bool {
        let is_replacing = replaced.is_some_and(|index| self.holders[usize::from(index)] == Some(holder));
        is_replacing || self.held.get(&holder).is_none_or(|held| *held < self.max_per_holder)
    }

    /// Chooses a slot for a login: an unpromised one whose last (expired) promise is the oldest, since promises are kept within a
    /// round trip or never; otherwise `own`, the slot that the player already holds; otherwise the slot whose promise is the
    /// oldest.
    pub fn choose(
        &mut self,
        now: Instant,
        is_promised: impl Fn(SlotIndex) -> bool,
        own: Option<SlotIndex>,
        last_promise: impl Fn(SlotIndex) -> u64,
    ) -> Option<SlotIndex> {
        self.expire_reuse_delays(now);
        let unpromised = self.available().filter(|index| !is_promised(*index));
        unpromised
            .min_by_key(|index| last_promise(*index))
            .or(own)
            .or_else(|| self.available().min_by_key(|index| last_promise(*index)))
    }

    /// The lowest spare slot that is not promised to another login; then the one that was freed first.
    pub fn choose_unpromised(&mut self, now: Instant, is_promised: impl Fn(SlotIndex) -> bool) -> Option<SlotIndex> {
        self.expire_reuse_delays(now);
        self.available().find(|index| !is_promised(*index))
    }

    /// The slots that no player has, in the order in which they are used.
    fn available(&self) -> impl Iterator<Item = SlotIndex> {
        self.free.iter().chain(self.recently_freed.iter().map(|(_, index)| *index))
    }

    /// Whether no player has a slot.
    pub fn is_free(&self, index: SlotIndex) -> bool {
        self.holders[usize::from(index)].is_none()
    }

    pub fn take(&mut self, index: SlotIndex, holder: Lan) {
        self.free.remove(index);
        self.recently_freed.retain(|(_, freed)| *freed != index);
        self.holders[usize::from(index)] = Some(holder);
        *self.held.entry(holder).or_default() += 1;
    }

    /// Frees a slot. Until the end of its reuse delay, late datagrams of the session `silenced` are not answered.
    pub fn release(&mut self, now: Instant, index: SlotIndex, silenced: Option<Uid>) {
        self.recently_freed.push_back((now + REUSE_DELAY, index));
        self.silenced[usize::from(index)] = silenced.map(|uid| (uid, now + REUSE_DELAY));
        if let Some(holder) = self.holders[usize::from(index)].take()
            && let Some(held) = self.held.get_mut(&holder)
        {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&holder);
            }
        }
    }

    pub fn is_silenced(&self, now: Instant, index: SlotIndex, uid: Uid) -> bool {
        self.silenced[usize::from(index)].is_some_and(|(silenced, until)| silenced == uid && now < until)
    }

    fn expire_reuse_delays(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.recently_freed.front()
            && at <= now
        {
            self.recently_freed.pop_front();
            self.free.insert(index);
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
    fn w35_a_holder_has_a_limited_number_of_slots_and_can_replace_its_own() {
        let now = Instant::now();
        let mut slots = SlotAllocator::new(9, 2, 0);
        let indices: Vec<_> = (0..2)
            .map(|_| {
                assert!(slots.has_room_for(holder(1), None));
                let index = slots.choose(now, |_| false, None, |_| 0).unwrap();
                slots.take(index, holder(1));
                index
            })
            .collect();
        assert!(!slots.has_room_for(holder(1), None) && slots.has_room_for(holder(2), None));
        assert!(slots.has_room_for(holder(1), Some(indices[0])), "one slot for another");
        slots.release(now, indices[0], None);
        assert!(slots.has_room_for(holder(1), None), "slots freed lately keep no player out, so they do not count");
        slots.release(now, indices[1], None);
        assert!(slots.held.is_empty());
    }

    #[test]
    fn s17_the_lowest_slot_that_was_not_freed_lately_is_chosen_and_then_the_one_that_was_freed_first() {
        let now = Instant::now();
        let mut slots = SlotAllocator::new(4, 4, 0);
        let choose = |slots: &mut SlotAllocator, now| slots.choose(now, |_| false, None, |_| 0).map(SlotIndex::get);
        let index = |index| SlotIndex::new(index).unwrap();
        for expected in 0..3 {
            assert_eq!(choose(&mut slots, now), Some(expected));
            slots.take(index(expected), holder(1));
        }
        let uid = Uid::new(7);
        slots.release(now, index(2), Some(uid));
        slots.release(now, index(0), None);
        assert!(slots.is_silenced(now, index(2), uid) && !slots.is_silenced(now, index(2), Uid::new(8)));
        assert_eq!(choose(&mut slots, now), Some(3), "spare");
        slots.take(index(3), holder(1));
        assert_eq!(choose(&mut slots, now), Some(2), "freed first");
        slots.take(index(2), holder(1));
        assert!(slots.is_silenced(now, index(2), uid), "although another player has the slot");
        assert_eq!(choose(&mut slots, now), Some(0));
        slots.take(index(0), holder(1));
        assert_eq!(choose(&mut slots, now), None, "full");
        assert_eq!(slots.choose(now, |_| false, Some(index(1)), |_| 0), Some(index(1)), "its own slot");
        slots.release(now, index(3), None);
        slots.release(now, index(1), None);
        assert_eq!(choose(&mut slots, now + REUSE_DELAY), Some(1), "after the delay");
        assert!(!slots.is_silenced(now + REUSE_DELAY, index(2), uid));
    }

    #[test]
    fn s14_a_slot_is_promised_twice_only_if_all_are_promised() {
        let now = Instant::now();
        let mut slots = SlotAllocator::new(200, 200, 0);
        assert_eq!(slots.choose(now, |index| index.get() < 77, None, |_| 0).map(SlotIndex::get), Some(77));
        assert_eq!(
            slots.choose(now, |_| true, None, |index| 199 - u64::from(index.get())).map(SlotIndex::get),
            Some(199)
        );
        assert_eq!(slots.choose(now, |_| true, None, |index| index.get().into()).map(SlotIndex::get), Some(0));
    }
}
