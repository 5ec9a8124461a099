//! Endpoints that were seen some time ago, in fixed memory.
//!
//! A Bloom filter for each of several periods. It never forgets an endpoint before its time, whatever else is sent: a flood
//! only makes it take more endpoints for seen that were not, which gives an attacker no more than returning would.

use crate::wheel::Tick;
use std::time::Duration;

const WORD: usize = u64::BITS as usize;

#[derive(Debug)]
pub(super) struct SeenFilter {
    /// Number of bits of each period, at most 2^32.
    bits: usize,
    /// Length of a period in ticks.
    period: u32,
    /// Periods that count after the current one.
    kept: u32,
    /// The current period.
    current: u32,
    /// By number of the period, modulo their count. Empty until something is seen in it: most lobbies need few of them.
    periods: Vec<Vec<u64>>,
}

impl SeenFilter {
    /// A filter with 2 to the power of `log_bits` bits for each period, which remembers an endpoint for `kept` periods after the
    /// one in which it was seen.
    pub fn new(log_bits: u32, period: Duration, kept: u32) -> Self {
        let period = Tick::default().plus(period).since(Tick::default());
        Self { bits: 1 << log_bits, period, kept, current: 0, periods: vec![Vec::new(); kept as usize + 1] }
    }

    /// Records that an endpoint, given by its keyed hash, was seen at some time up to now.
    pub fn insert(&mut self, now: Tick, seen: Tick, hash: u64) {
        self.advance(now);
        let oldest = self.current.saturating_sub(self.kept);
        let period = self.index(self.period_of(seen).clamp(oldest, self.current));
        let positions = self.positions(hash);
        let bits = &mut self.periods[period];
        if bits.is_empty() {
            *bits = vec![0; self.bits / WORD];
        }
        positions.into_iter().for_each(|(word, bit)| bits[word] |= bit);
    }

    /// Whether an endpoint was seen in a period that began at least `min_age` periods before the current one.
    pub fn contains(&mut self, now: Tick, hash: u64, min_age: u32) -> bool {
        self.advance(now);
        (min_age..=self.kept.min(self.current)).any(|age| {
            let bits = &self.periods[self.index(self.current - age)];
            !bits.is_empty() && self.positions(hash).into_iter().all(|(word, bit)| bits[word] & bit != 0)
        })
    }

    /// Forgets the periods that no longer count.
    pub fn advance(&mut self, now: Tick) {
        let current = self.period_of(now);
        for period in self.current..current.min(self.current + self.kept + 1) {
            let index = self.index(period + 1);
            self.periods[index] = Vec::new();
        }
        self.current = self.current.max(current);
    }

    fn period_of(&self, tick: Tick) -> u32 {
        tick.since(Tick::default()) / self.period
    }

    fn index(&self, period: u32) -> usize {
        period as usize % self.periods.len()
    }

    /// The bits of an endpoint, each as a word and a mask.
    fn positions(&self, hash: u64) -> [(usize, u64); 2] {
        [hash, hash >> 32].map(|hash| {
            let bit = hash as u32 as usize % self.bits;
            (bit / WORD, 1 << (bit % WORD))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyedHash;
    use std::hash::BuildHasher;

    fn at(seconds: u64) -> Tick {
        Tick::default().plus(Duration::from_secs(seconds))
    }

    fn hash(number: u64) -> u64 {
        KeyedHash::new(7).hash_one(number)
    }

    #[test]
    fn an_endpoint_is_remembered_for_its_time_and_then_forgotten() {
        let mut filter = SeenFilter::new(23, Duration::from_secs(15), 5);
        assert!(!filter.contains(at(3), hash(1), 0));
        filter.insert(at(3), at(3), hash(1));
        assert!(filter.contains(at(4), hash(1), 0) && !filter.contains(at(4), hash(2), 0));
        assert!(!filter.contains(at(29), hash(1), 2), "too recent");
        assert!(filter.contains(at(33), hash(1), 2));
        assert!(filter.contains(at(89), hash(1), 0));
        assert!(!filter.contains(at(90), hash(1), 0));
        filter.insert(at(200), at(170), hash(3));
        assert!(filter.contains(at(200), hash(3), 2), "it was seen before");
        filter.insert(at(1_000_000), at(1_000_000), hash(2));
        assert!(filter.contains(at(1_000_000), hash(2), 0) && !filter.contains(at(1_000_000), hash(1), 0));
    }

    #[test]
    fn a_flood_makes_it_forget_nothing() {
        let mut filter = SeenFilter::new(23, Duration::from_secs(15), 5);
        filter.insert(at(0), at(0), hash(0));
        (1..1_000_000).for_each(|number| filter.insert(at(20), at(20), hash(number)));
        assert!(filter.contains(at(40), hash(0), 1));
        let wrong = (1_000_000..1_001_000).filter(|&number| filter.contains(at(40), hash(number), 1)).count();
        assert!(wrong < 100, "{wrong} of 1000 were not seen");
    }
}
