//! The round-trip time that the statistics show (W82).
//!
//! Some acks are late for reasons that are not the path's: the peer waited for a second message that was lost, or repeated an ack
//! because a copy had arrived. Those that may have waited are left out if there are others, and what remains of them is a minority:
//! the median is the round-trip time of the path, where an average would be too long. Recovery takes the average: its
//! timeouts have to allow for late acks.

use std::time::{Duration, Instant};

/// Number of samples. An odd one, so that the median is one of them.
const SAMPLES: usize = 15;

/// Time without a clear sample after which those of acks that may have waited are taken.
const STARVED_AFTER: Duration = Duration::from_secs(1);

/// The same for those of messages that were resent, because all are resent before their acks can arrive (W75).
const AMBIGUOUS_AFTER: Duration = Duration::from_secs(3);

/// The last measured round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttMeter {
    samples: [Duration; SAMPLES],
    count: usize,
    next: usize,
    /// When there was a clear sample.
    clear_at: Option<Instant>,
}

// Indexing in this file cannot fail: `next` is below the number of samples, and `count` at most equal to it.
impl RttMeter {
    pub fn new() -> Self {
        Self { samples: [Duration::ZERO; _], count: 0, next: 0, clear_at: None }
    }

    /// Adds a sample of a message that was sent once. `may_have_waited`: the peer may have delayed the ack.
    pub fn add(&mut self, now: Instant, rtt: Duration, may_have_waited: bool) {
        if !may_have_waited {
            self.clear_at = Some(now);
            self.push(rtt);
        } else if self.is_starved(now, STARVED_AFTER) {
            self.push(rtt);
        }
    }

    /// Adds a sample of a message that was resent, if there were no others for long.
    pub fn add_ambiguous(&mut self, now: Instant, rtt: Duration) {
        if self.is_starved(now, AMBIGUOUS_AFTER) {
            self.push(rtt);
        }
    }

    fn is_starved(&self, now: Instant, after: Duration) -> bool {
        self.clear_at.is_none_or(|at| now.saturating_duration_since(at) >= after)
    }

    fn push(&mut self, rtt: Duration) {
        self.samples[self.next] = rtt;
        self.next = (self.next + 1) % SAMPLES;
        self.count = (self.count + 1).min(SAMPLES);
    }

    /// The median.
    pub fn median(&self) -> Option<Duration> {
        let mut sorted = self.samples;
        let sorted = &mut sorted[..self.count];
        sorted.sort_unstable();
        sorted.get(self.count / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn w82_a_minority_of_late_acks_changes_nothing_and_a_slower_path_shows_after_eight_samples() {
        let now = Instant::now();
        let mut meter = RttMeter::new();
        assert_eq!(meter.median(), None);
        (0..100).for_each(|number| meter.add(now, if number % 3 == 0 { ms(60) } else { ms(20) }, false));
        assert_eq!(meter.median(), Some(ms(20)));
        meter.add_ambiguous(now + ms(100), ms(150));
        (0..20).for_each(|_| meter.add(now, ms(30), true));
        (0..8).for_each(|_| meter.add(now, ms(40), false));
        assert_eq!(meter.median(), Some(ms(40)));
    }

    #[test]
    fn w82_messages_that_were_resent_are_measured_if_there_are_no_others() {
        let now = Instant::now();
        let mut meter = RttMeter::new();
        (0..15).for_each(|_| meter.add(now, ms(20), false));
        (0..15).for_each(|_| meter.add_ambiguous(now + ms(2_900), ms(90)));
        assert_eq!(meter.median(), Some(ms(20)));
        (0..15).for_each(|_| meter.add_ambiguous(now + ms(3_100), ms(90)));
        assert_eq!(meter.median(), Some(ms(90)));
    }
}
