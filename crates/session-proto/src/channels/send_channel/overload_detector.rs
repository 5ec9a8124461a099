//! Whether more is sent on an expiring channel than the path carries.

use std::time::{Duration, Instant};

/// Time after the last sign of overload for which it is assumed, as a multiple of the maximum age.
const OVERLOAD_MEMORY: u32 = 4;

/// Share of the maximum age for which messages wait at most in an overload.
const MAX_WAIT_SHARE: u32 = 8;

/// A queue that was never empty for a whole maximum age is no burst: more is sent than the path carries, and something has to be
/// dropped. Then it is what has waited for an eighth of that time, since otherwise every message would arrive just before it is
/// late.
#[derive(Debug)]
pub(super) struct OverloadDetector {
    /// [`Channel::max_age`](crate::Channel::max_age).
    max_age: Duration,
    /// Start of the period in which the queue has never been empty.
    standing_since: Option<Instant>,
    /// The last sign of overload.
    overloaded_at: Option<Instant>,
}

impl OverloadDetector {
    pub fn new(max_age: Duration) -> Self {
        Self { max_age, standing_since: None, overloaded_at: None }
    }

    /// When a message expires that is queued now.
    #[inline]
    pub fn expires_at(&self, now: Instant) -> Instant {
        now + self.max_age
    }

    /// Something waits. Returns whether there is an overload.
    pub fn on_waiting(&mut self, now: Instant) -> bool {
        let standing_since = *self.standing_since.get_or_insert(now);
        if now.saturating_duration_since(standing_since) >= self.max_age {
            self.overloaded_at = Some(now);
        }
        self.overloaded_at.is_some_and(|at| now.saturating_duration_since(at) < OVERLOAD_MEMORY * self.max_age)
    }

    /// Nothing waits.
    #[inline]
    pub fn on_empty(&mut self) {
        self.standing_since = None;
    }

    /// Whether a message that expires at this time has waited too long for an overload.
    pub fn is_overdue(&self, now: Instant, expires_at: Instant) -> bool {
        now + (self.max_age - self.max_age / MAX_WAIT_SHARE) >= expires_at
    }

    /// A message is dropped because of the overload.
    pub fn on_dropped(&mut self, now: Instant) {
        self.overloaded_at = Some(now);
    }
}
