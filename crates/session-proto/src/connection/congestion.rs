//! How fast to send: a model of the path, as BBR has it (S26).
//!
//! Loss alone is no sign of congestion. What the path carries is measured: how fast messages arrive (the most of the last
//! ten round trips), and how long an answer takes when no queue is in the way (the least of the last ten seconds). Messages
//! leave at the measured rate, and not more are under way than the path holds with a little on top. Now and then a little
//! more is tried, and then a little less, which empties the queue that the trial may have built.
//!
//! Random loss has to be made up for by sending more, or the measured rate would sink by it in every round. Congestive loss
//! has not. The two are told apart by the phases in which less is sent than the path carries: what is lost even then is
//! random. So the smallest loss rate of the last rounds is what is made up for.

use super::rtt::Rtt;
use std::time::{Duration, Instant};

/// What may be under way before anything is known: 64 datagrams.
pub(crate) const INITIAL_WINDOW: u64 = 32_512;

/// Never less, or a slow path would not be noticed when it becomes faster.
const SMALLEST_WINDOW: u64 = 4 * 508;

/// On a path that is shorter than this, the pauses of the machines at its ends are longer than it.
const SHORTEST_RTT: Duration = Duration::from_millis(2);

/// 2 / ln 2: the smallest gain with which the rate doubles in every round.
const STARTUP_GAIN: f64 = 2.885;

/// The start is over after so many rounds in which the rate hardly grew.
const FULL_ROUNDS: u32 = 3;

/// Or after one in which more than this was lost.
const FLOODED: f64 = 0.15;

/// One round of trying more, one of less, and then as it is.
const CYCLE: [f64; 10] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The next trial comes so many rounds earlier, by chance: two who try at the same time learn nothing.
const EARLIER: u64 = 5;

/// How much may be under way, in round trips of the measured rate; and how much while there is a queue, unless more is
/// being tried.
const WINDOW_GAIN: f64 = 1.5;
const WINDOW_GAIN_WITH_QUEUE: f64 = 1.15;

/// For how many rounds a measured rate counts.
const RATE_ROUNDS: usize = 10;

/// How many loss rates are remembered, each of a round with enough messages.
const LOSS_ROUNDS: usize = 10;
const ENOUGH_FOR_A_RATE: u32 = 40;

/// More is never made up for.
const MOST_RANDOM_LOSS: f64 = 0.4;

/// When the shortest time to an answer is that old, the queue is emptied to measure it anew, before it is forgotten.
const PROBE_RTT_AFTER: Duration = Duration::from_secs(5);
const PROBE_RTT_FOR: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Doubling until it no longer helps.
    Startup,
    /// Letting the queue run empty that the start built.
    Drain,
    /// As fast as the path carries, with a trial now and then.
    Cruise,
    /// Nearly nothing, to see how fast an answer is.
    ProbeRtt,
}

/// What is noted with a datagram when it is sent, and needed when it is acked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

#[derive(Debug)]
pub(crate) struct Congestion {
    phase: Phase,
    /// Bytes that were acked.
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Samples of what was sent before this many bytes were delivered say nothing about the path.
    app_limited_until: u64,
    round: u64,
    round_ends_at: u64,
    rates: [f64; RATE_ROUNDS],
    full_rate: f64,
    full_rounds: u32,
    cycle: usize,
    cycle_at: Instant,
    probe_rtt_at: Instant,
    probe_rtt_until: Option<Instant>,
    losses: [f64; LOSS_ROUNDS],
    loss_windows: usize,
    acked_in_round: u32,
    lost_in_round: u32,
}

