//! The rate at which the path delivers, measured in rounds: a round trip each.

use std::time::{Duration, Instant};

/// Number of rounds for which a measured rate is valid.
const RATE_ROUNDS: usize = 10;

/// Delivery state at the time a datagram is sent, from which its ack derives a delivery rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliverySnapshot {
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Whether the application had too little to send.
    pub(super) app_limited: bool,
}

/// The delivery rate of the last rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryRate {
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
}

// Indexing in this file cannot fail: indices are taken modulo the length of their array.
impl DeliveryRate {
    /// `delivered` is the number of bytes acked before.
    pub fn new(now: Instant, delivered: u64) -> Self {
        Self {
            delivered,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: 0,
            round: 0,
            round_ends_at: delivered,
            rates: [0.0; _],
        }
    }

    /// The state on a path that has changed: half of the rate of the former one is assumed until something is measured.
    pub fn on_new_path(&self, now: Instant) -> Self {
        let mut new = Self::new(now, self.delivered);
        new.rates[0] = self.rate() / 2.0;
        new
    }

    /// A datagram is sent; `in_flight` are the bytes in flight before it.
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
            app_limited: self.app_limited_until > 0 && self.is_app_limited(),
        }
    }

    /// The application has nothing to send.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// A datagram is acked.
    pub fn on_ack(&mut self, now: Instant, len: u64) {
        self.delivered += len;
        self.delivered_at = now;
    }

    /// This is the newest of the datagrams that an ack names. Returns whether that ends the round.
    pub fn on_newest_ack(&mut self, newest: DeliverySnapshot) -> bool {
        self.first_sent_at = self.first_sent_at.max(newest.sent_at);
        newest.delivered >= self.round_ends_at
    }

    pub fn start_round(&mut self) {
        self.round += 1;
        self.round_ends_at = self.delivered;
        *self.current() = 0.0;
    }

    /// Takes a sample. In less than the shortest round trip nothing can have been acked that was sent after the snapshot.
    pub fn measure(&mut self, now: Instant, newest: DeliverySnapshot, min_rtt: Duration) {
        let sending = newest.sent_at.saturating_duration_since(newest.first_sent_at);
        let arriving = now.saturating_duration_since(newest.delivered_at);
        let interval = sending.max(arriving);
        if interval < min_rtt * 7 / 8 || interval.is_zero() {
            return;
        }
        let rate = (self.delivered - newest.delivered) as f64 / interval.as_secs_f64();
        let max = self.rate();
        let current = self.current();
        // A stream that does not use the path cannot show that the path has become slower.
        *current = if !newest.app_limited || rate > max { current.max(rate) } else { max };
    }

    /// Number of the current round.
    pub fn round(&self) -> u64 {
        self.round
    }

    pub fn is_app_limited(&self) -> bool {
        self.delivered <= self.app_limited_until
    }

    /// Delivery rate of the path in bytes per second.
    pub fn rate(&self) -> f64 {
        self.rates.iter().fold(0.0, |max: f64, &rate| max.max(rate))
    }

    /// Delivery rate of this round and the last.
    pub fn last_rate(&self) -> f64 {
        let last = self.rates[(self.round.saturating_sub(1)) as usize % RATE_ROUNDS];
        last.max(self.rates[self.round as usize % RATE_ROUNDS])
    }

    /// The rate of the current round.
    fn current(&mut self) -> &mut f64 {
        &mut self.rates[self.round as usize % RATE_ROUNDS]
    }
}
