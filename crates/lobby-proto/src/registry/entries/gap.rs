//! Times in which the program did not run: it was stopped, or the machine was overloaded.
//!
//! Meanwhile the receive buffer overflows, and the refreshes that it had no room for are lost. All servers would then expire at
//! once, although they are there. So they get the same grace as after a restart.

use super::MIN_LEASE;
use crate::wheel::{Clock, Tick};
use std::time::{Duration, Instant};

/// Time after which datagrams that get lost all the time no longer extend leases (W86): the list would contain ever more servers
/// that are gone.
const MAX_OVERLOAD: Duration = Duration::from_secs(600);

/// How late a timeout has to be to count as a gap.
const MIN_GAP: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct GapDetector {
    clock: Clock,
    /// When time was last handled.
    last: Instant,
    /// No lease ends before this tick.
    grace_until: Tick,
    /// When datagrams began to get lost, and when they did so last.
    overload: Option<(Instant, Instant)>,
    /// Number of gaps so far.
    count: u64,
}

impl GapDetector {
    pub fn new(clock: Clock, now: Instant) -> Self {
        Self { clock, last: now, grace_until: Tick::default(), overload: None, count: 0 }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Records that time is handled at `now`, without a gap before.
    pub fn touch(&mut self, now: Instant) {
        self.last = now;
    }

    /// Records that time is handled at `now`, and should have been at `due`. Returns whether it is so late that a time of grace
    /// begins.
    pub fn detect(&mut self, now: Instant, due: Option<Instant>) -> bool {
        let due = due.map(|due| due.max(self.last));
        self.touch(now);
        let is_gap = due.is_some_and(|due| now.saturating_duration_since(due) >= MIN_GAP);
        if is_gap {
            self.grace_until = self.clock.deadline(now, MIN_LEASE);
            self.count += 1;
        }
        is_gap
    }

    /// Records that datagrams were lost.
    pub fn handle_lost_datagrams(&mut self, now: Instant) {
        let current = self.overload.filter(|(_, last)| now.saturating_duration_since(*last) < 2 * MIN_LEASE);
        let began = current.map_or(now, |(began, _)| began);
        self.overload = Some((began, now));
        if now.saturating_duration_since(began) < MAX_OVERLOAD {
            self.grace_until = self.clock.deadline(now, MIN_LEASE);
        }
    }

    /// The tick before which no lease ends, if it has not been reached.
    pub fn grace(&self, reached: Tick) -> Option<Tick> {
        (reached < self.grace_until).then_some(self.grace_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_late_timeout_begins_a_time_of_grace() {
        let start = Instant::now();
        let clock = Clock::new(start);
        let mut gaps = GapDetector::new(clock, start);
        assert!(!gaps.detect(start + SECOND, Some(start)), "a second late");
        assert!(!gaps.detect(start + 60 * SECOND, None), "nothing was due");
        assert!(
            gaps.detect(start + 63 * SECOND, Some(start + 59 * SECOND)),
            "three seconds after time was last handled"
        );
        assert_eq!(gaps.count(), 1);
        assert!(gaps.grace(clock.tick(start + 97 * SECOND)).is_some());
        assert!(gaps.grace(clock.tick(start + 98 * SECOND)).is_none());
    }

    #[test]
    fn datagrams_that_get_lost_for_ten_minutes_extend_no_leases_any_more() {
        let start = Instant::now();
        let clock = Clock::new(start);
        let mut gaps = GapDetector::new(clock, start);
        for second in 0..599 {
            gaps.handle_lost_datagrams(start + second * SECOND);
        }
        assert!(gaps.grace(clock.tick(start + 599 * SECOND)).is_some());
        (600..700).for_each(|second| gaps.handle_lost_datagrams(start + second * SECOND));
        assert!(gaps.grace(clock.tick(start + 640 * SECOND)).is_none());
    }
}
