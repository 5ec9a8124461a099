//! Time as a number of nanoseconds.

use std::time::Instant;

/// Counts the nanoseconds since its first use.
///
/// It never goes back: if the time it is given does, no time has passed, and it continues from there. After 292 years it
/// stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    last: Option<Instant>,
    /// Never 0, which means "before everything", and always less than 2^63.
    now: u64,
}

impl Clock {
    pub fn new() -> Self {
        Self { last: None, now: 1 }
    }

    /// Advances to this time, and returns it.
    pub fn advance(&mut self, now: Instant) -> u64 {
        let last = self.last.replace(now).unwrap_or(now);
        let passed = u64::try_from(now.saturating_duration_since(last).as_nanos()).unwrap_or(u64::MAX);
        self.now = self.now.saturating_add(passed).min(u64::MAX >> 1);
        self.now
    }

    /// The time of the last advance.
    pub fn now(&self) -> u64 {
        self.now
    }
}
