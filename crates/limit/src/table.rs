//! The table of bucket states by key, in memory that never grows.

use crate::rate::{BucketStates, BudgetParams};
use siphasher::sip::SipHasher13;

/// Number of slots that a key may be in. Eight make it rare that the sources of a well-sized table collide in one set, and
/// take four cache lines to examine.
pub(crate) const WAYS: usize = 8;

/// Maximum number of slots of a set that are reserved for known customers. The others always go to the sources that have used
/// most of their budget, so that limits hold even when every reserved slot is taken.
pub(crate) const RESERVED_WAYS: usize = 6;

/// Time in ns for which a source is remembered after its buckets have become full again: it stays known, or on probation, if
/// it comes back within this time. Four refreshes of a lobby, two of Bloodmasters' master list.
const RETENTION: u64 = 120_000_000_000;

/// Time in ns after its first packet before a source can become known: longer than the retries of an impatient client,
/// shorter than any refresh interval.
const PROBATION: u64 = 10_000_000_000;

/// Sets of [`WAYS`] slots, one set per key.
///
/// A slot holds not the key but 62 bits of its keyed hash. SipHash is a pseudo-random function: without the seed an attacker
/// cannot choose keys that share a slot (one would be charged for the other) or a set (they would evict each other), which
/// does not hold for the faster hashes. By chance, a new key is taken for an old one less than once in 10^11 times.
pub(crate) struct Table {
    hasher: SipHasher13,
    sets: Box<[Set]>,
    pub counts: Counts,
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Number of slots in use.
    pub entries: usize,
    /// Number of slots with a known customer, or one that was known and has not come back.
    pub known: usize,
    /// Number of slots that were given to another key.
    pub evicted: u64,
    /// Number of slots that were examined.
    pub probes: u64,
}

/// The tags have a cache line of their own: an existing entry is found by reading two lines.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Set {
    tags: [u64; WAYS],
    states: [State; WAYS],
}

/// The buckets of one key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    pub buckets: BucketStates,
    /// For a known customer: when its share is full again. For any other: when it can become known. 0 if it is new.
    pub share: u64,
}

/// A key's position in the table, and what to store there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    set: usize,
    way: usize,
    /// The key's hash, with [`USED`] and [`KNOWN`] in place of the lowest bits. 0 is a free slot.
    tag: u64,
    pub state: State,
}

const KNOWN: u64 = 1;
const USED: u64 = 2;

impl Table {
    /// Makes a table with as many whole sets as fit in `max_entries` slots, at least one.
    pub fn new(max_entries: usize, seed: u128) -> Self {
        Self {
            hasher: SipHasher13::new_with_keys((seed >> 64) as u64, seed as u64),
            sets: sets(max_entries),
            counts: Counts::default(),
        }
    }

    /// The slot of a key. Nothing changes until it is [put](Self::put) back.
    ///
    /// A key that is not in the table gets full buckets, in the slot of the entry that loses least by eviction: among those
    /// that are not known, the one whose buckets were or will be full first.
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

    /// Stores a slot that [`find`](Self::find) returned.
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

    /// Returns whether the customer of this slot is known, which it may become now.
    pub fn update_known(&mut self, slot: &mut Slot, now: u64) -> bool {
        let is_stale = slot.state.share == 0 || slot.state.is_stale(now);
        if slot.tag & KNOWN != 0 && !is_stale {
            return true;
        }
        if is_stale {
            slot.tag &= !KNOWN;
            slot.state.share = now.saturating_add(PROBATION);
        }
        now >= slot.state.share && self.reserve(slot, now)
    }

    /// Makes the customer of this slot known, with a full share, if its set has a reserved slot left. One that is known
    /// already counts as active now.
    pub fn reserve(&mut self, slot: &mut Slot, now: u64) -> bool {
        if slot.tag & KNOWN == 0 || slot.state.is_stale(now) {
            self.counts.probes += WAYS as u64;
            // The slot may still hold another entry here: one that is not known, or there is no reserved slot left anyway.
            if self.sets[slot.set].known(now) >= RESERVED_WAYS {
                return false;
            }
            slot.tag |= KNOWN;
            slot.state.share = now;
        }
        slot.state.buckets.touch(now);
        true
    }

    /// Moves everything into a table of another size. If that is too small, known customers are kept first.
    pub fn resize(&mut self, max_entries: usize) {
        let new = sets(max_entries);
        if new.len() == self.sets.len() {
            return;
        }
        let old = std::mem::replace(&mut self.sets, new);
        let Counts { evicted, probes, .. } = self.counts;
        self.counts = Counts { evicted, probes, ..Counts::default() };
        // At time 0 no entry is stale: known customers stay, unless there are more of them than reserved slots.
        let now = 0;
        for (mut tag, state) in old.iter().flat_map(|set| set.tags.into_iter().zip(set.states)) {
            let index = self.set_of(tag & !KNOWN);
            let set = &self.sets[index];
            if set.known(now) >= RESERVED_WAYS {
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

    /// Adapts all states to other parameters. The shares of known customers are full again.
    pub fn adapt(&mut self, params: &BudgetParams, now: u64) {
        for set in &mut self.sets {
            for (state, tag) in set.states.iter_mut().zip(set.tags) {
                state.buckets = params.adapt(state.buckets, now);
                if tag & KNOWN != 0 {
                    state.share = state.share.min(now);
                }
            }
        }
    }

    pub fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Maximum number of known customers.
    pub fn reserved_slots(&self) -> usize {
        self.sets.len() * RESERVED_WAYS
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
    /// Compares all ways before choosing one: the position of a key cannot be predicted, and a mispredicted branch costs more
    /// than eight comparisons. The same holds for [`victim`](Self::victim).
    fn way_of(&self, tag: u64) -> Option<usize> {
        let mut found = 0_u32;
        for (way, &other) in self.tags.iter().enumerate() {
            found |= u32::from(other & !KNOWN == tag) << way;
        }
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    /// The way that loses least by eviction.
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

    /// Number of known customers.
    fn known(&self, now: u64) -> usize {
        (0..WAYS).filter(|&way| self.tags[way] & KNOWN != 0 && !self.states[way].is_stale(now)).count()
    }
}

impl State {
    /// Eviction order, lowest first: known customers above all others, then by the time at which all buckets are full. That
    /// time is 0 only for a free slot, and never reaches the highest bit.
    fn rank(&self, tag: u64, now: u64) -> u64 {
        let is_known = tag & KNOWN != 0 && !self.is_stale(now);
        self.buckets.full_at() | u64::from(is_known) << 63
    }

    /// Whether the source has been away for longer than it is remembered.
    fn is_stale(&self, now: u64) -> bool {
        self.buckets.full_at().saturating_add(RETENTION) <= now
    }
}

fn sets(max_entries: usize) -> Box<[Set]> {
    vec![Set::default(); (max_entries / WAYS).max(1)].into_boxed_slice()
}
