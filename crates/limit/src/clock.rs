//! Time as a number.

use std::time::Instant;

/// Counts the nanoseconds that have passed since it was first asked.
///
/// It never goes back: when the time it is given does, nothing has passed, and it counts on from there. After 292 years
/// it stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    last: Option<Instant>,
    /// Never 0, which is before everything, and always less than 2^63.
    now: u64,
}

impl Clock {
    pub fn new() -> Self {
        Self { last: None, now: 1 }
    }

    /// Moves to this time.
    pub fn advance(&mut self, now: Instant) -> u64 {
        let last = self.last.replace(now).unwrap_or(now);
        let passed = u64::try_from(now.saturating_duration_since(last).as_nanos()).unwrap_or(u64::MAX);
        self.now = self.now.saturating_add(passed).min(u64::MAX >> 1);
        self.now
    }

    /// The time it was moved to.
    pub fn now(&self) -> u64 {
        self.now
    }
}
