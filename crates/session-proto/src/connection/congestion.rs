//! Congestion control: a model of the path, as in BBR (S26).
//!
//! Loss alone is no sign of congestion. The path's capacity is measured instead: the rate at which messages arrive (the
//! maximum of the last ten round trips), and the round-trip time without a queue (the minimum of the last ten seconds).
//! Messages are sent at the measured rate, and the amount in flight is limited to what the path holds plus a little. Now and
//! then a higher rate is probed, and then a lower one, which empties the queue that the probe may have built.
//!
//! Random loss has to be made up for by sending more, or the measured rate would sink by it in every round. Congestive loss
//! must not be. The two are told apart by the rounds in which less is sent than the path carries: what is lost even then is
//! random. So the smallest loss rate of the last rounds is what is made up for.

use super::rtt::RttEstimator;
use std::time::{Duration, Instant};

/// Window in bytes before anything is measured: 64 datagrams.
pub(crate) const INITIAL_WINDOW: u64 = 32_512;

/// Smallest window in bytes: with less, a slow path would not be noticed to become faster.
const MIN_WINDOW: u64 = 4 * 508;

/// Smallest round-trip time of the model: on shorter paths, the pauses of the hosts at both ends are longer than the path.
const MIN_MODEL_RTT: Duration = Duration::from_millis(2);

/// Smallest rate at which messages are sent, in bytes per second.
const MIN_PACING_RATE: f64 = 2_000.0;

/// Gain of the startup phase, 2 / ln 2: the smallest with which the rate doubles in every round.
const STARTUP_GAIN: f64 = 2.885;

/// Startup ends after this many rounds in which the rate grew by less than `STARTUP_GROWTH`.
const FULL_ROUNDS: u32 = 3;
const STARTUP_GROWTH: f64 = 1.25;

/// Startup also ends after a single round without growth in which more than this share was lost.
const STARTUP_MAX_LOSS: f64 = 0.15;

/// Pacing gains of the cruise phase: one round that probes for more, one that drains, and the rest at the measured rate.
const CYCLE: [f64; 10] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Positions in [`CYCLE`].
const PROBE_UP: usize = 0;
const PROBE_DOWN: usize = 1;
const STEADY: usize = 2;

/// The next probe comes up to this many rounds earlier, at random: two flows that probe at the same time learn nothing.
const MAX_SKIPPED_ROUNDS: u64 = 5;

/// Limit on the bytes in flight, as a multiple of what the path holds; and the same while there is a queue, unless more is
/// being probed.
const WINDOW_GAIN: f64 = 1.5;
const WINDOW_GAIN_WITH_QUEUE: f64 = 1.15;

/// Number of rounds for which a measured rate is valid.
const RATE_ROUNDS: usize = 10;

/// Number of loss rates that are remembered, each measured over at least `MIN_LOSS_SAMPLE` messages.
const LOSS_ROUNDS: usize = 10;
const MIN_LOSS_SAMPLE: u32 = 40;

/// Number of loss rates that are needed before any loss counts as random.
const MIN_LOSS_ROUNDS: usize = 3;

/// Largest share of random loss that is made up for.
const MAX_RANDOM_LOSS: f64 = 0.4;

/// Age of the minimal round-trip time at which the queue is emptied for `PROBE_RTT_PERIOD` to measure it again, before it
/// expires.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_PERIOD: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The rate doubles in every round until that no longer helps.
    Startup,
    /// The queue that startup has built is drained.
    Drain,
    /// Messages are sent at the measured rate, with occasional probes.
    Cruise,
    /// Little is sent, to measure the round-trip time without a queue.
    ProbeRtt,
}

/// Delivery state at the time a datagram is sent, from which its ack derives a delivery rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliverySnapshot {
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

/// Decides how fast to send and how much may be in flight.
#[derive(Debug)]
pub(crate) struct CongestionController {
    phase: Phase,
    /// Number of bytes acked.
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Samples of datagrams sent before this many bytes were delivered say nothing about the path: the application had
    /// too little to send.
    app_limited_until: u64,
    round: u64,
    /// The round ends when a datagram is acked that was sent after this many bytes were delivered.
    round_ends_at: u64,
    /// Maximum delivery rate of each of the last rounds, in bytes per second.
    rates: [f64; RATE_ROUNDS],
    full_rate: f64,
    full_rounds: u32,
    /// Position in [`CYCLE`], and when it was reached.
    cycle: usize,
    cycle_at: Instant,
    probe_rtt_at: Instant,
    probe_rtt_until: Option<Instant>,
    /// Loss rates of the last rounds, and how many were ever measured.
    losses: [f64; LOSS_ROUNDS],
    loss_rounds: usize,
    acked_in_round: u32,
    lost_in_round: u32,
}

