//! One rate for each of many keys.

use crate::{BucketKey, Budget, Rate, clock::Clock, rate::Paces, table::Table};
use std::{
    fmt,
    marker::PhantomData,
    time::{Duration, Instant},
};

/// What became of taking one out of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeResult {
    /// Whether there was one.
    pub is_allowed: bool,
    /// How many are in it now.
    pub remaining: u64,
    /// How long it takes until there is one in it.
    pub retry_after: Duration,
}

/// One [`Rate`] for each of many keys, in memory that never grows: "at most one answer per second and network".
///
/// A key that is not in the table has a full bucket. When its set is full, a new key takes the place of the one that
/// loses least, the one that will have a full bucket first; so more than `rate` may pass only if keys come by the
/// thousand. Where that matters there has to be a total as well: see [`Limiter`](crate::Limiter).
///
/// ```
/// use rallypoint_limit::{TokenBuckets, Net, Rate};
/// use std::time::{Duration, Instant};
///
/// let mut answers = TokenBuckets::new(Rate::per_second(1, 1), 1024, 0x5eed);
/// let (now, net) = (Instant::now(), Net::of("192.0.2.1".parse().unwrap()));
/// assert!(answers.take(now, net));
/// assert!(!answers.take(now, Net::of("192.0.2.2".parse().unwrap())), "the same /24");
/// assert!(answers.take(now + Duration::from_secs(1), net));
/// ```
pub struct TokenBuckets<K> {
    paces: Paces,
    table: Table,
    clock: Clock,
    keys: PhantomData<fn(K)>,
}

impl<K: BucketKey> TokenBuckets<K> {
    /// All buckets are full. `max_entries` is rounded to a multiple of 8, 32 bytes each. The seed has to be one that
    /// nobody can guess.
    pub fn new(rate: Rate, max_entries: usize, seed: u128) -> Self {
        Self { paces: paces(rate), table: Table::new(max_entries, seed), clock: Clock::new(), keys: PhantomData }
    }

    /// Takes one out of the bucket of `key`, if there is one in it.
    #[must_use]
    pub fn take(&mut self, now: Instant, key: K) -> bool {
        self.try_take(now, key).is_allowed
    }

    /// The same, with what is left: for those who are to be told.
    #[must_use]
    pub fn try_take(&mut self, now: Instant, key: K) -> TakeResult {
        let now = self.clock.advance(now);
        let mut slot = self.table.find(key.bits(), now);
        let taken = self.paces.take(slot.state.meter, now, 0, 0);
        if let Ok(meter) = taken {
            slot.state.meter = meter;
            self.table.put(&slot);
        }
        let (left, wait) = self.paces.packets_left(slot.state.meter, now);
        TakeResult { is_allowed: taken.is_ok(), remaining: left, retry_after: Duration::from_nanos(wait) }
    }

    /// How many are in the bucket of `key`. Nothing is taken.
    #[must_use]
    pub fn remaining(&mut self, now: Instant, key: K) -> u64 {
        let now = self.clock.advance(now);
        let slot = self.table.find(key.bits(), now);
        self.paces.packets_left(slot.state.meter, now).0
    }

    /// Another rate from now on. What was taken stays taken.
    pub fn set_rate(&mut self, rate: Rate) {
        self.paces = paces(rate);
        self.table.adopt(&self.paces, self.clock.now());
    }

    /// How many keys are remembered.
    pub fn entries(&self) -> usize {
        self.table.counts.entries
    }

    /// How many keys can be remembered.
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }
}

impl<K> fmt::Debug for TokenBuckets<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBuckets")
            .field("paces", &self.paces)
            .field("counts", &self.table.counts)
            .finish_non_exhaustive()
    }
}

fn paces(rate: Rate) -> Paces {
    Paces::new(Budget { packets: Some(rate), bytes: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Net;

    #[test]
    fn what_is_left_is_told() {
        let mut buckets = TokenBuckets::new(Rate::per_second(2, 3), 8, 1);
        let (now, net) = (Instant::now(), Net::of([192, 0, 2, 1].into()));
        let half = Duration::from_millis(500);
        let told: Vec<_> = (0..4).map(|_| buckets.try_take(now, net)).collect();
        let none = Duration::ZERO;
        let expected = [(true, 2, none), (true, 1, none), (true, 0, half), (false, 0, half)];
        assert_eq!(
            told,
            expected.map(|(is_allowed, remaining, retry_after)| TakeResult { is_allowed, remaining, retry_after })
        );
        assert_eq!((buckets.remaining(now, net), buckets.remaining(now + half, net)), (0, 1));
        assert_eq!(buckets.try_take(now + half, net), TakeResult { is_allowed: true, remaining: 0, retry_after: half });
        assert_eq!(buckets.try_take(now + 8 * half, net).remaining, 2, "no more than the burst");
    }
}
