//! How the congestion window grows: slow start, the cubic function of RFC 9438, and faster where the path is evidently free.

use super::{CongestionController, DECREASE_FACTOR, Epoch, MIN_IN_FLIGHT, SMALL_WINDOW, is_queue_short};
use crate::connection::rtt::RttEstimator;
use std::time::{Duration, Instant};

/// Segment size in bytes for window growth. A large one lets a flow that comes second catch up; a small one lets a flow that
/// came first give way.
const SEGMENT: f64 = 3_000.0;

/// Segment size when the queue at the last congestion event was short.
const SHORT_QUEUE_SEGMENT: f64 = 2_000.0;

/// Segment size while the queue delays longer than the path itself.
const LONG_QUEUE_SEGMENT: f64 = 1_000.0;

/// Scale of the cubic function in segments per cubed second (RFC 9438).
const CUBIC_SCALE: f64 = 0.4;

/// Growth in segments per round trip that makes a flow with such a decrease as fast as Reno (RFC 9438).
const RENO_GROWTH: f64 = 3.0 * (1.0 - DECREASE_FACTOR) / (1.0 + DECREASE_FACTOR);

/// Largest growth per round trip outside of slow start, as a share of the window.
const MAX_GROWTH: f64 = 1.0 / 8.0;

/// The same for small windows: there a whole segment per round trip would overflow the queue again at once.
const MAX_SMALL_GROWTH: f64 = 1.0 / 32.0;

/// Round-trip time in seconds from which on it is still less, in proportion: a long queue before a slow path notifies late.
const LONG_RTT: f64 = 0.1;

/// Number of rounds without a loss after which the growth of a small window is less limited, the less the more rounds there are:
/// where many flows share a slow path, each of them loses something sooner. Windows of less than `MIN_IN_FLIGHT` are always
/// those of many flows.
const CROWDED_ROUNDS: f64 = 8.0;

/// Growth per round trip that is always allowed, in bytes.
const MIN_GROWTH: f64 = 24.0;

/// Number of messages of a short backlog that allow as much again, so that streams that have fallen behind catch up together (W77).
const BACKLOG_GROWTH: f64 = 8.0;

/// Limits of the queueing delay at which slow start ends: an eighth of the path's delay (RFC 9406).
const SLOW_START_QUEUE: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];

/// Growth of a small window in slow start per acked byte while there is no queue at all.
const FREE_SLOW_START: f64 = 1.5;

/// The same once the window is no longer small: a path that carries as much is not shared by many.
const FAST_SLOW_START: f64 = 3.0;

/// Excess delay below which there is no queue at all.
const NO_QUEUE: Duration = Duration::from_micros(500);

/// Number of rounds of conservative slow start. After slow start has ended because of a queue, the window still grows by a
/// quarter in each of them, until something is lost: the queue may be that of others, who would keep the path to themselves.
const CONSERVATIVE_ROUNDS: u64 = 10;

/// Growth per round trip in conservative slow start.
const CONSERVATIVE_GROWTH: f64 = 1.0 / 4.0;

/// After the first congestion event the cubic function is this many seconds ahead. That event shows the window
/// at which slow start met a full queue, which others may have filled, and not the share of the path: a flow that comes second
/// would stay there for seconds, and let the others take what they have just released.
const HEAD_START: f64 = 3.0;

/// Growth per round trip while the path is evidently free, as a share of the window.
const QUEUELESS_GROWTH: f64 = 1.0 / 4.0;

/// Number of rounds without a queue after which it is, up to `QUEUELESS_LIMIT`: there is room on the path.
const QUEUELESS_ROUNDS: u32 = 3;

/// The window up to which that holds, relative to that at the last congestion event.
const QUEUELESS_LIMIT: f64 = 0.95;

/// Number of rounds without a queue after which the path has become faster than it was at the last congestion event.
const FREE_ROUNDS: u32 = 8;

/// The same for a small window with losses, which may be one of many on a path whose queue none of them knows to be full.
const LOSSY_FREE_ROUNDS: u32 = 12;

