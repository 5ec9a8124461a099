//! The bandwidth cap of a channel: a token bucket.

use std::time::{Duration, Instant};

/// Burst after a pause, as time at the configured rate.
const BURST: f64 = 0.05;

/// Smallest burst in bytes.
const MIN_BURST: f64 = 1_000.0;

/// Limits a channel to a rate.
#[derive(Debug)]
pub(super) struct RateLimit {
    rate: f64,
    credit: f64,
    at: Option<Instant>,
}

impl RateLimit {
    /// `rate` in bytes per second.
    pub fn new(rate: u32) -> Self {
        Self { rate: rate.into(), credit: 0.0, at: None }
    }

    /// When something may be sent: now or before if at once. The credit may become negative by one datagram.
    pub fn ready_at(&mut self, now: Instant) -> Instant {
        let burst = (self.rate * BURST).max(MIN_BURST);
        let earned = self.at.map_or(burst, |at| now.saturating_duration_since(at).as_secs_f64() * self.rate);
        self.at = Some(now);
        self.credit = (self.credit + earned).min(burst);
        if self.credit > 0.0 { now } else { now + Duration::from_secs_f64((1.0 - self.credit) / self.rate) }
    }

    pub fn on_send(&mut self, bytes: usize) {
        self.credit -= bytes as f64;
    }
}
