//! Rate limit for log messages.

use std::time::{Duration, Instant};

/// Minimum interval between two log messages about the same condition.
const INTERVAL: Duration = Duration::from_secs(60);

/// Rate-limits a log message that would otherwise repeat many times per second: it is logged at once, and then once a minute.
///
/// ```
/// use rallypoint_lobby::LogThrottle;
/// use std::time::Instant;
///
/// let mut throttle = LogThrottle::default();
/// let now = Instant::now();
/// assert_eq!(throttle.record(now), Some(1), "the first occurrence is logged");
/// assert_eq!(throttle.record(now), None);
/// ```
#[derive(Debug, Default)]
pub struct LogThrottle {
    logged_at: Option<Instant>,
    count: u64,
}

impl LogThrottle {
    /// Records an occurrence. If it has to be logged now, this returns the number of occurrences since the last message, this one
    /// included.
    pub fn record(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged_at.is_some_and(|at| now.saturating_duration_since(at) < INTERVAL) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_occurrence_is_logged_at_once_and_later_ones_once_a_minute() {
        let mut throttle = LogThrottle::default();
        let now = Instant::now();
        assert_eq!(throttle.record(now), Some(1));
        assert_eq!([1, 2, 59].map(|second| throttle.record(now + Duration::from_secs(second))), [None; 3]);
        assert_eq!(throttle.record(now + INTERVAL), Some(4));
    }
}
