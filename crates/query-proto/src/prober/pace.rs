//! Sending evenly.
//!
//! Datagrams have a distance in time. Whoever sends them wakes up late now and then; what was missed is caught up with, but
//! only so far that no burst comes of it. A fast pace is kept by waking up once a millisecond and sending a few at a time.

use std::time::{Duration, Instant};

/// How much lateness is caught up with. A system's timer is late by less, unless the machine is overloaded.
const CATCH_UP: Duration = Duration::from_millis(2);

/// How often to wake up at a fast pace. Less than what is caught up with, so that it costs no throughput.
const TURN: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Pace {
    distance: Duration,
    /// When the next one may go.
    next: Option<Instant>,
}

impl Pace {
    pub fn new(per_second: u32) -> Self {
        // Rounded up: rather a little slower than too fast.
        Self { distance: Duration::from_nanos(1_000_000_000u64.div_ceil(per_second.max(1).into())), next: None }
    }

    /// Whether one may go now.
    pub fn is_open(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// One goes now.
    pub fn take(&mut self, now: Instant) {
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        self.next = Some(self.next.map_or(now, |next| next.max(earliest)) + self.distance);
    }

    /// When to wake up for the next one; `None` is at once.
    pub fn wake(&self) -> Option<Instant> {
        self.next.map(|next| next + TURN.saturating_sub(self.distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_at(pace: &mut Pace, now: Instant) -> usize {
        let mut count = 0;
        while pace.is_open(now) {
            pace.take(now);
            count += 1;
        }
        count
    }

    #[test]
    fn whoever_wakes_up_when_told_keeps_the_pace() {
        for per_second in [1, 7, 100, 999, 1_000, 1_001, 2_000, 50_000, 1_000_000] {
            let (mut pace, start) = (Pace::new(per_second), Instant::now());
            let (mut now, mut count) = (start, 0);
            while now < start + Duration::from_secs(2) {
                count += sent_at(&mut pace, now);
                now = pace.wake().unwrap();
            }
            let expected = 2 * per_second as usize;
            assert!(count.abs_diff(expected) <= expected / 500 + 1, "{count} instead of {expected}");
        }
    }

    #[test]
    fn a_long_pause_is_not_caught_up_with() {
        let (mut pace, start) = (Pace::new(10_000), Instant::now());
        assert_eq!(sent_at(&mut pace, start), 1);
        assert_eq!(sent_at(&mut pace, start + Duration::from_secs(5)), 21, "2 ms of 10,000 per second, and one");
    }
}
