//! Recognises a steady stream: several messages share an ack, which may wait for the next of them (W31).
//!
//! The receiver counts arrivals, and the sender transmissions, so that it knows how long an ack may wait.

use std::time::{Duration, Instant};

/// Maximum interval of the messages of a steady stream: a game sends 60 per second.
const INTERVAL: Duration = Duration::from_millis(20);

/// Maximum interval between two messages that were sent together: a stream that has fallen behind sends two at a time (W123).
const PAIR_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum interval between two such pairs: twice the usual one, or a round trip if no more of them are in flight.
const INTERVAL_OF_PAIRS: Duration = Duration::from_millis(100);

/// Number of consecutive messages, each within [`INTERVAL`] of the previous one, that make a steady stream.
const STEADY_AFTER: u8 = 4;

/// Counts the messages of a stream that follow each other soon.
#[derive(Debug)]
pub(crate) struct SteadyStream {
    last: Instant,
    /// Whether the last message came together with the one before it.
    is_pair: bool,
    /// Number of messages that came soon, up to [`STEADY_AFTER`].
    count: u8,
}

impl SteadyStream {
    pub fn new(now: Instant) -> Self {
        Self { last: now, is_pair: false, count: 0 }
    }

    /// The next message is sent or arrives. Returns whether neither it nor the one before came soon.
    pub fn on_message(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.last);
        let is_soon = elapsed <= INTERVAL;
        let is_sparse = !is_soon && self.count == 0;
        if is_soon {
            self.count = (self.count + 1).min(STEADY_AFTER);
        } else if !self.is_pair || elapsed > INTERVAL_OF_PAIRS {
            self.count = 0;
        }
        self.is_pair = elapsed <= PAIR_INTERVAL;
        self.last = now;
        is_sparse
    }

    /// When the last message was sent or arrived.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// Whether the last message came soon after the one before it.
    pub fn is_dense(&self) -> bool {
        self.count > 0
    }

    pub fn is_steady(&self) -> bool {
        self.count >= STEADY_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_steady_after(intervals: &[u64]) -> bool {
        let mut now = Instant::now();
        let mut stream = SteadyStream::new(now);
        for interval in intervals.iter().cycle().take(24) {
            now += Duration::from_millis(*interval);
            stream.on_message(now);
        }
        stream.is_steady()
    }

    #[test]
    fn w31_messages_within_20_ms_and_pairs_within_100_ms_are_a_steady_stream() {
        assert!(is_steady_after(&[16]));
        assert!(is_steady_after(&[1, 32]));
        assert!(is_steady_after(&[1, 90]), "a pair per round trip");
        assert!(!is_steady_after(&[33]));
        assert!(!is_steady_after(&[16, 33]), "every second message is lost");
        assert!(!is_steady_after(&[1, 110]));
    }
}
