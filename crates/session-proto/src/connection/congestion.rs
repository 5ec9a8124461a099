//! Congestion control: CUBIC (RFC 9438), paced, with loss told apart by the delay that comes with it (S26).
//!
//! The networks of players lose datagrams at random, and a window that shrinks with every loss would collapse on them. A
//! queue that overflows, on the other hand, was full a moment before, and everything that passed it was late. So a loss counts
//! as congestion only while the round-trip time shows a queue; then the window shrinks as CUBIC's does, and the flow takes the
//! share that TCP would take in its place. A loss without a queue is random, and changes nothing.
//!
//! Two rules cover what the delay does not show: a queue that is too short to be noticed, or that was full before the flow
//! began. Random loss takes the same share of whatever is sent; a share that has grown is congestion. And a loss that turns
//! out to have been a late ack is undone.

mod delivery_rate;
mod growth;
mod late_joiner;
mod loss_history;
#[cfg(test)]
mod tests;

pub(crate) use delivery_rate::DeliverySnapshot;

use super::{ack_effect::AckedMessage, rtt::RttEstimator};
use delivery_rate::DeliveryRate;
use late_joiner::LateJoiner;
use loss_history::{LossHistory, LossSample};
use std::time::Instant;

/// Window in bytes before anything is measured: 10 datagrams.
pub(crate) const INITIAL_WINDOW: u64 = 5_080;

/// Smallest window in bytes. Many flows on a slow path have less than a datagram each: then the pacer sends one datagram in
/// several round trips.
const MIN_WINDOW: f64 = 254.0;

/// Number of bytes that may always be in flight, four datagrams: with less, a single lost ack would stop a flow until a timeout.
/// The rate of a window that is smaller is limited by the pacer alone.
const MIN_IN_FLIGHT: f64 = 2_032.0;

/// The decrease of RFC 9438.
const DECREASE: f64 = 0.7;

/// The decrease of a small window with a short backlog: of a single message, and of at least `LONG_BACKLOG` messages.
const BACKLOG_DECREASE: [f64; 2] = [0.5, 0.9];
const LONG_BACKLOG: f64 = 64.0;

/// The smallest factor of a decrease: with a queue as long as the path or longer, half of the window fills the path, and a flow
/// that came first gives way to others sooner. With a queue of more than twice the path's delay, that holds for windows of `LARGE_WINDOW`
/// bytes or more that have grown since the last event: one that has shrunk has given way. The factor of smaller ones is the closer to
/// `DECREASE` the smaller they are: one that has just ceased to be small would fall back each time.
const LONG_QUEUE_DECREASE: f64 = 0.5;
const LARGE_WINDOW: f64 = 128_000.0;

/// The decrease at the first congestion event after slow start. It is small, so that flows that filled the path before have to
/// give way as well.
const FIRST_DECREASE: f64 = 0.85;

/// The window never shrinks below what the path holds at the measured rate without a queue, but by at least this: a short queue
/// is empty after that, and a lone flow need not leave a part of the path unused.
const MIN_DECREASE: f64 = 0.9;

/// Window in bytes below which that does not apply: where many flows have little each, none of them knows the path without a
/// queue.
const SMALL_WINDOW: f64 = 16_000.0;

/// Window in bytes below which a loss counts as congestion also without a queue, if the delay varies.
const AMBIGUOUS_WINDOW: f64 = 16_000.0;

/// That holds for this many rounds. If the delay turns out to be constant, slow start continues.
const DOUBT_ROUNDS: u64 = 16;

/// The decrease when a large part of the window was lost: the path has become much slower, or slow start went far beyond it.
const HEAVY_DECREASE: f64 = 0.5;
const HEAVY_LOSS: f64 = 0.3;

/// How much faster than a window per round trip the pacer sends: in slow start, and later.
const SLOW_START_PACING: f64 = 2.0;
const PACING: f64 = 1.25;

/// Smallest rate at which messages are sent, in bytes per second.
const MIN_PACING_RATE: f64 = 4_000.0;

/// Number of rounds after a congestion event in which the loss rate is still that of the event.
const EVENT_ROUNDS: u64 = 2;

