//! The rate at which the application hands over messages.

use rallypoint_wire::session::MessageNumber;
use std::time::{Duration, Instant};

/// Time over which the rate is measured: a second of a game, so that single frames do not matter.
const PERIOD: Duration = Duration::from_secs(1);

/// Measures the rate of messages by their numbers, so that a message costs nothing.
#[derive(Debug)]
pub(crate) struct OfferedRate {
    /// The next number at the beginning of the period.
    first: MessageNumber,
    since: Instant,
    /// Messages per second in the last complete period.
    rate: f64,
}

impl OfferedRate {
    pub fn new(now: Instant) -> Self {
        Self { first: MessageNumber::FIRST, since: now, rate: 0.0 }
    }

    /// `next` is the number of the next message.
    pub fn update(&mut self, now: Instant, next: MessageNumber) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= PERIOD {
            self.rate = f64::from(next.distance_from(self.first)) / elapsed.as_secs_f64();
            self.first = next;
            self.since = now;
        }
    }

    /// Messages per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_complete_period() {
        let mut now = Instant::now();
        let mut offered = OfferedRate::new(now);
        let mut next = 0;
        for (count, rate) in [(60, 60.0), (30, 30.0), (0, 0.0)] {
            now += PERIOD / 2;
            next += count;
            offered.update(now, MessageNumber::new(next));
            now += PERIOD / 2;
            offered.update(now, MessageNumber::new(next));
            assert_eq!(offered.rate(), rate);
        }
    }
}
