//! Lets games that have fallen behind catch up without filling the queue (W123).
//!
//! When a link that many players share has been slow for a while, each of them has a backlog. Their congestion windows together
//! fill the queue until it overflows, and chance decides what is lost: some players catch up at once, and others fall further
//! behind because they wait for what was lost. So such a stream limits its bytes in flight by delay (like FAST TCP): to what the path
//! holds without a queue, and a few datagrams in the queue. The longer the backlog, the more those are, and the larger the
//! share of the link, so that all players catch up at the same time, and nothing is lost.
//!
//! Other traffic that fills the queue would take the whole link from a stream that gives way to delay. That shows by a backlog
//! that grows in spite of the limit, or because of it: then the limit is lifted for a while.

use super::rtt::RttEstimator;
use std::time::{Duration, Instant};

/// Smallest backlog that is limited, in messages.
const MIN_BACKLOG: usize = 32;

/// Number of bytes in the queue that the limit aims at, and that number for each message that waits, up to `MAX_COUNTED`.
const QUEUED: f64 = 448.0;
const QUEUED_PER_MESSAGE: f64 = 6.0;
const MAX_COUNTED: usize = 128;

/// Smallest limit in bytes: a datagram.
const MIN_LIMIT: f64 = 508.0;

/// The part of the difference to its target by which the limit changes per round trip.
const GAIN: f64 = 0.5;

/// Number of messages by which the backlog may grow under the limit, and for how long the limit is lifted after that: twice as
/// long each time, until the backlog is gone.
const MAX_INCREASE: usize = 32;
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Limits the bytes in flight of a game that has fallen behind.
#[derive(Debug, Default)]
pub(crate) struct DelayLimit {
    /// Maximum number of bytes in flight, while there is a limit.
    limit: Option<f64>,
    /// The shortest backlog since the limit was set.
    min_backlog: usize,
    paused_until: Option<Instant>,
    pause: Duration,
}

impl DelayLimit {
    /// `bytes` of the `in_flight` bytes are acked, and `backlog` messages of a game wait for the window or the pacer; `None` if
    /// that is no game, or too many wait to catch up soon.
    pub fn on_ack(&mut self, now: Instant, bytes: u64, in_flight: u64, backlog: Option<usize>, rtt: &RttEstimator) {
        let Some(backlog) = backlog else {
            self.limit = None;
            return;
        };
        if backlog == 0 {
            self.limit = None;
            self.pause = Duration::ZERO;
            return;
        }
        if self.paused_until.is_some_and(|until| now < until) {
            return;
        }
        let base = rtt.base().as_secs_f64();
        let held = base / (base + rtt.last_excess_delay().as_secs_f64()).max(f64::MIN_POSITIVE);
        let queued = QUEUED + QUEUED_PER_MESSAGE * backlog.min(MAX_COUNTED) as f64;
        let Some(limit) = self.limit else {
            if rtt.has_new_thin_queue() && backlog >= MIN_BACKLOG {
                self.min_backlog = backlog;
                self.limit = Some((in_flight as f64 * held + queued).max(MIN_LIMIT));
            }
            return;
        };
        if rtt.has_no_thin_queue() {
            // The link is free again, or what was lost was not lost in a queue.
            self.limit = None;
            return;
        }
        self.min_backlog = self.min_backlog.min(backlog);
        if backlog > self.min_backlog + MAX_INCREASE {
            self.pause = (2 * self.pause).clamp(MIN_PAUSE, MAX_PAUSE);
            self.paused_until = Some(now + self.pause);
            self.limit = None;
            return;
        }
        let target = limit * held + queued;
        let share = (bytes as f64 / limit).min(1.0);
        self.limit = Some((limit + (target - limit) * GAIN * share).max(MIN_LIMIT));
    }

    /// The smaller one of the limit and the congestion window.
    pub fn apply(&self, window: u64) -> u64 {
        self.limit.map_or(window, |limit| window.min(limit as u64))
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
            limit.on_ack(now, 500, 10_000, Some(40), &rtt);
            assert!(limit.apply(100_000) < 10_000);
            // A backlog that has become too long for a moment does not make the next pause short again.
            limit.on_ack(now, 500, 10_000, None, &rtt);
            limit.on_ack(now, 500, 10_000, Some(40), &rtt);
            limit.on_ack(now, 500, 10_000, Some(73), &rtt);
            assert_eq!(limit.apply(100_000), 100_000);
            now += Duration::from_secs(pause);
            limit.on_ack(now - Duration::from_millis(1), 500, 10_000, Some(73), &rtt);
            assert_eq!(limit.apply(100_000), 100_000, "still lifted");
        }
    }
}