/// If the share of lost datagrams grows in slow start, the window is halved for this many rounds, to see whether the loss rate goes down with it.
const TRIAL_ROUNDS: u64 = 2;
const TRIAL_LOSSES: f64 = 8.0;

/// Losses that were detected together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossEvent {
    pub datagrams: u32,
    pub bytes: u64,
    /// Position of the last lost transmission in the order of all transmissions.
    pub newest_order: u64,
    /// The position of the next transmission.
    pub next_order: u64,
    /// Whether nothing at all comes back: an outage says nothing about the share that is lost.
    pub is_silent: bool,
    /// Whether some count as lost only because no ack came in time: the receiver may have no room for them.
    pub has_timed_out: bool,
    /// Whether they count as lost because of a resend request, which may be forged.
    pub is_requested: bool,
}

impl LossEvent {
    /// Both together; the other one came later. A resend request may be forged, so what it names adds nothing to the bytes.
    fn merged_with(self, later: Self) -> Self {
        let bytes = if later.is_requested { 0 } else { later.bytes };
        Self {
            datagrams: self.datagrams + later.datagrams,
            bytes: self.bytes + bytes,
            newest_order: self.newest_order.max(later.newest_order),
            ..later
        }
    }
}

/// Growth since the last congestion event.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds after which the cubic function reaches the window of the last congestion event.
    k: f64,
    /// The window that Reno would have.
    reno_window: f64,
}

/// The state before the last congestion event, to return to if all its losses were late acks.
#[derive(Clone, Copy, Debug)]
struct Undo {
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

/// A pause of slow start in which the loss rate is compared with that before.
#[derive(Clone, Copy, Debug)]
struct Trial {
    ends_at: u64,
    loss: f64,
}

/// Decides how fast to send and how much may be in flight.
#[derive(Debug)]
pub(crate) struct CongestionController {
    /// Maximum number of bytes in flight.
    window: f64,
    /// Below this window, growth is exponential: slow start.
    threshold: f64,
    /// The window at the last congestion event.
    max_window: f64,
    epoch: Option<Epoch>,
    /// Losses of transmissions before this one belong to the last loss event.
    recovery_end: u64,
    /// Losses of transmissions before this one are those of another path, or of an outage.
    path_start: u64,
    undo: Option<Undo>,
    /// Losses of which it is not known yet whether they are random.
    undecided: Option<LossEvent>,
    /// Whether the last congestion event was the first one after slow start.
    follows_slow_start: bool,
    late_joiner: LateJoiner,
    /// Whether the window was not small at the last congestion event, and the queue shorter than 5/8 of the path's delay.
    has_short_queue: bool,
    losses: LossHistory,
    trial: Option<Trial>,
    /// Whether slow start was ended by losses that may have been random.
    is_doubted: bool,
    /// The round in which conservative slow start ends.
    conservative_until: u64,
    /// The round of the last congestion event, and that of the last loss.
    reduced_in: u64,
    lost_in: u64,
    /// Number of consecutive rounds without a queue.
    queueless_rounds: u32,
    /// Whether messages are waiting for the window or the pacer.
    is_limited: bool,
    /// Whether they wait for something else than the window, which then does not grow (RFC 9002, 7.8).
    is_held_back: bool,
    /// Number of messages of a short backlog.
    backlog: f64,
    delivery: DeliveryRate,
    /// Largest number of bytes in flight in the last round and in this one.
    peaks: [u64; 2],
}

impl CongestionController {
    pub fn new(now: Instant) -> Self {
        Self {
            window: INITIAL_WINDOW as f64,
            threshold: f64::INFINITY,
            max_window: 0.0,
            epoch: None,
            recovery_end: 0,
            path_start: 0,
            undo: None,
            undecided: None,
            follows_slow_start: false,
            late_joiner: LateJoiner::default(),
            has_short_queue: false,
            losses: LossHistory::default(),
            trial: None,
            is_doubted: false,
            conservative_until: 0,
            reduced_in: 0,
            lost_in: 0,
            queueless_rounds: 0,
            is_limited: false,
            is_held_back: false,
            backlog: 0.0,
            delivery: DeliveryRate::new(now, 0),
            peaks: [0; _],
        }
    }

