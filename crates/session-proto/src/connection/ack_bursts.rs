//! How long the peer holds acks back (W80).
//!
//! A peer in a game loop receives once per frame. What it receives in between waits for the frame, and is then acked all at
//! once. To the sender this wait looks like a queue of the path. It shows in messages that were sent one after the other and are
//! acked at the same moment: the first has waited longer than the last by the time between their transmissions.

use std::time::{Duration, Instant};

/// Acks that arrive within this time are one burst.
const BURST: Duration = Duration::from_millis(1);

/// Minimum number of messages in a burst that is informative: a peer that acks at once names two.
const MIN_MESSAGES: u32 = 3;

/// Number of bursts over which the shortest hold time is taken, twice that at most: acks that pile up behind something else on
/// their way do so now and then, those of a game loop always.
const BURSTS: u8 = 8;

/// Longest time that counts as waiting for a frame.
const MAX_HOLD_TIME: Duration = Duration::from_millis(25);

/// Bursts of acks.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckBursts {
    since: Option<Instant>,
    /// The shortest and the longest round-trip time of the current burst, and its number of messages.
    shortest: Duration,
    longest: Duration,
    messages: u32,
    /// The shortest hold time of the last complete [`BURSTS`], and of those since.
    hold_times: [Duration; 2],
    count: u8,
}

impl Default for AckBursts {
    fn default() -> Self {
        Self {
            since: None,
            shortest: Duration::MAX,
            longest: Duration::ZERO,
            messages: 0,
            hold_times: [Duration::ZERO, Duration::MAX],
            count: 0,
        }
    }
}

impl AckBursts {
    /// An ack of a number of messages arrives; these are the round-trip times of the last and the first of them. Returns true
    /// if a burst begins.
    pub fn on_ack(&mut self, now: Instant, shortest: Duration, longest: Duration, messages: u32) -> bool {
        let is_new = self.since.is_none_or(|since| now.saturating_duration_since(since) >= BURST);
        if is_new {
            self.end_burst();
            self.since = Some(now);
            self.shortest = shortest;
            self.longest = longest;
            self.messages = messages;
        } else {
            self.shortest = self.shortest.min(shortest);
            self.longest = self.longest.max(longest);
            self.messages += messages;
        }
        is_new
    }

    /// How long the peer lets messages wait before it acks them.
    pub fn hold_time(&self) -> Duration {
        let [before, now] = self.hold_times;
        before.min(now).min(MAX_HOLD_TIME)
    }

    fn end_burst(&mut self) {
        if self.messages < MIN_MESSAGES {
            return;
        }
        self.hold_times[1] = self.hold_times[1].min(self.longest.saturating_sub(self.shortest));
        self.count += 1;
        if self.count >= BURSTS {
            self.hold_times = [self.hold_times[1], Duration::MAX];
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn w80_a_peer_that_acks_once_per_frame_holds_acks_for_a_frame() {
        let start = Instant::now();
        let mut bursts = AckBursts::default();
        for frame in 0..20 {
            // Messages that were sent 36 to 20 ms ago.
            (0..8).for_each(|ack| {
                bursts.on_ack(start + ms(16 * frame), ms(34 - 2 * ack), ms(36 - 2 * ack), 2);
            });
        }
        assert_eq!(bursts.hold_time(), ms(16));
    }

    #[test]
    fn w80_a_peer_that_acks_every_second_message_holds_nothing() {
        let start = Instant::now();
        let mut bursts = AckBursts::default();
        for number in 0..100 {
            bursts.on_ack(start + ms(4 * number), ms(20), ms(22), 2);
        }
        assert_eq!(bursts.hold_time(), ms(0));
        // Acks that pile up now and then change nothing.
        for number in 100..200 {
            let span = if number % 4 == 0 { ms(1) } else { ms(10) };
            bursts.on_ack(start + ms(4 * number), ms(20), ms(20) + span, 4);
        }
        assert_eq!(bursts.hold_time(), ms(1));
    }
}
