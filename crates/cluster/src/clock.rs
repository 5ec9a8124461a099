//! The store's clock as a node estimates it.

use std::time::{Duration, Instant};

/// Converts between the monotonic clock of a node and the store's clock in milliseconds.
///
/// All deadlines are kept in the store's time, so that the system clocks of the nodes do not matter. A sample is the store's
/// time in a reply; it was read between the request and the reply, so the middle of the two is wrong by at most half of the
/// round trip. A sample with a longer round trip than usual is ignored, unless the previous one is old.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreClock {
    sample: Option<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// A moment of the node's clock.
    at: Instant,
    /// That moment by the store's clock, in milliseconds.
    store: u64,
    round_trip: Duration,
}

/// Age at which a sample is replaced by a worse one: clocks drift by less than a millisecond in this time.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Difference to the estimate from which a sample replaces it at once: the store's clock was set, or it is another store.
const MAX_ERROR_MS: u64 = 2_000;

impl StoreClock {
    /// Handles the store's time in the reply to a request. Returns whether the store's clock was set since the last one.
    pub fn handle_sample(&mut self, sent: Instant, received: Instant, store: u64) -> bool {
        let round_trip = received.saturating_duration_since(sent);
        let new = Sample { at: sent + round_trip / 2, store, round_trip };
        let is_kept = self.sample.is_some_and(|old| {
            let error = self.store_time(new.at).abs_diff(store);
            let is_recent = received.saturating_duration_since(old.at) < MAX_AGE;
            is_recent && old.round_trip < round_trip && error < MAX_ERROR_MS
        });
        // A reply that took long proves nothing about times within that.
        let is_set =
            self.sample.is_some() && self.store_time(new.at).abs_diff(store) > MAX_ERROR_MS + milliseconds(round_trip);
        if !is_kept {
            self.sample = Some(new);
        }
        is_set
    }

    /// The store's time at a moment of the node's clock, in milliseconds; 0 before the first sample.
    #[must_use]
    pub fn store_time(&self, at: Instant) -> u64 {
        let Some(sample) = self.sample else { return 0 };
        match at.checked_duration_since(sample.at) {
            Some(later) => sample.store.saturating_add(milliseconds(later)),
            None => sample.store.saturating_sub(milliseconds(sample.at.duration_since(at))),
        }
    }

    /// The moment of the node's clock at which the store's clock shows this time; `None` before the first sample, or if it is
    /// out of range.
    #[must_use]
    pub fn node_time(&self, store: u64) -> Option<Instant> {
        let sample = self.sample?;
        match store.checked_sub(sample.store) {
            Some(later) => sample.at.checked_add(Duration::from_millis(later)),
            None => sample.at.checked_sub(Duration::from_millis(sample.store - store)),
        }
    }

    /// Round trip of the request on which the estimate is based.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.sample.map(|sample| sample.round_trip)
    }
}

/// A time in whole milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_estimate_is_wrong_by_at_most_half_a_round_trip() {
        let start = Instant::now();
        let mut clock = StoreClock::default();
        assert_eq!((clock.store_time(start), clock.node_time(7)), (0, None));
        // The store read its clock 10 ms after the request was sent, and the reply took 90 ms.
        clock.handle_sample(start, start + 100 * MS, 1_000_010);
        assert!(clock.store_time(start).abs_diff(1_000_000) <= 50);
        let at = start + 5_000 * MS;
        assert_eq!(clock.node_time(clock.store_time(at)), Some(at));
    }

    #[test]
    fn a_slow_reply_does_not_replace_a_recent_fast_one() {
        let start = Instant::now();
        let mut clock = StoreClock::default();
        clock.handle_sample(start, start + MS, 50_000);
        let good = clock.store_time(start);
        clock.handle_sample(start + 1_000 * MS, start + 2_000 * MS, 51_000);
        assert_eq!(clock.store_time(start), good);
        clock.handle_sample(start + 11_000 * MS, start + 11_400 * MS, 61_200);
        assert_eq!(clock.round_trip(), Some(400 * MS), "an old sample is replaced");
    }

    #[test]
    fn another_clock_is_taken_over_at_once() {
        let start = Instant::now();
        let mut clock = StoreClock::default();
        clock.handle_sample(start, start + MS, 50_000);
        assert!(!clock.handle_sample(start + 500 * MS, start + 501 * MS, 50_500));
        assert!(clock.handle_sample(start + 1_000 * MS, start + 1_100 * MS, 900_000));
        assert!(clock.store_time(start + 1_050 * MS).abs_diff(900_000) <= 50);
    }
}
