//! Conversion between the monotonic clock and Unix time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The current time in seconds since 1970; 0 if the system clock is set to a time before that.
#[must_use]
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Drift between both clocks that is tolerated before times that were already shown are corrected.
const TOLERANCE: Duration = Duration::from_secs(5);

/// Converts an [`Instant`] to Unix time.
///
/// ```
/// use rallypoint_lobby::WallClock;
/// use std::time::{Duration, Instant, UNIX_EPOCH};
///
/// let now = Instant::now();
/// let clock = WallClock::new(now, UNIX_EPOCH + Duration::from_secs(1_800_000_000));
/// assert_eq!(clock.unix(now + Duration::from_secs(60)), 1_800_000_060);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    now: Instant,
    unix: Duration,
}

impl WallClock {
    /// A conversion based on the same moment as read from both clocks.
    #[must_use]
    pub fn new(now: Instant, wall: SystemTime) -> Self {
        Self { now, unix: wall.duration_since(UNIX_EPOCH).unwrap_or_default() }
    }

    /// Compares both clocks again, and adopts the new offset if the system clock was set by more than five seconds.
    pub fn set(&mut self, now: Instant, wall: SystemTime) {
        let new = Self::new(now, wall);
        if self.at(now).abs_diff(new.unix) > TOLERANCE {
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
