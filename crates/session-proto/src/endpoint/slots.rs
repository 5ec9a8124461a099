//! Which player slots are free (S17), and who has the others (W35).

use foldhash::quality::FixedState;
use rallypoint_limit::Lan;
use rallypoint_wire::session::{SlotIndex, Uid};
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// A slot that was freed is not given away for so long: late datagrams of its last player are still about.
const REST: Duration = Duration::from_secs(10);

pub(super) struct Slots {
    /// One bit per slot that can be given away.
    free: [u64; 4],
    resting: VecDeque<(Instant, SlotIndex)>,
    /// Whose datagrams are met with silence while their slot rests (S28).
    silenced: [Option<Uid>; SlotIndex::COUNT],
    /// Whom each slot was given to, until it has rested.
    homes: [Option<Lan>; SlotIndex::COUNT],
    /// How many slots each of them has.
    held: HashMap<Lan, usize, FixedState>,
    max_per_home: usize,
}

impl Slots {
    pub fn new(count: usize, max_per_home: usize, seed: u64) -> Self {
        let mut free = [0; 4];
        for index in 0..count.min(SlotIndex::COUNT) {
            free[index / 64] |= 1 << (index % 64);
        }
        Self {
            free,
            resting: VecDeque::new(),
            silenced: [None; _],
            homes: [None; _],
            held: HashMap::with_hasher(FixedState::with_seed(seed)),
            max_per_home,
        }
    }

    /// Whether somebody from there can have one more.
    pub fn has_room_for(&mut self, now: Instant, home: Lan) -> bool {
        self.rise(now);
        self.held.get(&home).is_none_or(|held| *held < self.max_per_home)
    }

    /// The lowest free slot that `is_promised` to nobody; if there is none, any free one, by chance.
    pub fn choose(&mut self, now: Instant, is_promised: impl Fn(usize) -> bool, chance: u64) -> Option<SlotIndex> {
        self.rise(now);
        let free = self.free;
        let all = move || {
            free.into_iter().enumerate().flat_map(|(word, mut bits)| {
                std::iter::from_fn(move || {
                    let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                    bits &= bits - 1;
                    Some(word * 64 + bit)
                })
            })
        };
        let index = match all().find(|&index| !is_promised(index)) {
            Some(index) => index,
            None => all().nth((chance % (all().count() as u64).max(1)) as usize)?,
        };
        SlotIndex::new(index as u8)
    }

    /// Whether a slot can be taken.
    pub fn is_free(&mut self, now: Instant, index: SlotIndex) -> bool {
        self.rise(now);
        let index = usize::from(index);
        self.free[index / 64] & 1 << (index % 64) != 0
    }

    pub fn take(&mut self, index: SlotIndex, home: Lan) {
        let at = usize::from(index);
        self.free[at / 64] &= !(1 << (at % 64));
        self.silenced[at] = None;
        self.homes[at] = Some(home);
        *self.held.entry(home).or_default() += 1;
    }

    /// Gives a slot back. If its session said goodbye, late datagrams of it are not answered.
    pub fn rest(&mut self, now: Instant, index: SlotIndex, silenced: Option<Uid>) {
        self.resting.push_back((now + REST, index));
        self.silenced[usize::from(index)] = silenced;
    }

    pub fn is_silenced(&self, index: SlotIndex, uid: Uid) -> bool {
        self.silenced[usize::from(index)] == Some(uid)
    }

    fn rise(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.resting.front()
            && at <= now
        {
            self.resting.pop_front();
            let index = usize::from(index);
            self.free[index / 64] |= 1 << (index % 64);
            self.silenced[index] = None;
            if let Some(home) = self.homes[index].take()
                && let Some(held) = self.held.get_mut(&home)
            {
                *held -= 1;
                if *held == 0 {
                    self.held.remove(&home);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(last: u8) -> Lan {
        Lan::of([192, 0, 2, last].into())
    }

    #[test]
    fn slots_that_rest_count_for_whoever_had_them() {
        let (now, mut slots) = (Instant::now(), Slots::new(9, 2, 0));
        for _ in 0..2 {
            assert!(slots.has_room_for(now, home(1)));
            let index = slots.choose(now, |_| false, 0).unwrap();
            slots.take(index, home(1));
            slots.rest(now, index, None);
        }
        assert!(!slots.has_room_for(now, home(1)) && slots.has_room_for(now, home(2)));
        assert!(slots.has_room_for(now + REST, home(1)) && slots.held.is_empty());
    }

    #[test]
    fn s17_the_lowest_that_was_not_freed_lately() {
        let (now, mut slots) = (Instant::now(), Slots::new(3, 3, 0));
        let choose = |slots: &mut Slots, now| slots.choose(now, |_| false, 0).map(SlotIndex::get);
        for index in 0..3 {
            assert_eq!(choose(&mut slots, now), Some(index));
            slots.take(SlotIndex::new(index).unwrap(), home(1));
        }
        assert_eq!(choose(&mut slots, now), None);
        let (first, uid) = (SlotIndex::new(0).unwrap(), Uid::new(7));
        slots.rest(now, first, Some(uid));
        assert!(slots.is_silenced(first, uid) && !slots.is_silenced(first, Uid::new(8)));
        assert_eq!(choose(&mut slots, now + Duration::from_millis(9_999)), None);
        assert_eq!(choose(&mut slots, now + REST), Some(0));
        assert!(!slots.is_silenced(first, uid));
    }

    #[test]
    fn s14_an_index_is_promised_twice_only_if_all_are() {
        let (now, mut slots) = (Instant::now(), Slots::new(200, 200, 0));
        assert_eq!(slots.choose(now, |index| index < 77, 0).map(SlotIndex::get), Some(77));
        assert_eq!(slots.choose(now, |_| true, 199).map(SlotIndex::get), Some(199));
        assert_eq!(slots.choose(now, |_| true, 200).map(SlotIndex::get), Some(0));
    }
}