impl Congestion {
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
            cycle: 2,
            cycle_at: now,
            probe_rtt_at: now,
            probe_rtt_until: None,
            losses: [0.0; _],
            loss_windows: 0,
            acked_in_round: 0,
            lost_in_round: 0,
        }
    }

    /// A datagram is sent.
    pub fn on_send(&mut self, now: Instant, in_flight: u64) -> Snapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.delivered <= self.app_limited_until && self.app_limited_until > 0,
        }
    }

    /// There was nothing to send although more would have been allowed.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// A datagram was acked.
    pub fn on_ack(&mut self, now: Instant, len: u64) {
        self.delivered += len;
        self.delivered_at = now;
        self.acked_in_round += 1;
    }

    /// A datagram was lost.
    pub fn on_loss(&mut self) {
        self.lost_in_round += 1;
    }

    /// All numbers of an ack were looked at; `newest` is the one of them that was sent last.
    pub fn on_acks_done(&mut self, now: Instant, newest: Option<Snapshot>, in_flight: u64, rtt: &Rtt) {
        if let Some(newest) = newest {
            self.first_sent_at = self.first_sent_at.max(newest.sent_at);
            if newest.delivered >= self.round_ends_at {
                self.start_round();
            }
            self.measure(now, newest, rtt);
        }
        self.change_phase(now, in_flight, rtt);
    }

    /// Another path: it starts from what is known, and learns again.
    pub fn on_new_path(&mut self, now: Instant) {
        let rate = self.rate();
        *self = Self { delivered: self.delivered, ..Self::new(now) };
        self.rates[0] = rate / 2.0;
        self.round_ends_at = self.delivered;
    }

    /// Bytes per second that arrive.
    pub fn rate(&self) -> f64 {
        self.rates.iter().fold(0.0, |most: f64, &rate| most.max(rate))
    }

    /// Bytes per second to send.
    pub fn pacing_rate(&self, rtt: &Rtt) -> f64 {
        let unknown = INITIAL_WINDOW as f64 / rtt.smoothed().as_secs_f64().max(0.001);
        let rate = self.rate() / (1.0 - self.random_loss());
        let rate = match self.phase {
            Phase::Startup => STARTUP_GAIN * rate.max(unknown),
            Phase::Drain => rate / STARTUP_GAIN,
            Phase::Cruise => CYCLE[self.cycle] * rate,
            Phase::ProbeRtt => rate,
        };
        rate.max(2_000.0)
    }

    /// Bytes that may be under way.
    pub fn window(&self, rtt: &Rtt) -> u64 {
        let path = self.path(rtt);
        match self.phase {
            Phase::Startup => ((STARTUP_GAIN * path) as u64).max(INITIAL_WINDOW),
            Phase::Drain | Phase::Cruise => (self.window_gain(rtt) * path) as u64 + SMALLEST_WINDOW,
            Phase::ProbeRtt => ((path / 2.0) as u64).max(SMALLEST_WINDOW),
        }
    }

    /// The share of datagrams that is lost whatever is done.
    pub fn random_loss(&self) -> f64 {
        if self.loss_windows < 3 {
            return 0.0;
        }
        let known = &self.losses[..self.loss_windows.min(LOSS_ROUNDS)];
        known.iter().fold(MOST_RANDOM_LOSS, |least, &loss| least.min(loss))
    }

    /// What the path holds, in bytes.
    fn path(&self, rtt: &Rtt) -> f64 {
        self.rate() / (1.0 - self.random_loss()) * rtt.min().max(SHORTEST_RTT).as_secs_f64()
    }

    fn window_gain(&self, rtt: &Rtt) -> f64 {
        let queue = rtt.smoothed() > rtt.min() * 5 / 4 + Duration::from_millis(2);
        if queue && self.cycle != 0 { WINDOW_GAIN_WITH_QUEUE } else { WINDOW_GAIN }
    }

    fn start_round(&mut self) {
        self.round += 1;
        self.round_ends_at = self.delivered;
        self.rates[self.round as usize % RATE_ROUNDS] = 0.0;
        let all = self.acked_in_round + self.lost_in_round;
        let loss = f64::from(self.lost_in_round) / f64::from(all.max(1));
        if self.phase == Phase::Startup && self.delivered > self.app_limited_until {
            self.look_whether_full(loss);
        }
        if all >= ENOUGH_FOR_A_RATE {
            // What is lost while the start floods the path says nothing about chance.
            if self.phase == Phase::Cruise {
                self.losses[self.loss_windows % LOSS_ROUNDS] = loss;
                self.loss_windows += 1;
            }
            (self.acked_in_round, self.lost_in_round) = (0, 0);
        }
    }

    /// Three rounds without growth, or one in which much was lost besides, are enough.
    fn look_whether_full(&mut self, loss: f64) {
        let rate = self.rate();
        if rate >= self.full_rate * 1.25 {
            self.full_rate = rate;
            self.full_rounds = 0;
        } else {
            self.full_rounds += if loss > FLOODED { FULL_ROUNDS } else { 1 };
        }
    }

    fn measure(&mut self, now: Instant, newest: Snapshot, rtt: &Rtt) {
        let sending = newest.sent_at.saturating_duration_since(newest.first_sent_at);
        let arriving = now.saturating_duration_since(newest.delivered_at);
        let interval = sending.max(arriving);
        // In less than a round trip nothing can have been acked that was sent after the snapshot.
        if interval < rtt.min() * 7 / 8 || interval.is_zero() {
            return;
        }
        let rate = (self.delivered - newest.delivered) as f64 / interval.as_secs_f64();
        if !newest.app_limited || rate > self.rate() {
            let place = &mut self.rates[self.round as usize % RATE_ROUNDS];
            *place = place.max(rate);
        } else {
            // A stream that does not use the path can't say that the path has become slower.
            let rate = self.rate();
            self.rates[self.round as usize % RATE_ROUNDS] = rate;
        }
    }

    fn change_phase(&mut self, now: Instant, in_flight: u64, rtt: &Rtt) {
        match self.phase {
            Phase::Startup if self.full_rounds >= FULL_ROUNDS => self.phase = Phase::Drain,
            Phase::Drain if in_flight as f64 <= self.path(rtt) => self.cruise(now),
            Phase::Cruise => self.turn(now, in_flight, rtt),
            Phase::ProbeRtt if self.probe_rtt_until.is_some_and(|until| now >= until) => self.cruise(now),
            _ => {}
        }
        let measured = rtt.min_at().map_or(now, |at| at.max(self.probe_rtt_at));
        if self.phase == Phase::Cruise && now.saturating_duration_since(measured) > PROBE_RTT_AFTER {
            self.phase = Phase::ProbeRtt;
            self.probe_rtt_until = Some(now + PROBE_RTT_FOR.max(rtt.smoothed()));
        }
    }

    fn cruise(&mut self, now: Instant) {
        self.phase = Phase::Cruise;
        self.cycle = 2;
        self.cycle_at = now;
        self.probe_rtt_at = now;
    }

    fn turn(&mut self, now: Instant, in_flight: u64, rtt: &Rtt) {
        let long_enough = now.saturating_duration_since(self.cycle_at) >= rtt.min();
        let done = match self.cycle {
            1 => long_enough || in_flight as f64 <= self.path(rtt),
            _ => long_enough,
        };
        if done {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            if self.cycle == 2 {
                // Any number that differs between connections is chance enough.
                let chance = (self.delivered ^ self.round << 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                self.cycle += (chance % EARLIER) as usize;
            }
            self.cycle_at = now;
        }
    }
}