impl CongestionController {
    pub(super) fn grow(&mut self, now: Instant, acked: f64, rtt: &RttEstimator) {
        if self.doubt.is_slow_start_exit_uncertain && rtt.is_delay_constant() == Some(true) {
            self.doubt.is_slow_start_exit_uncertain = false;
            self.threshold = f64::INFINITY;
        }
        if self.is_in_slow_start() {
            let [min, max] = SLOW_START_QUEUE;
            if rtt.excess_delay() > (rtt.base() / 8).clamp(min, max) {
                self.end_slow_start();
                self.rounds.conservative_until = self.delivery.round() + CONSERVATIVE_ROUNDS;
            } else if self.trial.is_some() {
                return;
            } else {
                // Without any queue, faster than doubling.
                self.window += acked
                    * if rtt.excess_delay() >= NO_QUEUE {
                        1.0
                    } else if self.window < SMALL_WINDOW {
                        FREE_SLOW_START
                    } else {
                        FAST_SLOW_START
                    };
                return;
            }
        }
        let segment = if rtt.excess_delay() > rtt.base() {
            LONG_QUEUE_SEGMENT
        } else if self.has_short_queue {
            SHORT_QUEUE_SEGMENT
        } else {
            SEGMENT
        };
        let window = self.window;
        let max_window = &mut self.max_window;
        let epoch = self.epoch.get_or_insert_with(|| {
            *max_window = max_window.max(window);
            let k = ((*max_window - window) / (CUBIC_SCALE * segment)).cbrt();
            let head_start = if self.follows_slow_start { HEAD_START } else { 0.0 };
            Epoch { start: now, k: k - head_start, reno_window: window }
        });
        let time = (now.saturating_duration_since(epoch.start) + rtt.smoothed()).as_secs_f64() - epoch.k;
        let target = CUBIC_SCALE * segment * time * time * time + self.max_window;
        epoch.reno_window += RENO_GROWTH * segment * acked / window;
        let per_round = (target - window).max(epoch.reno_window - window).max(0.0);
        let per_round = if self.delivery.round() < self.rounds.conservative_until && is_queue_short(rtt) {
            CONSERVATIVE_GROWTH * window
        } else if self.is_path_free(rtt) {
            QUEUELESS_GROWTH * window
        } else {
            let small = MAX_SMALL_GROWTH
                * (LONG_RTT / rtt.smoothed_secs()).min(1.0)
                * (self.lossless_rounds() / CROWDED_ROUNDS).max(1.0);
            let is_small = window < SMALL_WINDOW && rtt.has_queue();
            let min = MIN_GROWTH * (1.0 + self.limited.backlog / BACKLOG_GROWTH);
            per_round.min((window * if is_small { small.min(MAX_GROWTH) } else { MAX_GROWTH }).max(min))
        };
        self.window += per_round * acked / window;
    }

    /// Number of rounds since the last loss, zero if the window is very small.
    fn lossless_rounds(&self) -> f64 {
        let rounds = self.delivery.round().saturating_sub(self.rounds.lost_in.max(self.rounds.reduced_in));
        if self.window < MIN_IN_FLIGHT { 0.0 } else { rounds as f64 }
    }

    /// Whether there is room on the path.
    fn is_path_free(&self, rtt: &RttEstimator) -> bool {
        let is_lossy = self.window < SMALL_WINDOW
            && self.delivery.round() < self.rounds.lost_in + u64::from(FREE_ROUNDS)
            && rtt.is_delay_constant() != Some(true);
        let rounds = if is_lossy {
            LOSSY_FREE_ROUNDS
        } else if self.window < QUEUELESS_LIMIT * self.max_window {
            QUEUELESS_ROUNDS
        } else {
            FREE_ROUNDS
        };
        self.rounds.queueless >= rounds
    }

    pub(super) fn end_slow_start(&mut self) {
        self.threshold = self.window;
        self.max_window = self.window;
        self.epoch = None;
        self.trial = None;
    }
}
