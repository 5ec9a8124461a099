//! Even spacing of outgoing datagrams.
//!
//! Datagrams have a minimum distance in time. A sender that wakes up late catches up, but only by a bounded amount, so that
//! no burst results. A high rate is reached by waking up once per millisecond and sending a few datagrams each time.

use std::time::{Duration, Instant};

/// Maximum lateness that is made up for. The system's timers are less late than this, unless the machine is overloaded.
const MAX_CATCH_UP: Duration = Duration::from_millis(2);

/// Interval between wake-ups at a high rate. Shorter than [`MAX_CATCH_UP`], so that it costs no throughput.
const MIN_SLEEP: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Pacer {
    distance: Duration,
    /// Earliest time of the next datagram; `None` before the first.
    next: Option<Instant>,
}

impl Pacer {
    pub fn new(packets_per_second: u32) -> Self {
        // Rounded up: slightly too slow rather than too fast.
        let distance = Duration::from_nanos(1_000_000_000u64.div_ceil(packets_per_second.max(1).into()));
        Self { distance, next: None }
    }

    /// Whether a datagram may be sent now.
    pub fn is_ready(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// Notes that a datagram is sent now.
    pub fn note_sent(&mut self, now: Instant) {
        let earliest = now.checked_sub(MAX_CATCH_UP).unwrap_or(now);
        self.next = Some(self.next.map_or(now, |next| next.max(earliest)) + self.distance);
    }

    /// When to wake up for the next datagram; `None` means at once.
    pub fn wake_at(&self) -> Option<Instant> {
        self.next.map(|next| next + MIN_SLEEP.saturating_sub(self.distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_at(pacer: &mut Pacer, now: Instant) -> usize {
        let mut count = 0;
        while pacer.is_ready(now) {
            pacer.note_sent(now);
            count += 1;
        }
        count
    }

    #[test]
    fn waking_up_as_requested_keeps_the_rate() {
        for per_second in [1, 7, 100, 999, 1_000, 1_001, 2_000, 50_000, 1_000_000] {
            let mut pacer = Pacer::new(per_second);
            let start = Instant::now();
            let mut now = start;
            let mut count = 0;
            while now < start + Duration::from_secs(2) {
                count += sent_at(&mut pacer, now);
                now = pacer.wake_at().unwrap();
            }
            let expected = 2 * per_second as usize;
            assert!(count.abs_diff(expected) <= expected / 500 + 1, "{count} instead of {expected}");
        }
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let mut pacer = Pacer::new(10_000);
        let start = Instant::now();
        assert_eq!(sent_at(&mut pacer, start), 1);
        assert_eq!(sent_at(&mut pacer, start + Duration::from_secs(5)), 21, "2 ms at 10,000 per second, and one");
    }
}
