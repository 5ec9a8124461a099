//! How the congestion window shrinks: which losses are congestion, and by how much they reduce the window.

use super::{
    CongestionController, DECREASE_FACTOR, HEAVY_LOSS_FACTOR, LossEvent, MIN_WINDOW, SMALL_WINDOW, is_queue_short,
};
use crate::connection::rtt::RttEstimator;

/// Factor of a small window with a short backlog of a single message.
const SINGLE_MESSAGE_FACTOR: f64 = 0.5;

/// Factor of a small window with a short backlog of `LONG_BACKLOG` messages or more.
const LONG_BACKLOG_FACTOR: f64 = 0.9;

/// Number of messages from which on a short backlog counts as long.
const LONG_BACKLOG: f64 = 64.0;

/// Smallest factor of a window that is not small: with a queue as long as the path or longer, half of the window fills the
/// path, and a flow that came first gives way to others sooner. With a queue of more than twice the path's delay, that holds
/// for windows of `LARGE_WINDOW` or more that have grown since the last event: one that has shrunk has given way. The factor of
/// smaller ones is the closer to `DECREASE_FACTOR` the smaller they are: one that has just ceased to be small would fall back
/// each time.
const LONG_QUEUE_FACTOR: f64 = 0.5;

/// Window in bytes from which on it is large.
const LARGE_WINDOW: f64 = 128_000.0;

/// Factor applied to the window at the first congestion event after slow start. It is large, so that flows that filled the path
/// before have to give way as well.
const FIRST_FACTOR: f64 = 0.85;

/// Largest factor: the window shrinks by at least a tenth, so that a short queue drains. Otherwise it does not shrink below
/// what the path holds at the measured rate without a queue: a lone flow need not leave a part of the path unused.
const MAX_FACTOR: f64 = 0.9;

/// Window in bytes below which a loss counts as congestion also without a queue, if the delay varies: it may be that of one of many
/// flows, as with every small window.
const AMBIGUOUS_WINDOW: f64 = SMALL_WINDOW;

/// Number of rounds for which that holds. If the delay turns out to be constant, slow start continues.
const DOUBT_ROUNDS: u64 = 16;

/// Share of the window from which on its loss is heavy.
const HEAVY_LOSS: f64 = 0.3;

/// The state before the last congestion event, to return to if all its losses were late acks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    window: f64,
    threshold: f64,
    max_window: f64,
    /// Number of losses that have not turned out to be late acks.
    losses: u32,
    /// The part of the window that was in use, and how many bytes of it are lost.
    used: f64,
    lost_bytes: u64,
}

impl Undo {
    /// Whether a large part of the window is lost.
    fn is_heavy(&self) -> bool {
        self.lost_bytes as f64 > HEAVY_LOSS * self.used
    }
}

impl CongestionController {
    /// Datagrams are lost.
    pub fn on_losses(&mut self, event: LossEvent, rtt: &RttEstimator) {
        if event.newest_order < self.path_start {
            return;
        }
        self.losses.lost += if event.has_timed_out { 0 } else { event.datagrams };
        self.rounds.lost_in = self.delivery.round();
        if event.newest_order < self.recovery_end {
            return self.on_further_losses(event, rtt);
        }
        let has_queue = if self.limited.is_limited { rtt.has_queue() } else { rtt.has_thin_queue() };
        if event.is_silent {
            // The window is reduced when the silence ends.
            return self.losses.discard_sample();
        }
        let is_doubtful = self.limited.is_limited
            && self.delivery.round() < DOUBT_ROUNDS
            && self.window < AMBIGUOUS_WINDOW
            && rtt.is_delay_constant() != Some(true);
        let is_certain = has_queue || self.losses.is_heavy(self.used_window());
        if is_certain || is_doubtful {
            let event = self.doubt.undecided.take().map_or(event, |earlier| earlier.merged_with(event));
            if !is_certain && rtt.is_delay_constant_so_far() {
                self.doubt.undecided = Some(event);
            } else {
                self.on_congestion(event, is_doubtful && !has_queue, rtt);
            }
        }
    }

    fn on_congestion(&mut self, event: LossEvent, is_doubtful: bool, rtt: &RttEstimator) {
        self.recovery_end = event.next_order;
        self.doubt.is_slow_start_exit_uncertain =
            is_doubtful && (self.threshold.is_infinite() || self.doubt.is_slow_start_exit_uncertain);
        self.reduce(event, rtt);
    }

