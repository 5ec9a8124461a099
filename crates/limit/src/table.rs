//! TokenBuckets by key, in memory that never grows.

use crate::rate::{Meter, Paces};
use siphasher::sip::SipHasher13;

/// The slots that a key may be in. Eight make it rare that the sources of a well-sized table meet in one set, and are
/// four cache lines to look at.
pub(crate) const WAYS: usize = 8;

/// How many slots of a set may be held by known sources. The rest always go to whoever has used up most of its budget,
/// so that limits hold even when every seat is taken.
pub(crate) const SEATS: usize = 6;

/// How long a source is remembered after its buckets have become full again: it is known, or on its way to be, while it
/// comes back within this time. Four refreshes of a lobby, two of Bloodmasters' master list.
const KEEP: u64 = 120_000_000_000;

/// How long a source has to be around before it can be known: longer than the repeats of a client in a hurry, shorter
/// than any refresh.
const PROBATION: u64 = 10_000_000_000;

/// Sets of [`WAYS`] slots, one set per key.
///
/// A slot does not hold the key but 62 bits of its keyed hash. SipHash is a pseudo-random function: without the seed
/// nobody can choose keys that share a slot (then one would pay for the other) or a set (then they would drive each
/// other out), which can't be said of the faster hashes. By chance, a new key is taken for an old one less than once in
/// 10^11 times.
pub(crate) struct Table {
    hasher: SipHasher13,
    sets: Box<[Set]>,
    pub counts: Counts,
}

/// What a table tells about itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Slots that hold something.
    pub entries: usize,
    /// Slots that hold a known source, or one that was and has not come back.
    pub known: usize,
    /// Slots that were given to another key.
    pub evicted: u64,
    /// Slots that were looked at.
    pub probes: u64,
}

/// The tags have a cache line of their own: a slot that is there is found with a look at two lines.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Set {
    tags: [u64; WAYS],
    states: [State; WAYS],
}

/// The buckets of one key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    pub meter: Meter,
    /// Of a known source: when its share is full again. Of any other: when it can become known. 0 if it is new here.
    pub share: u64,
}

/// One key's place in the table and what is to be stored there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    set: usize,
    way: usize,
    /// The key's hash, with [`USED`] and [`KNOWN`] in the place of the lowest bits. 0 is a free slot.
    tag: u64,
    pub state: State,
}

const KNOWN: u64 = 1;
const USED: u64 = 2;

impl Table {
    /// With as many slots as fit in `max_entries`, at least one set.
    pub fn new(max_entries: usize, seed: u128) -> Self {
        Self {
            hasher: SipHasher13::new_with_keys((seed >> 64) as u64, seed as u64),
            sets: sets(max_entries),
            counts: Counts::default(),
        }
    }

    /// The slot of a key. Nothing changes until it is [put](Self::put) back.
    ///
    /// A key that is not in the table gets full buckets, in the place of the one that loses least: of those that are
    /// not known, the one whose buckets were or will be full first.
    pub fn find(&mut self, key: u128, now: u64) -> Slot {
        let tag = self.hasher.hash(&key.to_le_bytes()) & !KNOWN | USED;
        let index = self.set_of(tag);
        let set = &self.sets[index];
        self.counts.probes += WAYS as u64;
        if let Some(way) = set.way_of(tag) {
            return Slot { set: index, way, tag: set.tags[way], state: set.states[way] };
        }
        self.counts.probes += WAYS as u64;
        Slot { set: index, way: set.victim(now), tag, state: State::default() }
    }

    /// Stores what [`find`](Self::find) gave.
    pub fn put(&mut self, slot: &Slot) {
        let set = &mut self.sets[slot.set];
        set.states[slot.way] = slot.state;
        let old = set.tags[slot.way];
        if old == slot.tag {
            return;
        }
        set.tags[slot.way] = slot.tag;
        self.counts.entries += usize::from(old == 0);
        self.counts.evicted += u64::from(old != 0 && old & !KNOWN != slot.tag & !KNOWN);
        self.counts.known += usize::from(slot.tag & KNOWN != 0);
        self.counts.known -= usize::from(old & KNOWN != 0);
    }

    /// Whether the source of this slot is known, which it may become now.
    pub fn meet(&mut self, slot: &mut Slot, now: u64) -> bool {
        let stale = slot.state.share == 0 || slot.state.is_stale(now);
        if slot.tag & KNOWN != 0 && !stale {
            return true;
        }
        if stale {
            slot.tag &= !KNOWN;
            slot.state.share = now.saturating_add(PROBATION);
        }
        now >= slot.state.share && self.give_seat(slot, now)
    }

