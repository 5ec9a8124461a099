//! Decides when to wait before receiving again, so that one system call receives more datagrams.
//!
//! A loop that is faster than its senders is woken up for every few datagrams, and spends most of its time on waking up. While
//! many datagrams arrive, a pause of a fraction of a millisecond lets a whole batch arrive: what network cards do with their
//! interrupts. The socket's buffer holds what arrives meanwhile, and a single datagram never waits.

use std::time::{Duration, Instant};

/// Rate in datagrams per second above which the loop pauses between receives.
const MIN_RATE: f64 = 20_000.0;

/// Minimum time over which the rate is measured, so that a few datagrams that arrive together are no high rate.
const WINDOW: Duration = Duration::from_millis(1);

/// The rate at which datagrams arrive.
#[derive(Debug)]
pub(crate) struct ReceiveModeration {
    /// Start of the current measurement.
    since: Instant,
    /// Number of datagrams received since then.
    count: usize,
    /// Whether the last measurement found a high rate.
    is_high: bool,
}

impl ReceiveModeration {
    pub fn new(now: Instant) -> Self {
        Self { since: now, count: 0, is_high: false }
    }

    /// Handles the end of a turn that has received this many datagrams. Returns whether the next turn should wait; `has_more` is
    /// whether further datagrams wait already.
    pub fn handle_turn(&mut self, now: Instant, received: usize, has_more: bool) -> bool {
        self.count += received;
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= WINDOW {
            self.is_high = self.count as f64 >= MIN_RATE * elapsed.as_secs_f64();
            self.since = now;
            self.count = 0;
        }
        self.is_high && received > 0 && !has_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives at a rate for some time; returns the number of turns, and of those that are followed by a pause.
    fn run(moderation: &mut ReceiveModeration, now: &mut Instant, per_second: f64, seconds: f64) -> (usize, usize) {
        const TURN: Duration = Duration::from_micros(5);
        const PAUSE: Duration = Duration::from_micros(100);
        let end = *now + Duration::from_secs_f64(seconds);
        let mut turns = 0;
        let mut pauses = 0;
        let mut waiting = 0.0;
        while *now < end {
            let received = waiting as usize;
            waiting -= received as f64;
            let is_paused = moderation.handle_turn(*now, received, false);
            let until_next = Duration::from_secs_f64((1.0 - waiting) / per_second);
            let elapsed = TURN.max(until_next).max(if is_paused { PAUSE } else { TURN });
            waiting += elapsed.as_secs_f64() * per_second + 1e-9;
            *now += elapsed;
            turns += 1;
            pauses += usize::from(is_paused);
        }
        (turns, pauses)
    }

    #[test]
    fn a_flood_is_received_in_fewer_turns_and_ordinary_traffic_without_pauses() {
        let mut now = Instant::now();
        let mut moderation = ReceiveModeration::new(now);
        assert_eq!(run(&mut moderation, &mut now, 10_000.0, 1.0).1, 0);
        let (turns, _) = run(&mut moderation, &mut now, 600_000.0, 1.0);
        assert!(turns < 11_000, "{turns} turns for 600,000 datagrams");
        let (_, pauses) = run(&mut moderation, &mut now, 10_000.0, 1.0);
        assert!(pauses < 100, "{pauses} pauses after the flood has ended");
    }

    #[test]
    fn datagrams_that_arrive_together_are_no_flood() {
        let start = Instant::now();
        let mut moderation = ReceiveModeration::new(start);
        for second in 1..100 {
            assert!(!moderation.handle_turn(start + Duration::from_secs(second), 100, false));
            assert!(!moderation.handle_turn(start + Duration::from_secs(second), 0, false));
        }
    }

    #[test]
    fn what_has_arrived_is_received_at_once() {
        let start = Instant::now();
        let mut moderation = ReceiveModeration::new(start);
        let at = |turn: u32| start + WINDOW * turn;
        moderation.handle_turn(at(1), 128, true);
        assert!(!moderation.handle_turn(at(2), 128, true), "a full batch");
        assert!(moderation.handle_turn(at(3), 100, false));
        assert!(!moderation.handle_turn(at(3), 0, false), "nothing: the loop waits for the next datagram");
    }
}
