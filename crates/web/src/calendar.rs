//! The time of day, and what it has to do with the time of this program.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of now, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A clock that is off by less is not worth changing what was said.
const SLACK: Duration = Duration::from_secs(5);

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

    /// Says what time of day it is. If the clock was set meanwhile, this is another calendar from now on.
    pub fn set(&mut self, now: Instant, wall: SystemTime) {
        let new = Self::new(now, wall);
        if self.at(now).abs_diff(new.unix) > SLACK {
            *self = new;
        }
    }

    /// A moment in seconds since 1970.
    #[must_use]
    pub fn unix(&self, at: Instant) -> u64 {
        self.at(at).as_secs()
    }

    fn at(&self, at: Instant) -> Duration {
        match at.checked_duration_since(self.now) {
            Some(later) => self.unix + later,
            None => self.unix.saturating_sub(self.now.duration_since(at)),
        }
    }
}