// Indexing in this file cannot fail: indices are taken modulo the length of their array, and a cycle position skips at most
// four of the eight steady rounds.
impl CongestionController {
    pub fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Startup,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: 0,
            round: 0,
            round_ends_at: 0,
            rates: [0.0; _],
            full_rate: 0.0,
            full_rounds: 0,
            cycle: STEADY,
            cycle_at: now,
            probe_rtt_at: now,
            probe_rtt_until: None,
            losses: [0.0; _],
            loss_rounds: 0,
            acked_in_round: 0,
            lost_in_round: 0,
        }
    }

    /// A datagram is sent.
    pub fn on_send(&mut self, now: Instant, in_flight: u64) -> DeliverySnapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        DeliverySnapshot {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.delivered <= self.app_limited_until && self.app_limited_until > 0,
        }
    }

    /// There is nothing to send although the window would allow more.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// A datagram is acked.
    pub fn on_ack(&mut self, now: Instant, len: u64) {
        self.delivered += len;
        self.delivered_at = now;
        self.acked_in_round += 1;
    }

    /// A datagram is lost.
    pub fn on_loss(&mut self) {
        self.lost_in_round += 1;
    }

    /// All numbers of an ack are processed; `newest` belongs to the message among them that was sent last.
    pub fn on_acks_done(&mut self, now: Instant, newest: Option<DeliverySnapshot>, in_flight: u64, rtt: &RttEstimator) {
        if let Some(newest) = newest {
            self.first_sent_at = self.first_sent_at.max(newest.sent_at);
            if newest.delivered >= self.round_ends_at {
                self.start_round();
            }
            self.measure(now, newest, rtt);
        }
        self.update_phase(now, in_flight, rtt);
    }

    /// The path has changed: the model starts with half the known rate and learns again.
    pub fn on_new_path(&mut self, now: Instant) {
        let rate = self.rate();
        *self = Self { delivered: self.delivered, ..Self::new(now) };
        self.rates[0] = rate / 2.0;
        self.round_ends_at = self.delivered;
    }

    /// Delivery rate of the path in bytes per second.
    pub fn rate(&self) -> f64 {
        self.rates.iter().fold(0.0, |max: f64, &rate| max.max(rate))
    }

    /// Rate at which to send, in bytes per second.
    pub fn pacing_rate(&self, rtt: &RttEstimator) -> f64 {
        let initial = INITIAL_WINDOW as f64 / rtt.smoothed().as_secs_f64().max(0.001);
        let rate = self.rate() / (1.0 - self.random_loss());
        let rate = match self.phase {
            Phase::Startup => STARTUP_GAIN * rate.max(initial),
            Phase::Drain => rate / STARTUP_GAIN,
            Phase::Cruise => CYCLE[self.cycle] * rate,
            Phase::ProbeRtt => rate,
        };
        rate.max(MIN_PACING_RATE)
    }

    /// Maximum number of bytes in flight.
    pub fn window(&self, rtt: &RttEstimator) -> u64 {
        let capacity = self.path_capacity(rtt);
        match self.phase {
            Phase::Startup => ((STARTUP_GAIN * capacity) as u64).max(INITIAL_WINDOW),
            Phase::Drain | Phase::Cruise => (self.window_gain(rtt) * capacity) as u64 + MIN_WINDOW,
            Phase::ProbeRtt => ((capacity / 2.0) as u64).max(MIN_WINDOW),
        }
    }

    /// The share of datagrams that is lost whatever the rate.
    pub fn random_loss(&self) -> f64 {
        if self.loss_rounds < MIN_LOSS_ROUNDS {
            return 0.0;
        }
        let known = &self.losses[..self.loss_rounds.min(LOSS_ROUNDS)];
        known.iter().fold(MAX_RANDOM_LOSS, |min, &loss| min.min(loss))
    }

    /// The bandwidth-delay product in bytes: what the path holds without a queue.
    fn path_capacity(&self, rtt: &RttEstimator) -> f64 {
        self.rate() / (1.0 - self.random_loss()) * rtt.min().max(MIN_MODEL_RTT).as_secs_f64()
    }

    fn window_gain(&self, rtt: &RttEstimator) -> f64 {
        let has_queue = rtt.smoothed() > rtt.min() * 5 / 4 + Duration::from_millis(2);
        if has_queue && self.cycle != PROBE_UP { WINDOW_GAIN_WITH_QUEUE } else { WINDOW_GAIN }
    }

    fn start_round(&mut self) {
        self.round += 1;
        self.round_ends_at = self.delivered;
        self.rates[self.round as usize % RATE_ROUNDS] = 0.0;
        let total = self.acked_in_round + self.lost_in_round;
        let loss = f64::from(self.lost_in_round) / f64::from(total.max(1));
        if self.phase == Phase::Startup && self.delivered > self.app_limited_until {
            self.count_full_round(loss);
        }
        if total >= MIN_LOSS_SAMPLE {
            // What is lost while startup floods the path says nothing about random loss.
            if self.phase == Phase::Cruise {
                self.losses[self.loss_rounds % LOSS_ROUNDS] = loss;
                self.loss_rounds += 1;
            }
            self.acked_in_round = 0;
            self.lost_in_round = 0;
        }
    }

    /// Three rounds without growth, or one with high loss as well, mean that the path is full.
    fn count_full_round(&mut self, loss: f64) {
        let rate = self.rate();
        if rate >= self.full_rate * STARTUP_GROWTH {
            self.full_rate = rate;
            self.full_rounds = 0;
        } else {
            self.full_rounds += if loss > STARTUP_MAX_LOSS { FULL_ROUNDS } else { 1 };
        }
    }

    fn measure(&mut self, now: Instant, newest: DeliverySnapshot, rtt: &RttEstimator) {
        let sending = newest.sent_at.saturating_duration_since(newest.first_sent_at);
        let arriving = now.saturating_duration_since(newest.delivered_at);
        let interval = sending.max(arriving);
        // In less than a round trip nothing can have been acked that was sent after the snapshot.
        if interval < rtt.min() * 7 / 8 || interval.is_zero() {
            return;
        }
        let rate = (self.delivered - newest.delivered) as f64 / interval.as_secs_f64();
        if !newest.app_limited || rate > self.rate() {
            let max = &mut self.rates[self.round as usize % RATE_ROUNDS];
            *max = max.max(rate);
        } else {
            // A stream that does not use the path cannot show that the path has become slower.
            let rate = self.rate();
            self.rates[self.round as usize % RATE_ROUNDS] = rate;
        }
    }

    fn update_phase(&mut self, now: Instant, in_flight: u64, rtt: &RttEstimator) {
        match self.phase {
            Phase::Startup if self.full_rounds >= FULL_ROUNDS => self.phase = Phase::Drain,
            Phase::Drain if in_flight as f64 <= self.path_capacity(rtt) => self.enter_cruise(now),
            Phase::Cruise => self.advance_cycle(now, in_flight, rtt),
            Phase::ProbeRtt if self.probe_rtt_until.is_some_and(|until| now >= until) => self.enter_cruise(now),
            _ => {}
        }
        let measured = rtt.min_at().map_or(now, |at| at.max(self.probe_rtt_at));
        if self.phase == Phase::Cruise && now.saturating_duration_since(measured) > PROBE_RTT_INTERVAL {
            self.phase = Phase::ProbeRtt;
            self.probe_rtt_until = Some(now + PROBE_RTT_PERIOD.max(rtt.smoothed()));
        }
    }

    fn enter_cruise(&mut self, now: Instant) {
        self.phase = Phase::Cruise;
        self.cycle = STEADY;
        self.cycle_at = now;
        self.probe_rtt_at = now;
    }

    fn advance_cycle(&mut self, now: Instant, in_flight: u64, rtt: &RttEstimator) {
        let round_passed = now.saturating_duration_since(self.cycle_at) >= rtt.min();
        let is_done = match self.cycle {
            PROBE_DOWN => round_passed || in_flight as f64 <= self.path_capacity(rtt),
            _ => round_passed,
        };
        if is_done {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            if self.cycle == STEADY {
                // Any number that differs between connections is random enough.
                let random = (self.delivered ^ self.round << 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                self.cycle += (random % MAX_SKIPPED_ROUNDS) as usize;
            }
            self.cycle_at = now;
        }
    }
}