    /// Makes the source of this slot known, with its share untouched, if its set has a seat left. One that is known
    /// already has been seen now.
    pub fn give_seat(&mut self, slot: &mut Slot, now: u64) -> bool {
        if slot.tag & KNOWN == 0 || slot.state.is_stale(now) {
            self.counts.probes += WAYS as u64;
            // The place may still hold somebody else here: somebody who is not known, or there is no seat left anyway.
            if self.sets[slot.set].seated(now) >= SEATS {
                return false;
            }
            slot.tag |= KNOWN;
            slot.state.share = now;
        }
        slot.state.meter.touch(now);
        true
    }

    /// Moves everything into a table of another size. If that is too small, those that are known stay.
    pub fn resize(&mut self, max_entries: usize) {
        let new = sets(max_entries);
        if new.len() == self.sets.len() {
            return;
        }
        let old = std::mem::replace(&mut self.sets, new);
        let Counts { evicted, probes, .. } = self.counts;
        self.counts = Counts { evicted, probes, ..Counts::default() };
        // At time 0 nobody has been away for long: whoever is known stays, unless there are more than there are seats.
        let now = 0;
        for (mut tag, state) in old.iter().flat_map(|set| set.tags.into_iter().zip(set.states)) {
            let index = self.set_of(tag & !KNOWN);
            let set = &self.sets[index];
            if set.seated(now) >= SEATS {
                tag &= !KNOWN;
            }
            let way = set.victim(now);
            if set.rank(way, now) < state.rank(tag, now) {
                self.put(&Slot { set: index, way, tag, state });
            } else {
                self.counts.evicted += u64::from(tag != 0);
            }
        }
    }

    /// Fits what was used to other paces. The shares of the known begin anew.
    pub fn adopt(&mut self, paces: &Paces, now: u64) {
        for set in &mut self.sets {
            for (state, tag) in set.states.iter_mut().zip(set.tags) {
                state.meter = paces.adopt(state.meter, now);
                if tag & KNOWN != 0 {
                    state.share = state.share.min(now);
                }
            }
        }
    }

    pub fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// How many can be known at once.
    pub fn seats(&self) -> usize {
        self.sets.len() * SEATS
    }

    pub fn memory(&self) -> usize {
        size_of_val::<[Set]>(&self.sets)
    }

    /// The set that a tag (without [`KNOWN`]) belongs to: the hash as a fraction of all sets.
    fn set_of(&self, tag: u64) -> usize {
        ((u128::from(tag) * self.sets.len() as u128) >> 64) as usize
    }
}

impl Set {
    /// All ways are compared before any is chosen: where a key is can't be predicted, and a wrong guess of the
    /// processor costs more than eight comparisons. The same goes for [`victim`](Self::victim).
    fn way_of(&self, tag: u64) -> Option<usize> {
        let mut found = 0_u32;
        for (way, &other) in self.tags.iter().enumerate() {
            found |= u32::from(other & !KNOWN == tag) << way;
        }
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    /// Who loses least if it is forgotten.
    fn victim(&self, now: u64) -> usize {
        let mut victim = (self.rank(0, now), 0);
        for way in 1..WAYS {
            let rank = self.rank(way, now);
            victim = if rank < victim.0 { (rank, way) } else { victim };
        }
        victim.1
    }

    fn rank(&self, way: usize, now: u64) -> u64 {
        self.states[way].rank(self.tags[way], now)
    }

    /// How many are known.
    fn seated(&self, now: u64) -> usize {
        (0..WAYS).filter(|&way| self.tags[way] & KNOWN != 0 && !self.states[way].is_stale(now)).count()
    }
}

impl State {
    /// The known above all others, then by the time at which all buckets are full. That is never 0 but for a free slot,
    /// and never reaches the highest bit.
    fn rank(&self, tag: u64, now: u64) -> u64 {
        let known = tag & KNOWN != 0 && !self.is_stale(now);
        self.meter.full_at() | u64::from(known) << 63
    }

    /// Whether it has been away for so long that it starts anew.
    fn is_stale(&self, now: u64) -> bool {
        self.meter.full_at().saturating_add(KEEP) <= now
    }
}

fn sets(max_entries: usize) -> Box<[Set]> {
    vec![Set::default(); (max_entries / WAYS).max(1)].into_boxed_slice()
}
