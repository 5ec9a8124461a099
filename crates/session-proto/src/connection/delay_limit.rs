//! Lets games that have fallen behind catch up without filling the queue (W123).
//!
//! When a link that many players share has been slow for a while, each of them has a backlog. Their congestion windows together
//! fill the queue until it overflows, and chance decides what is lost: some players catch up at once, and others fall further
//! behind because they wait for what was lost. So such a stream limits its bytes in flight by delay (like FAST TCP): to what
//! the path holds without a queue, and a few datagrams in the queue. The longer the backlog, the more those are, and the larger
//! the share of the link, so that all players catch up at the same time, and nothing is lost.
//!
//! Other traffic that fills the queue would take the whole link from a stream that gives way to delay. That shows by a backlog
//! that grows in spite of the limit, or because of it, while the queue stays as long as it was: then the limit is lifted for a
//! while. If the queue has become shorter, the link itself is slow, and the limit does what it is for.

use super::rtt::{RttEstimator, SLOW_LINK_DELAY};
use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::{Duration, Instant};

/// Smallest backlog that is limited, in messages.
const MIN_BACKLOG: usize = 32;

/// The same where the queue delays by more than `SLOW_LINK_DELAY`, longer than queues of a link at its usual rate are: it has
/// become slower, and players who are hardly behind keep the queue full for the others.
const SLOW_LINK_BACKLOG: usize = 4;

/// Number of bytes in the queue that the limit aims at.
const QUEUED: f64 = 448.0;

/// The same where the peer sends a game as well: a round trip passes two queues, and acks arrive in groups because they wait
/// between its messages. With as few bytes as one way needs, both queues would be empty at times, and a link with 86 % load
/// would never catch up.
const QUEUED_TWO_WAY: f64 = 1_200.0;

/// Number of bytes in the queue for each message that waits.
const QUEUED_PER_MESSAGE: f64 = 6.0;

/// Maximum number of messages that count for that.
const MAX_COUNTED: usize = 128;

/// Smallest limit in bytes: a datagram.
const MIN_LIMIT: f64 = MAX_DATAGRAM as f64;

/// Part of the difference to its target by which the limit changes per round trip.
const GAIN: f64 = 0.5;

/// Target of the limit while there is no queue, relative to the limit. It is not lifted at once: the players of a link see the
/// end of the queue at the same time.
const QUEUELESS_TARGET: f64 = 2.0;

/// Number of messages by which the backlog may grow under the limit while the queue is full.
const MAX_INCREASE: usize = 32;

/// Share of the longest queueing delay since messages wait, from which on the queue counts as full.
const FULL_QUEUE: f64 = 0.875;

/// For how long the limit is lifted after that the first time: twice as long each time, until the backlog is gone.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// For how long it is lifted at most.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Limits the bytes in flight of a game that has fallen behind.
#[derive(Debug, Default)]
pub(crate) struct DelayLimit {
    /// Maximum number of bytes in flight, while there is a limit.
    limit: Option<f64>,
    /// The shortest backlog since the limit was set.
    min_backlog: usize,
    /// The longest excess delay since messages wait.
    max_delay: Duration,
    paused_until: Option<Instant>,
    pause: Duration,
    /// Whether the first of two messages that are sent together is sent.
    is_pair_open: bool,
}

impl DelayLimit {
    /// `bytes` of the `in_flight` bytes are acked, and `backlog` messages of a game wait for the window or the pacer; `None` if
    /// that is no game, or too many wait to catch up soon. `is_two_way`: the peer sends messages as well.
    pub fn on_ack(
        &mut self,
        now: Instant,
        bytes: u64,
        in_flight: u64,
        backlog: Option<usize>,
        is_two_way: bool,
        rtt: &RttEstimator,
    ) {
        let Some(backlog) = backlog else {
            self.limit = None;
            return;
        };
        if backlog == 0 {
            *self = Self { paused_until: self.paused_until, ..Self::default() };
            return;
        }
        // The last samples alone may be those of acks that were late for another reason.
        let delay = rtt.last_excess_delay().min(rtt.excess_delay());
        self.max_delay = self.max_delay.max(delay);
        if self.paused_until.is_some_and(|until| now < until) {
            return;
        }
        let base = rtt.base().as_secs_f64();
        let base_share = base / (base + rtt.last_excess_delay().as_secs_f64()).max(f64::MIN_POSITIVE);
        let queued = if is_two_way { QUEUED_TWO_WAY } else { QUEUED };
        let queued = queued + QUEUED_PER_MESSAGE * backlog.min(MAX_COUNTED) as f64;
        let Some(limit) = self.limit else {
            let min_backlog = if delay > SLOW_LINK_DELAY { SLOW_LINK_BACKLOG } else { MIN_BACKLOG };
            if rtt.has_new_thin_queue() && backlog >= min_backlog {
                self.set(in_flight as f64 * base_share + queued, backlog);
            }
            return;
        };
        self.min_backlog = self.min_backlog.min(backlog);
        if backlog > self.min_backlog + MAX_INCREASE && delay >= self.max_delay.mul_f64(FULL_QUEUE) {
            self.pause = (2 * self.pause).clamp(MIN_PAUSE, MAX_PAUSE);
            self.paused_until = Some(now + self.pause);
            self.limit = None;
            return;
        }
        let target = if rtt.has_no_thin_queue() { QUEUELESS_TARGET * limit } else { limit * base_share + queued };
        let share = (bytes as f64 / limit).min(1.0);
        self.limit = Some((limit + (target - limit) * GAIN * share).max(MIN_LIMIT));
    }

