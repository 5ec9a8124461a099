//! The time of day, and what it has to do with the time of this program.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of now, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What turns the moments of this program into those of the calendar.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    now: Instant,
    unix: Duration,
}

impl Calendar {
    /// Now, by both clocks.
    #[must_use]
    pub fn new(now: Instant, wall: SystemTime) -> Self {
        Self { now, unix: wall.duration_since(UNIX_EPOCH).unwrap_or_default() }
    }

    /// A moment in seconds since 1970.
    #[must_use]
    pub fn unix(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.now) {
            Some(later) => self.unix + later,
            None => self.unix.saturating_sub(self.now.duration_since(at)),
        }
        .as_secs()
    }
}
