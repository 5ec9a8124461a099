//! Detects a stream that hangs because the peer no longer has a message that is missing (W63).
//!
//! The window is full because the oldest message is missing, and the peer goes on to send messages above it. Those are opened now
//! and then, so that a forger cannot end a session by datagrams with high numbers.

use std::time::{Duration, Instant};

/// Time for which the oldest message may be missing while the peer sends messages above the window.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Number of messages above the window that have to be opened in that time: a few datagrams end no session.
const MIN_CHECKS: u32 = 5;

/// Longest interval between two of them: one before and one after an outage end no session either.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(4);

/// Interval at which messages above the window are opened.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The oldest message is missing, and messages above the window arrive.
#[derive(Clone, Copy, Debug)]
struct Stall {
    since: Instant,
    last_check: Instant,
    /// Number of messages above the window that were opened.
    checks: u32,
}

/// Detects that the oldest missing message will not arrive any more.
#[derive(Debug, Default)]
pub(super) struct StallDetector {
    stall: Option<Stall>,
}

impl StallDetector {
    /// Whether a message above the window has to be opened.
    pub fn is_check_due(&self, now: Instant) -> bool {
        self.stall.is_none_or(|stall| now >= stall.last_check + CHECK_INTERVAL)
    }

    /// A message above the window was opened. Returns whether the stream hangs.
    pub fn on_message_above_window(&mut self, now: Instant) -> bool {
        let first = Stall { since: now, last_check: now, checks: 0 };
        let stall = self.stall.filter(|stall| now <= stall.last_check + MAX_CHECK_INTERVAL).unwrap_or(first);
        let stall = Stall { last_check: now, checks: stall.checks + 1, ..stall };
        self.stall = Some(stall);
        now >= stall.since + TIMEOUT && stall.checks >= MIN_CHECKS
    }

    /// The oldest message is no longer missing.
    pub fn on_advance(&mut self) {
        self.stall = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w63_a_stream_is_stalled_only_if_messages_above_the_window_keep_arriving() {
        let start = Instant::now();
        let arrive = |seconds: &[u64]| {
            let mut detector = StallDetector::default();
            let times = seconds.iter().map(|second| start + Duration::from_secs(*second));
            times.filter(|now| detector.is_check_due(*now) && detector.on_message_above_window(*now)).count() > 0
        };
        assert!(arrive(&[0, 2, 4, 6, 8, 10]));
        assert!(!arrive(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
        assert!(!arrive(&[0, 60]) && !arrive(&[0, 5, 10, 15, 20, 25]));
        assert!(!arrive(&[0, 3, 6, 20, 23, 26]));
    }
}
