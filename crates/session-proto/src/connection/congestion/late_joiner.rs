//! Detects a flow that joined while other flows had already filled the bottleneck queue (W73).
//!
//! It shows when the queue becomes shorter than it ever was for this flow. Such a flow shrinks its window less at its first
//! congestion events: on a long and fast path, its share would take minutes to grow.

use crate::connection::rtt::RttEstimator;
use std::time::Duration;

/// Congestion events at which a late joiner shrinks only to `FIRST_FACTOR`.
const MILD_EVENTS: u8 = 6;
/// Window in bytes below which the rule does not apply: a small share grows quickly.
const MIN_WINDOW: f64 = 100_000.0;
/// Path delay below which it does not apply: CUBIC converges quickly there.
const MIN_DELAY: Duration = Duration::from_millis(25);
/// Random loss rate above which losses no longer indicate a full queue.
const MAX_LOSS: f64 = 0.005;
/// Part of the first delay by which the delay has to become shorter.
const MIN_DECREASE: u32 = 16;

/// Detects a flow that joined while others had filled the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateJoiner {
    /// The shortest delay of the first rounds.
    first_base: Option<Duration>,
    /// Remaining number of events at which its window shrinks only a little.
    events: u8,
}

impl Default for LateJoiner {
    fn default() -> Self {
        Self { first_base: None, events: MILD_EVENTS }
    }
}

impl LateJoiner {
    pub fn on_round(&mut self, is_in_slow_start: bool, rtt: &RttEstimator) {
        if is_in_slow_start || self.first_base.is_none() {
            self.first_base = Some(self.first_base.map_or(rtt.base(), |first| first.min(rtt.base())));
        }
    }

    /// Whether a congestion event shrinks the window only a little, because this flow joined late. Each such event counts. `loss`
    /// is the share that is lost at random.
    pub fn take_mild_decrease(&mut self, used: f64, loss: f64, rtt: &RttEstimator) -> bool {
        // Where round trips wait for frames, or losses are random, the delay says less about others.
        let is_clear = rtt.frame_delay().is_zero() && loss < MAX_LOSS;
        let is_late = is_clear && self.first_base.is_some_and(|first| rtt.base() + first / MIN_DECREASE < first);
        let is_large = used > MIN_WINDOW && rtt.base() > MIN_DELAY;
        let is_mild = is_late && is_large && self.events > 0;
        self.events -= u8::from(is_mild);
        is_mild
    }
}