    /// A silence ends that began with a full queue, which all players of the link would fill again at the same time.
    pub fn on_silence_end(&mut self, backlog: usize) {
        if backlog > 0 {
            self.set(MIN_LIMIT, backlog);
        }
    }

    /// There is no limit until the next ack that shows a queue.
    pub fn lift(&mut self) {
        self.limit = None;
    }

    pub fn is_set(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether a message of `len` bytes may be sent. Two are sent together: then they share an ack, which does not wait for
    /// another message, and a round trip shows the queue alone.
    pub fn admits(&self, in_flight: u64, len: u64) -> bool {
        let together = if self.is_pair_open { len } else { 2 * len };
        in_flight == 0 || self.limit.is_none_or(|limit| in_flight + together <= limit as u64)
    }

    /// A message is sent.
    pub fn on_send(&mut self) {
        self.is_pair_open = self.limit.is_some() && !self.is_pair_open;
    }

    fn set(&mut self, limit: f64, backlog: usize) {
        self.min_backlog = backlog;
        self.limit = Some(limit.max(MIN_LIMIT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w123_the_limit_is_lifted_for_twice_as_long_each_time_the_backlog_grows_under_it() {
        let mut now = Instant::now();
        let mut rtt = RttEstimator::new();
        (0..32).for_each(|_| rtt.sample(now, Duration::from_millis(50)));
        (0..3).for_each(|_| rtt.sample(now, Duration::from_millis(150)));
        let mut limit = DelayLimit::default();
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            limit.on_ack(now, 500, 10_000, Some(40), false, &rtt);
            assert!(!limit.admits(10_000, 1));
            // A backlog that has become too long for a moment does not make the next pause short again.
            limit.on_ack(now, 500, 10_000, None, false, &rtt);
            limit.on_ack(now, 500, 10_000, Some(40), false, &rtt);
            limit.on_ack(now, 500, 10_000, Some(73), false, &rtt);
            assert!(limit.admits(100_000, 1));
            now += Duration::from_secs(pause);
            limit.on_ack(now - Duration::from_millis(1), 500, 10_000, Some(73), false, &rtt);
            assert!(limit.admits(100_000, 1), "still lifted");
        }
    }

    #[test]
    fn w123_the_limit_stays_while_the_backlog_grows_if_it_shortens_the_queue() {
        let mut now = Instant::now();
        let mut rtt = RttEstimator::new();
        let mut sample = |rtt: &mut RttEstimator, ms: u64| {
            for _ in 0..16 {
                now += Duration::from_millis(10);
                rtt.sample(now, Duration::from_millis(ms));
            }
            now
        };
        sample(&mut rtt, 50);
        let mut limit = DelayLimit::default();
        limit.on_ack(sample(&mut rtt, 350), 500, 10_000, Some(4), false, &rtt);
        assert!(!limit.admits(10_000, 1), "the link is slow");
        limit.on_ack(sample(&mut rtt, 250), 500, 10_000, Some(100), false, &rtt);
        assert!(!limit.admits(10_000, 1), "the queue has become shorter");
        limit.on_ack(sample(&mut rtt, 350), 500, 10_000, Some(100), false, &rtt);
        assert!(limit.admits(10_000, 1), "other traffic fills the queue");
    }

    #[test]
    fn w123_messages_are_sent_in_pairs_under_the_limit() {
        let mut limit = DelayLimit::default();
        limit.on_silence_end(10);
        assert!(limit.admits(0, 200), "the first");
        limit.on_send();
        assert!(limit.admits(200, 200), "the second");
        limit.on_send();
        assert!(!limit.admits(200, 200), "there is room for one, but not for two");
    }
}
