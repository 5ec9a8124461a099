//! How often a game loop polls: between two calls nothing is received, which looks like a queue of the path.

use std::time::{Duration, Instant};

/// Longest interval that counts: a game that polls less often is loading, or stopped.
const MAX_INTERVAL: Duration = Duration::from_millis(50);

/// The smoothed interval between calls.
#[derive(Debug, Default)]
pub(crate) struct PollInterval {
    last: Option<Instant>,
    smoothed: Duration,
}

impl PollInterval {
    /// The application waits for datagrams before the next call: none has to wait for that call.
    pub fn on_wait(&mut self) {
        self.last = None;
    }

    /// A call at this time. Returns the interval at which calls come.
    pub fn record(&mut self, now: Instant) -> Duration {
        let elapsed = self.last.replace(now).map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.smoothed = self.smoothed * 7 / 8 + elapsed.min(MAX_INTERVAL) / 8;
        self.smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_frames() {
        let start = Instant::now();
        let mut interval = PollInterval::default();
        let frame = Duration::from_millis(16);
        let smoothed = (0..100).map(|frames| interval.record(start + frame * frames)).last().unwrap();
        assert!(smoothed.abs_diff(frame) < Duration::from_millis(1), "{smoothed:?}");
        let after_pause = interval.record(start + Duration::from_secs(60));
        assert!(after_pause < Duration::from_millis(25), "{after_pause:?}");
    }
}
