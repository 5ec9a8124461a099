//! Sending evenly: a bucket that fills at the pacing rate.

use std::time::{Duration, Instant};

/// What may leave at once after a pause, in time at the current rate: timers are not finer, and batches are cheaper.
const BURST: Duration = Duration::from_millis(1);

/// But what waited for its turn may leave at once when the turn comes this late: a game asks once per frame, and would get
/// through only a small part of what the path carries.
const LATEST: Duration = Duration::from_millis(25);

/// And at least this: two datagrams.
const SMALLEST_BURST: f64 = 1_016.0;

#[derive(Debug)]
pub(crate) struct Pacer {
    credit: f64,
    at: Instant,
    /// The last answer was no: something waits.
    waits: bool,
}

impl Pacer {
    pub fn new(now: Instant) -> Self {
        Self { credit: SMALLEST_BURST, at: now, waits: false }
    }

    /// Whether a datagram may leave. The credit may become negative by one datagram.
    pub fn ready(&mut self, now: Instant, rate: f64) -> bool {
        let elapsed = now.saturating_duration_since(self.at);
        self.at = now;
        let burst = if self.waits { elapsed.clamp(BURST, LATEST) } else { BURST };
        let most = (rate * burst.as_secs_f64()).max(SMALLEST_BURST);
        // What is there already stays: it is used up in the same turn.
        self.credit = (self.credit + rate * elapsed.as_secs_f64()).min(most.max(self.credit));
        self.waits = self.credit <= 0.0;
        !self.waits
    }

    pub fn on_send(&mut self, len: usize) {
        self.credit -= len as f64;
    }

    /// When to ask again after a no: not for each datagram, but for the burst of a millisecond.
    pub fn next(&self, rate: f64) -> Instant {
        let wanted = (rate * BURST.as_secs_f64()).clamp(1.0, 16_000.0) / 2.0;
        let seconds = ((wanted - self.credit) / rate.max(1.0)).clamp(0.000_02, 1.0);
        self.at + Duration::from_secs_f64(seconds)
    }
}
