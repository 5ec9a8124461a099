//! Congestion control: CUBIC (RFC 9438), paced, that classifies losses as congestion or random by the queueing delay that
//! accompanies them (S26).
//!
//! The networks of players lose datagrams at random, and a window that shrinks with every loss would collapse on them. A
//! queue that overflows, on the other hand, was full a moment before, and everything that passed it was late. So a loss counts
//! as congestion only while the round-trip time shows a queue; then the window shrinks as CUBIC's does, and the flow takes the
//! share that TCP would take in its place. A loss without a queue is random, and changes nothing.
//!
//! Two rules cover what the delay does not show: a queue that is too short to be noticed, or that was full before the flow
//! began. Random loss takes the same share of whatever is sent; a share that has grown is congestion. And a loss that turns
//! out to have been a late ack is undone.

mod decrease;
mod delivery_rate;
mod growth;
mod late_joiner;
mod loss_history;
#[cfg(test)]
mod tests;

pub(crate) use delivery_rate::DeliverySnapshot;

use super::{ack_effect::AckedMessage, rtt::RttEstimator};
use decrease::Undo;
use delivery_rate::DeliveryRate;
use late_joiner::LateJoiner;
use loss_history::{LossHistory, LossSample};
use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::Instant;

/// Window in bytes before anything is measured: 10 datagrams.
pub(crate) const INITIAL_WINDOW: u64 = 10 * MAX_DATAGRAM as u64;

/// Smallest window in bytes: half a datagram. Many flows on a slow path have less than a datagram each: then the pacer sends one
/// datagram in several round trips.
const MIN_WINDOW: f64 = MAX_DATAGRAM as f64 / 2.0;

/// Number of bytes that may always be in flight, four datagrams: with less, a single lost ack would stop a flow until a timeout.
/// The rate of a window that is smaller is limited by the pacer alone.
const MIN_IN_FLIGHT: f64 = 4.0 * MAX_DATAGRAM as f64;

/// Factor applied to the window at a congestion event (RFC 9438).
const DECREASE_FACTOR: f64 = 0.7;

/// Window in bytes below which it is small: where many flows have little each, none of them knows the path without a queue.
const SMALL_WINDOW: f64 = 16_000.0;

/// Factor applied to the window when a large part of it was lost: the path has become much slower, or slow start went far
/// beyond it.
const HEAVY_LOSS_FACTOR: f64 = 0.5;

/// The queue is short while it delays by less than this share of the path's delay: see [`is_queue_short`].
const SHORT_QUEUE_SHARE: [u32; 2] = [5, 8];

/// Pacing rate in slow start, relative to a window per round trip.
const SLOW_START_PACING: f64 = 2.0;

/// The same later.
const PACING: f64 = 1.25;

/// Shortest round-trip time in seconds that the rate is derived from: between programs of one host it is almost zero.
const MIN_PACED_RTT: f64 = 0.000_1;

/// Smallest rate at which messages are sent, in bytes per second.
const MIN_PACING_RATE: f64 = 4_000.0;

/// Number of rounds after a congestion event in which the loss rate is still that of the event.
const EVENT_ROUNDS: u64 = 2;

/// If the share of lost datagrams grows in slow start, the window is halved for this many rounds, to see whether the loss rate goes
/// down with it.
const TRIAL_ROUNDS: u64 = 2;

/// Number of losses at the rate before that are expected in the rounds that are compared: with fewer, chance decides.
const TRIAL_LOSSES: f64 = 8.0;

/// If the loss rate becomes smaller by more than this factor, the window was too large, and slow start ends.
const TRIAL_RATIO: f64 = 3.0;

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

/// A pause of slow start in which the loss rate is compared with that before.
#[derive(Clone, Copy, Debug)]
struct Trial {
    ends_at: u64,
    loss: f64,
}

/// Losses that may have been random.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    /// Losses of which it is not known yet whether they are random.
    undecided: Option<LossEvent>,
    /// Whether slow start was ended by losses that may have been random.
    is_slow_start_exit_uncertain: bool,
}

/// What was observed per round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// The round in which conservative slow start ends.
    conservative_until: u64,
    /// The round of the last congestion event.
    reduced_in: u64,
    /// The round of the last loss.
    lost_in: u64,
    /// Number of consecutive rounds without a queue.
    queueless: u32,
    /// Largest number of bytes in flight in the last round and in this one.
    peaks: [u64; 2],
}