    /// Decides about losses as soon as it is known whether the delay is constant. Until then the window neither grows nor shrinks,
    /// because a round trip with a smaller one would cost a download on a lossy path as much as a round trip of slow start.
    pub(super) fn decide_losses(&mut self, rtt: &RttEstimator) {
        let Some(event) = self.doubt.undecided else { return };
        let is_random = rtt.is_delay_constant() == Some(true) || rtt.is_delay_constant_with_enough_samples();
        if self.delivery.round() < DOUBT_ROUNDS && !is_random {
            if rtt.is_delay_constant().is_none() && rtt.is_delay_constant_so_far() {
                return;
            }
            self.on_congestion(event, !rtt.has_queue(), rtt);
        }
        self.doubt.undecided = None;
    }

    /// Further losses of the window that the last congestion event reduced. The first losses alone do not show how far the window
    /// exceeded the path. If it is uncertain whether there is a queue, the window is limited to what arrived.
    fn on_further_losses(&mut self, event: LossEvent, rtt: &RttEstimator) {
        let Some(undo) = &mut self.undo else { return };
        let was_heavy = undo.is_heavy();
        undo.losses += event.datagrams;
        undo.lost_bytes += if event.is_silent || event.is_requested { 0 } else { event.bytes };
        let is_new = !was_heavy && rtt.has_queue();
        if undo.is_heavy() && (is_new || self.doubt.is_slow_start_exit_uncertain) {
            let arrived = if self.doubt.is_slow_start_exit_uncertain {
                undo.used - undo.lost_bytes as f64
            } else {
                f64::INFINITY
            };
            self.window = self.window.min(HEAVY_LOSS_FACTOR * undo.used).min(arrived).max(MIN_WINDOW);
            self.threshold = self.threshold.min(self.window);
            self.epoch = None;
        }
    }

    /// A datagram that counted as lost was only late.
    pub fn on_spurious_loss(&mut self) {
        let Some(undo) = &mut self.undo else { return };
        undo.losses = undo.losses.saturating_sub(1);
        if undo.losses == 0 {
            self.window = self.window.max(undo.window);
            self.threshold = self.threshold.max(undo.threshold);
            self.max_window = self.max_window.max(undo.max_window);
            self.epoch = None;
            self.undo = None;
        }
    }

    /// Factor of a small window. Of several streams that have fallen behind, those with few messages left give way (W81).
    fn small_factor(&self) -> f64 {
        if self.limited.backlog <= 0.0 {
            return DECREASE_FACTOR;
        }
        let share = (self.limited.backlog / LONG_BACKLOG).min(1.0);
        SINGLE_MESSAGE_FACTOR + (LONG_BACKLOG_FACTOR - SINGLE_MESSAGE_FACTOR) * share
    }

    /// Smallest factor of a window that is not small.
    fn long_queue_factor(&self, used: f64, rtt: &RttEstimator) -> f64 {
        if rtt.excess_delay() <= 2 * rtt.base() {
            return LONG_QUEUE_FACTOR;
        }
        let largeness = ((used - SMALL_WINDOW) / (LARGE_WINDOW - SMALL_WINDOW)).clamp(0.0, 1.0);
        let is_shrinking = used < self.max_window;
        if is_shrinking { DECREASE_FACTOR } else { DECREASE_FACTOR + (LONG_QUEUE_FACTOR - DECREASE_FACTOR) * largeness }
    }

    fn reduce(&mut self, event: LossEvent, rtt: &RttEstimator) {
        let used = self.used_window();
        let undo = Undo {
            window: self.window,
            threshold: self.threshold,
            max_window: self.max_window,
            losses: event.datagrams,
            used,
            lost_bytes: event.bytes,
        };
        self.undo = Some(undo);
        let is_first = self.delivery.round() < self.rounds.conservative_until;
        let is_mild = !is_first && self.late_joiner.take_mild_decrease(used, self.losses.min_rate(), rtt);
        let factor = if undo.is_heavy() {
            HEAVY_LOSS_FACTOR
        } else if used < SMALL_WINDOW {
            self.small_factor()
        } else if is_first || is_mild {
            FIRST_FACTOR
        } else {
            // Messages that are lost at random are in flight as well.
            let bdp = self.delivery.last_rate() * rtt.base().as_secs_f64() / (1.0 - self.losses.min_rate());
            (bdp / used).clamp(self.long_queue_factor(used, rtt), MAX_FACTOR)
        };
        self.has_short_queue = used > SMALL_WINDOW && is_queue_short(rtt);
        self.follows_slow_start = self.threshold.is_infinite() || self.rounds.conservative_until > 0;
        // Fast convergence: a flow whose share shrinks releases more of it.
        let is_shrinking = used < self.max_window && !is_mild;
        self.max_window = if is_shrinking { used * (1.0 + DECREASE_FACTOR) / 2.0 } else { used };
        self.window = (factor * used).max(MIN_WINDOW);
        self.threshold = self.window;
        self.epoch = None;
        self.trial = None;
        self.rounds.conservative_until = 0;
        self.rounds.reduced_in = self.delivery.round();
    }
}
