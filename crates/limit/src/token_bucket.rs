//! One token bucket, for a rate that everything shares.

use crate::{Rate, clock::Clock, rate::BucketParams};
use std::time::Instant;

/// A token bucket.
///
/// ```
/// use rallypoint_limit::{Rate, TokenBucket};
/// use std::time::{Duration, Instant};
///
/// let mut checks = TokenBucket::new(Rate::per_second(2, 1));
/// let now = Instant::now();
/// assert!(checks.take(now));
/// assert!(!checks.has_token(now));
/// assert!(checks.take(now + Duration::from_millis(500)));
/// ```
#[derive(Debug)]
pub struct TokenBucket {
    params: BucketParams,
    /// When the bucket is full again, in nanoseconds of its clock.
    full_at: u64,
    clock: Clock,
}

impl TokenBucket {
    /// Makes a full bucket.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { params: BucketParams::new(Some(rate)), full_at: 0, clock: Clock::new() }
    }

    /// Whether there is a token to take.
    #[must_use]
    pub fn has_token(&mut self, now: Instant) -> bool {
        self.params.take(self.full_at, self.clock.advance(now), 1, 0).is_some()
    }

    /// Takes a token, if there is one; returns whether there was.
    pub fn take(&mut self, now: Instant) -> bool {
        let taken = self.params.take(self.full_at, self.clock.advance(now), 1, 0);
        self.full_at = taken.unwrap_or(self.full_at);
        taken.is_some()
    }

    /// Changes the rate. Tokens that were taken stay taken, as far as the bucket can be empty.
    pub fn set_rate(&mut self, rate: Rate) {
        self.params = BucketParams::new(Some(rate));
        self.full_at = self.full_at.min(self.clock.now().saturating_add(self.params.depth()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_new_rate_applies_at_once() {
        let mut bucket = TokenBucket::new(Rate::per_minute(1, 1));
        let now = Instant::now();
        assert!(bucket.take(now) && !bucket.take(now + Duration::from_secs(1)));
        bucket.set_rate(Rate::per_second(1, 1));
        assert!(!bucket.take(now + Duration::from_secs(1)));
        assert!(bucket.take(now + Duration::from_secs(2)));
        assert!(!bucket.take(now + Duration::from_secs(2)));
    }
}