    /// A datagram is sent; `in_flight` are the bytes in flight before it.
    pub fn on_send(&mut self, now: Instant, in_flight: u64, len: u64) -> DeliverySnapshot {
        self.peaks[1] = self.peaks[1].max(in_flight + len);
        self.delivery.on_send(now, in_flight)
    }

    /// There is nothing to send although the window would allow more.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.delivery.on_app_limited(in_flight);
        self.is_limited = false;
        self.is_held_back = false;
    }

    /// There is something to send that has to wait for the window or the pacer, or is held back by the limit by delay (W123),
    /// although the window would allow more. `backlog` is the number of messages if it is short, and zero otherwise.
    pub fn on_limited(&mut self, backlog: usize, is_held_back: bool) {
        self.is_limited = true;
        self.is_held_back = is_held_back;
        self.backlog = backlog as f64;
    }

    /// Whether messages are waiting for the window or the pacer.
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// A datagram is acked.
    pub fn on_ack(&mut self, now: Instant, len: u64) {
        self.delivery.on_ack(now, len);
        self.losses.acked += 1;
    }

    /// Datagrams are lost.
    pub fn on_losses(&mut self, event: LossEvent, rtt: &RttEstimator) {
        if event.newest_order < self.path_start {
            return;
        }
        self.losses.lost += if event.has_timed_out { 0 } else { event.datagrams };
        self.lost_in = self.delivery.round();
        if event.newest_order < self.recovery_end {
            return self.on_further_losses(event, rtt);
        }
        let has_queue = if self.is_limited { rtt.has_queue() } else { rtt.has_thin_queue() };
        if event.is_silent {
            // The window is reduced when the silence ends.
            return self.losses.discard_sample();
        }
        let is_doubtful = self.is_limited
            && self.delivery.round() < DOUBT_ROUNDS
            && self.window < AMBIGUOUS_WINDOW
            && rtt.is_delay_constant() != Some(true);
        let is_certain = has_queue || self.losses.is_heavy(self.used_window());
        if is_certain || is_doubtful {
            let event = self.undecided.take().map_or(event, |earlier| earlier.merged_with(event));
            if !is_certain && rtt.is_delay_constant_so_far() {
                self.undecided = Some(event);
            } else {
                self.on_congestion(event, is_doubtful && !has_queue, rtt);
            }
        }
    }

    fn on_congestion(&mut self, event: LossEvent, is_doubtful: bool, rtt: &RttEstimator) {
        self.recovery_end = event.next_order;
        self.is_doubted = is_doubtful && (self.threshold.is_infinite() || self.is_doubted);
        self.reduce(event, rtt);
    }

    /// Decides about losses as soon as it is known whether the delay is constant. Until then the window neither grows nor shrinks,
    /// because a round trip with a smaller one would cost a download on a lossy path as much as a round trip of slow start.
    fn decide_losses(&mut self, rtt: &RttEstimator) {
        let Some(event) = self.undecided else { return };
        let is_random = rtt.is_delay_constant() == Some(true) || rtt.is_delay_constant_with_enough_samples();
        if self.delivery.round() < DOUBT_ROUNDS && !is_random {
            if rtt.is_delay_constant().is_none() && rtt.is_delay_constant_so_far() {
                return;
            }
            self.on_congestion(event, !rtt.has_queue(), rtt);
        }
        self.undecided = None;
    }

