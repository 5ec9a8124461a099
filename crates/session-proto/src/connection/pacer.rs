//! Pacing: a token bucket that fills at the pacing rate.

use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::{Duration, Instant};

/// Burst allowed after a pause, as time at the current rate: timers are not finer, and batches are cheaper.
const BURST: Duration = Duration::from_millis(1);

/// Largest burst after a wait that took longer than asked for: a game polls once per frame, and would otherwise send only a
/// small part of what the path carries.
const MAX_LATE_BURST: Duration = Duration::from_millis(25);

/// Largest debt, as time at the application's own limit. Probes are sent without regard to the pacer; after an outage, a
/// session with a low limit would otherwise be silent for many seconds.
const MAX_DEBT: Duration = Duration::from_millis(250);

/// Smallest burst in bytes: two datagrams.
const MIN_BURST: f64 = 2.0 * MAX_DATAGRAM as f64;

/// Largest burst in bytes that is waited for.
const MAX_AWAITED_BURST: f64 = 16_000.0;

/// Shortest wait in seconds, so that a timer is never due at once.
const MIN_WAIT: f64 = 0.000_02;

/// Longest wait in seconds: the rate may have changed by then.
const MAX_WAIT: f64 = 1.0;

/// Spreads datagrams evenly over time.
#[derive(Debug)]
pub(crate) struct Pacer {
    credit: f64,
    at: Instant,
    /// The application's own limit in bytes per second.
    max_rate: f64,
    /// The last call of [`refill_and_check`](Self::refill_and_check) returned false: a datagram is waiting.
    is_waiting: bool,
}

impl Pacer {
    /// `max_rate`: the application's own limit in bytes per second, if there is one.
    pub fn new(now: Instant, max_rate: Option<u32>) -> Self {
        Self { credit: MIN_BURST, at: now, max_rate: max_rate.map_or(f64::INFINITY, f64::from), is_waiting: false }
    }

    /// Adds what has accumulated at this rate, and returns whether a datagram may be sent. The credit may become negative by
    /// one datagram.
    pub fn refill_and_check(&mut self, now: Instant, rate: impl FnOnce() -> f64) -> bool {
        // A frame may send with the time at which it began, after something else was sent with a later one.
        if now <= self.at {
            self.is_waiting = self.credit <= 0.0;
            return !self.is_waiting;
        }
        let elapsed = now.saturating_duration_since(self.at);
        self.at = now;
        let rate = rate().min(self.max_rate);
        let burst = if self.is_waiting { elapsed.clamp(BURST, MAX_LATE_BURST) } else { BURST };
        let limit = (rate * burst.as_secs_f64()).max(MIN_BURST);
        // Credit from before is never cut: it is used up in the same round.
        self.credit = (self.credit + rate * elapsed.as_secs_f64()).min(limit.max(self.credit));
        self.is_waiting = self.credit <= 0.0;
        !self.is_waiting
    }

    /// Number of bytes that may be sent after [`refill_and_check`](Self::refill_and_check) returned true.
    pub fn credit(&self) -> f64 {
        // The last datagram may exceed the credit.
        self.credit + MAX_DATAGRAM as f64
    }

    pub fn on_send(&mut self, len: usize) {
        let max_debt = MIN_BURST + self.max_rate * MAX_DEBT.as_secs_f64();
        self.credit = (self.credit - len as f64).max(-max_debt);
    }

    /// When to try again after [`refill_and_check`](Self::refill_and_check) returned false: not for each datagram, but for a
    /// burst of a millisecond.
    pub fn retry_at(&self, rate: f64) -> Instant {
        let rate = rate.min(self.max_rate);
        let wanted = (rate * BURST.as_secs_f64()).clamp(1.0, MAX_AWAITED_BURST) / 2.0;
        let seconds = ((wanted - self.credit) / rate.max(1.0)).clamp(MIN_WAIT, MAX_WAIT);
        self.at + Duration::from_secs_f64(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_an_outage_do_not_silence_a_session_with_a_low_rate() {
        let start = Instant::now();
        let mut pacer = Pacer::new(start, Some(4_000));
        (0..180).for_each(|_| pacer.on_send(508));
        assert!(!pacer.refill_and_check(start + Duration::from_millis(100), || 1e6));
        assert!(pacer.refill_and_check(start + Duration::from_millis(600), || 1e6));
    }
}