/// What the messages wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    /// Whether messages are waiting for the window or the pacer.
    is_limited: bool,
    /// Whether they wait for something else than the window, which then does not grow (RFC 9002, 7.8).
    is_held_back: bool,
    /// Number of messages of a short backlog.
    backlog: f64,
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
    doubt: Doubt,
    /// Whether the last congestion event was the first one after slow start.
    follows_slow_start: bool,
    late_joiner: LateJoiner,
    /// Whether the window was not small at the last congestion event, and the queue short.
    has_short_queue: bool,
    losses: LossHistory,
    trial: Option<Trial>,
    rounds: Rounds,
    limited: Limited,
    delivery: DeliveryRate,
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
            doubt: Doubt::default(),
            follows_slow_start: false,
            late_joiner: LateJoiner::default(),
            has_short_queue: false,
            losses: LossHistory::default(),
            trial: None,
            rounds: Rounds::default(),
            limited: Limited::default(),
            delivery: DeliveryRate::new(now, 0),
        }
    }

    /// A datagram is sent; `in_flight` are the bytes in flight before it.
    pub fn on_send(&mut self, now: Instant, in_flight: u64, len: u64) -> DeliverySnapshot {
        self.rounds.peaks[1] = self.rounds.peaks[1].max(in_flight + len);
        self.delivery.on_send(now, in_flight)
    }

    /// There is nothing to send although the window would allow more.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.delivery.on_app_limited(in_flight);
        self.limited.is_limited = false;
        self.limited.is_held_back = false;
    }

    /// There is something to send that has to wait for the window or the pacer, or is held back by the limit by delay (W123),
    /// although the window would allow more. `backlog` is the number of messages if it is short, and zero otherwise.
    pub fn on_limited(&mut self, backlog: usize, is_held_back: bool) {
        self.limited = Limited { is_limited: true, is_held_back, backlog: backlog as f64 };
    }

    /// Whether messages are waiting for the window or the pacer.
    pub fn is_limited(&self) -> bool {
        self.limited.is_limited
    }

    /// A datagram is acked.
    pub fn on_ack(&mut self, now: Instant, len: u64) {
        self.delivery.on_ack(now, len);
        self.losses.acked += 1;
    }

    /// All numbers of an ack are processed; `acked` is the message among them that was sent last, and `bytes` is the number of
    /// bytes that are newly acked.
    pub fn on_acks_done(&mut self, now: Instant, acked: &AckedMessage, bytes: u64, rtt: &RttEstimator) {
        let Some(newest) = acked.snapshot else { return };
        if self.delivery.on_newest_ack(newest) {
            self.start_round(rtt);
        }
        self.delivery.measure(now, newest, rtt.min());
        // The first messages after a pause are sent before there is more than the window admits. In slow start they count all the
        // same if others wait now: otherwise a download would begin with a round trip in which the window does not grow.
        let is_unused = newest.app_limited && !(self.limited.is_limited && self.is_in_slow_start());
        if is_unused || self.limited.is_held_back {
            self.epoch = None;
        } else if acked.order >= self.recovery_end {
            self.decide_losses(rtt);
            if self.doubt.undecided.is_none() {
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
            threshold: if keeps_threshold { self.threshold } else { (DECREASE_FACTOR * used).max(MIN_WINDOW) },
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
    /// application, and without a queue at least `MIN_IN_FLIGHT` per round trip (W77). If all players of a link that is not
    /// overloaded send what their applications do, none of them falls further behind; with more, many players fill a queue for
    /// good.
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
        let rate = window / rtt.smoothed_secs().max(MIN_PACED_RTT);
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
        let peak = self.rounds.peaks.iter().fold(0, |max, &peak| max.max(peak));
        self.window.min(peak as f64).max(MIN_WINDOW)
    }

    fn start_round(&mut self, rtt: &RttEstimator) {
        self.delivery.start_round();
        self.late_joiner.on_round(self.is_in_slow_start(), rtt);
        self.rounds.peaks = [self.rounds.peaks[1], 0];
        self.rounds.queueless = if rtt.has_queue() { 0 } else { self.rounds.queueless + 1 };
        if self.delivery.is_app_limited() {
            self.losses.discard_sample();
            self.rounds.queueless = 0;
        } else if self.trial.is_some_and(|trial| !self.losses.expects(trial.loss, TRIAL_LOSSES)) {
            // Too few datagrams to compare.
        } else if let Some(sample) = self.losses.end_sample() {
            self.compare_loss(sample);
        }
    }

    /// Compares the loss rate of the last round with the limit that follows from those before, unless the losses are those of a
    /// congestion event.
    fn compare_loss(&mut self, sample: LossSample) {
        let LossSample { loss, limit, max } = sample;
        if self.delivery.round() <= self.rounds.reduced_in + EVENT_ROUNDS {
            return;
        }
        if loss > max {
            self.window = (HEAVY_LOSS_FACTOR * self.window).max(MIN_WINDOW);
            self.end_slow_start();
            self.rounds.queueless = 0;
        } else if let Some(trial) = self.trial.take_if(|trial| self.delivery.round() >= trial.ends_at) {
            if loss < trial.loss / TRIAL_RATIO {
                self.end_slow_start();
                self.max_window = 2.0 * self.window;
            }
        } else if loss > limit && self.trial.is_none() {
            if self.is_in_slow_start() {
                self.window = (self.window / 2.0).max(MIN_WINDOW);
                self.trial = Some(Trial { ends_at: self.delivery.round() + TRIAL_ROUNDS, loss });
            } else {
                self.max_window = self.window;
                self.window = (DECREASE_FACTOR * self.window).max(MIN_WINDOW);
                self.threshold = self.window;
                self.epoch = None;
            }
            self.rounds.queueless = 0;
        }
    }
}

/// Whether the queue is much shorter than the path.
fn is_queue_short(rtt: &RttEstimator) -> bool {
    let [share, whole] = SHORT_QUEUE_SHARE;
    rtt.excess_delay() < rtt.base() * share / whole
}