    /// More of what was in flight at the last congestion event is lost. When the event was noticed, only the first losses were
    /// known, which do not show how much too large the window was. Of flows that begin together, most know no path without a
    /// queue, so in doubt that holds without a queue as well: at most what arrived fits into the path.
    fn on_further_losses(&mut self, event: LossEvent, rtt: &RttEstimator) {
        let Some(undo) = &mut self.undo else { return };
        let was_heavy = undo.is_heavy();
        undo.losses += event.datagrams;
        undo.lost_bytes += if event.is_silent || event.is_requested { 0 } else { event.bytes };
        let is_new = !was_heavy && rtt.has_queue();
        if undo.is_heavy() && (is_new || self.is_doubted) {
            let arrived = if self.is_doubted { undo.used - undo.lost_bytes as f64 } else { f64::INFINITY };
            self.window = self.window.min(HEAVY_DECREASE * undo.used).min(arrived).max(MIN_WINDOW);
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

    /// All numbers of an ack are processed; `acked` is the message among them that was sent last, and `bytes` is the number of
    /// bytes that are newly acked.
    pub fn on_acks_done(&mut self, now: Instant, acked: &AckedMessage, bytes: u64, rtt: &RttEstimator) {
        let Some(newest) = acked.snapshot else { return };
        if self.delivery.ends_round(newest) {
            self.start_round(rtt);
        }
        self.delivery.measure(now, newest, rtt.min());
        // The first messages after a pause are sent before there is more than the window admits. In slow start they count all the
        // same if others wait now: otherwise a download would begin with a round trip in which the window does not grow.
        let is_unused = newest.app_limited && !(self.is_limited && self.is_in_slow_start());
        if is_unused || self.is_held_back {
            self.epoch = None;
        } else if acked.order >= self.recovery_end {
            self.decide_losses(rtt);
            if self.undecided.is_none() {
                self.grow(now, bytes as f64, rtt);
            }
        }
    }

    /// The path has changed, or nothing has come back for a while: slow start to where the window was. It begins with the
    /// initial window, or with half of what was in flight if there was a queue. What was sent before the transmission `next_order`
    /// says nothing about the path.
    pub fn on_new_path(&mut self, now: Instant, next_order: u64, rtt: &RttEstimator) {
        let had_queue = rtt.had_queue();
        let used = if had_queue { self.used_window() } else { self.window };
        let start = if had_queue { used / 2.0 } else { used };
        // If slow start was still on its way, it is where that led to.
        let keeps_threshold = self.threshold.is_infinite() || (self.is_in_slow_start() && !had_queue);
        *self = Self {
            window: start.clamp(MIN_WINDOW, INITIAL_WINDOW as f64),
            threshold: if keeps_threshold { self.threshold } else { (DECREASE * used).max(MIN_WINDOW) },
            recovery_end: self.recovery_end,
            path_start: next_order,
            delivery: self.delivery.on_new_path(now),
            ..Self::new(now)
        };
    }

    /// Delivery rate of the path in bytes per second.
    pub fn rate(&self) -> f64 {
        self.delivery.rate()
    }

    /// Rate at which to send, in bytes per second. That of a stream with a short backlog is at least `offered`, the rate of its
    /// application, and without a queue at least `MIN_IN_FLIGHT` per round trip (W77). If all players of a link that is not overloaded
    /// send what their applications do, none of them falls further behind; with more, many players fill a queue for good.
    pub fn pacing_rate(&self, rtt: &RttEstimator, offered: Option<f64>) -> f64 {
        let has_queue = rtt.has_long_queue();
        let window = if offered.is_some() && !has_queue { self.window.max(MIN_IN_FLIGHT) } else { self.window };
        let gain = if self.is_in_slow_start() {
            SLOW_START_PACING
        } else if self.window < MIN_IN_FLIGHT {
            1.0
        } else {
            PACING
        };
        let rate = window / rtt.smoothed().as_secs_f64().max(0.000_1);
        (gain * rate.max(offered.unwrap_or_default())).max(MIN_PACING_RATE)
    }

    /// Maximum number of bytes in flight.
    pub fn window(&self) -> u64 {
        self.window.max(MIN_IN_FLIGHT) as u64
    }

    /// Number of bytes that fit into the window beside those in flight; negative if these exceed it.
    pub fn room(&self, in_flight: u64) -> f64 {
        self.window.max(MIN_IN_FLIGHT) - in_flight.cast_signed() as f64
    }

    fn is_in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The part of the window that was in use lately: a stream that sends little says nothing about the rest.
    fn used_window(&self) -> f64 {
        let peak = self.peaks.iter().fold(0, |max, &peak| max.max(peak));
        self.window.min(peak as f64).max(MIN_WINDOW)
    }

    /// The decrease of a small window. Of several streams that have fallen behind, those with few messages left give way (W81).
    fn small_decrease(&self) -> f64 {
        let [min, max] = BACKLOG_DECREASE;
        if self.backlog > 0.0 { min + (max - min) * (self.backlog / LONG_BACKLOG).min(1.0) } else { DECREASE }
    }

    /// The smallest factor of a decrease of a window that is not small.
    fn long_queue_decrease(&self, used: f64, rtt: &RttEstimator) -> f64 {
        if rtt.excess_delay() <= 2 * rtt.base() {
            return LONG_QUEUE_DECREASE;
        }
        let largeness = ((used - SMALL_WINDOW) / (LARGE_WINDOW - SMALL_WINDOW)).clamp(0.0, 1.0);
        let is_shrinking = used < self.max_window;
        if is_shrinking { DECREASE } else { DECREASE + (LONG_QUEUE_DECREASE - DECREASE) * largeness }
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
        let is_first = self.delivery.round() < self.conservative_until;
        let is_mild = !is_first && self.late_joiner.take_mild_decrease(used, self.losses.floor(), rtt);
        let decrease = if undo.is_heavy() {
            HEAVY_DECREASE
        } else if used < SMALL_WINDOW {
            self.small_decrease()
        } else if is_first || is_mild {
            FIRST_DECREASE
        } else {
            // Messages that are lost at random are in flight as well.
            let held = self.delivery.last_rate() * rtt.base().as_secs_f64() / (1.0 - self.losses.floor());
            (held / used).clamp(self.long_queue_decrease(used, rtt), MIN_DECREASE)
        };
        self.has_short_queue = used > SMALL_WINDOW && rtt.excess_delay() < rtt.base() * 5 / 8;
        self.follows_slow_start = self.threshold.is_infinite() || self.conservative_until > 0;
        // Fast convergence: a flow whose share shrinks releases more of it.
        let is_shrinking = used < self.max_window && !is_mild;
        self.max_window = if is_shrinking { used * (1.0 + DECREASE) / 2.0 } else { used };
        self.window = (decrease * used).max(MIN_WINDOW);
        self.threshold = self.window;
        self.epoch = None;
        self.trial = None;
        self.conservative_until = 0;
        self.reduced_in = self.delivery.round();
    }

    fn start_round(&mut self, rtt: &RttEstimator) {
        self.delivery.start_round();
        self.late_joiner.on_round(self.is_in_slow_start(), rtt);
        self.peaks = [self.peaks[1], 0];
        self.queueless_rounds = if rtt.has_queue() { 0 } else { self.queueless_rounds + 1 };
        if self.delivery.is_app_limited() {
            self.losses.discard_sample();
            self.queueless_rounds = 0;
        } else if self.trial.is_some_and(|trial| !self.losses.expects(trial.loss, TRIAL_LOSSES)) {
            // Too few datagrams to compare.
        } else if let Some(sample) = self.losses.end_sample() {
            self.compare_loss(sample);
        }
    }

    /// Compares the loss rate of the last round with the limit that follows from those before, unless the losses are those of a congestion
    /// event.
    fn compare_loss(&mut self, sample: LossSample) {
        let LossSample { loss, limit, max } = sample;
        if self.delivery.round() <= self.reduced_in + EVENT_ROUNDS {
            return;
        }
        if loss > max {
            self.window = (HEAVY_DECREASE * self.window).max(MIN_WINDOW);
            self.end_slow_start();
            self.queueless_rounds = 0;
        } else if let Some(trial) = self.trial.take_if(|trial| self.delivery.round() >= trial.ends_at) {
            if loss < trial.loss / 3.0 {
                self.end_slow_start();
                self.max_window = 2.0 * self.window;
            }
        } else if loss > limit && self.trial.is_none() {
            if self.is_in_slow_start() {
                self.window = (self.window / 2.0).max(MIN_WINDOW);
                self.trial = Some(Trial { ends_at: self.delivery.round() + TRIAL_ROUNDS, loss });
            } else {
                self.max_window = self.window;
                self.window = (DECREASE * self.window).max(MIN_WINDOW);
                self.threshold = self.window;
                self.epoch = None;
            }
            self.queueless_rounds = 0;
        }
    }
}
