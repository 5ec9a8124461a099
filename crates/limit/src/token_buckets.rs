//! Token buckets with one rate for many keys.

use crate::{BucketKey, Budget, Rate, clock::Clock, rate::BudgetParams, table::Table};
use std::{
    fmt,
    marker::PhantomData,
    time::{Duration, Instant},
};

/// The result of taking a token out of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeResult {
    /// Whether there was a token to take.
    pub is_allowed: bool,
    /// Number of tokens in the bucket now.
    pub remaining: u64,
    /// Time until there is at least one token in the bucket; zero if there is.
    pub retry_after: Duration,
}

/// A token bucket for each of many keys, in memory that never grows: "at most one reply per second and network".
///
/// A key that is not in the table has a full bucket. When its set is full, a new key evicts the one that loses least: the one
/// whose bucket will be full first. So more than `rate` may pass only with thousands of keys. Where that matters there has to
/// be a total as well: see [`Limiter`](crate::Limiter).
///
/// ```
/// use rallypoint_limit::{TokenBuckets, Net, Rate};
/// use std::time::{Duration, Instant};
///
/// let mut replies = TokenBuckets::new(Rate::per_second(1, 1), 1024, 0x5eed);
/// let now = Instant::now();
/// let net = Net::of("192.0.2.1".parse().unwrap());
/// assert!(replies.take(now, net));
/// assert!(!replies.take(now, Net::of("192.0.2.2".parse().unwrap())), "the same /24");
/// assert!(replies.take(now + Duration::from_secs(1), net));
/// ```
pub struct TokenBuckets<K> {
    params: BudgetParams,
    table: Table,
    clock: Clock,
    keys: PhantomData<fn(K)>,
}

impl<K: BucketKey> TokenBuckets<K> {
    /// Makes full buckets. `max_entries` is rounded down to a multiple of 8; each takes 32 bytes. The seed must not be
    /// predictable.
    pub fn new(rate: Rate, max_entries: usize, seed: u128) -> Self {
        Self { params: params(rate), table: Table::new(max_entries, seed), clock: Clock::new(), keys: PhantomData }
    }

    /// Takes a token out of the bucket of `key`, if there is one; returns whether there was.
    #[must_use]
    pub fn take(&mut self, now: Instant, key: K) -> bool {
        self.try_take(now, key).is_allowed
    }

    /// Like [`take`](Self::take), and returns what remains in the bucket, for reports to the client.
    #[must_use]
    pub fn try_take(&mut self, now: Instant, key: K) -> TakeResult {
        let now = self.clock.advance(now);
        let mut slot = self.table.find(key.bits(), now);
        let taken = self.params.take(slot.state.buckets, now, 0, 0);
        if let Ok(buckets) = taken {
            slot.state.buckets = buckets;
            self.table.put(&slot);
        }
        let (remaining, wait) = self.params.packets_remaining(slot.state.buckets, now);
        TakeResult { is_allowed: taken.is_ok(), remaining, retry_after: Duration::from_nanos(wait) }
    }

    /// Number of tokens in the bucket of `key`. Nothing is taken.
    #[must_use]
    pub fn remaining(&mut self, now: Instant, key: K) -> u64 {
        let now = self.clock.advance(now);
        let slot = self.table.find(key.bits(), now);
        self.params.packets_remaining(slot.state.buckets, now).0
    }

    /// Changes the rate. Tokens that were taken stay taken.
    pub fn set_rate(&mut self, rate: Rate) {
        self.params = params(rate);
        self.table.adapt(&self.params, self.clock.now());
    }

    /// Number of keys in the table.
    pub fn entries(&self) -> usize {
        self.table.counts.entries
    }

    /// Maximum number of keys in the table.
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }
}

impl<K> fmt::Debug for TokenBuckets<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBuckets")
            .field("params", &self.params)
            .field("counts", &self.table.counts)
            .finish_non_exhaustive()
    }
}

fn params(rate: Rate) -> BudgetParams {
    BudgetParams::new(Budget { packets: Some(rate), bytes: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Net;

    #[test]
    fn remaining_tokens_and_retry_time_are_reported() {
        let mut buckets = TokenBuckets::new(Rate::per_second(2, 3), 8, 1);
        let now = Instant::now();
        let net = Net::of([192, 0, 2, 1].into());
        let half = Duration::from_millis(500);
        let results: Vec<_> = (0..4).map(|_| buckets.try_take(now, net)).collect();
        let none = Duration::ZERO;
        let expected = [(true, 2, none), (true, 1, none), (true, 0, half), (false, 0, half)];
        assert_eq!(
            results,
            expected.map(|(is_allowed, remaining, retry_after)| TakeResult { is_allowed, remaining, retry_after })
        );
        assert_eq!((buckets.remaining(now, net), buckets.remaining(now + half, net)), (0, 1));
        assert_eq!(buckets.try_take(now + half, net), TakeResult { is_allowed: true, remaining: 0, retry_after: half });
        assert_eq!(buckets.try_take(now + 8 * half, net).remaining, 2, "no more than the burst");
    }
}
