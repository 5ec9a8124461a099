//! A flow that comes when others have filled the queue (W73).

use crate::connection::rtt::RttEstimator;
use std::time::Duration;

/// A flow that came when others had filled the queue, which shows when the queue becomes shorter than it ever was, shrinks as
/// little at this many further events, if its window is larger than this in bytes and its path longer than this: there a share takes
/// minutes to grow. With a higher rate of random loss than this, losses do not tell when the queue is full.
const LATECOMER_EVENTS: u8 = 6;
const LATECOMER_WINDOW: f64 = 100_000.0;
const LATECOMER_DELAY: Duration = Duration::from_millis(25);
const MAX_LATECOMER_LOSS: f64 = 0.005;

/// Recognises a flow that came when others had filled the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latecomer {
    /// The shortest delay of the first rounds.
    first_base: Option<Duration>,
    /// Number of further events that shrink its window only a little.
    events: u8,
}

impl Default for Latecomer {
    fn default() -> Self {
        Self { first_base: None, events: LATECOMER_EVENTS }
    }
}

impl Latecomer {
    pub fn on_round(&mut self, is_in_slow_start: bool, rtt: &RttEstimator) {
        if is_in_slow_start || self.first_base.is_none() {
            self.first_base = Some(self.first_base.map_or(rtt.base(), |first| first.min(rtt.base())));
        }
    }

    /// Whether this event shrinks the window of a flow that came late only a little. `loss` is the share that is lost at random.
    pub fn shrinks_little(&mut self, used: f64, loss: f64, rtt: &RttEstimator) -> bool {
        // Where round trips wait for frames, or losses are random, the delay says less about others.
        let is_clear = rtt.frame_delay().is_zero() && loss < MAX_LATECOMER_LOSS;
        let is_late = is_clear && self.first_base.is_some_and(|first| rtt.base() + first / 16 < first);
        let is_large = used > LATECOMER_WINDOW && rtt.base() > LATECOMER_DELAY;
        let is_latecomer = is_late && is_large && self.events > 0;
        self.events -= u8::from(is_latecomer);
        is_latecomer
    }
}
