//! Token buckets of bytes, with which redundancy measures rates.

use std::time::Instant;

/// Depth of a bucket, in seconds at its rate.
const DEPTH: f64 = 0.5;

/// Token bucket in bytes that may be overdrawn: it measures a rate instead of limiting it.
#[derive(Debug)]
pub(super) struct ByteBucket {
    rate: f64,
    tokens: f64,
    at: Instant,
}

impl ByteBucket {
    pub fn new(now: Instant, rate: f64) -> Self {
        Self { rate, tokens: rate * DEPTH, at: now }
    }

    /// Refills the bucket, and takes `len` bytes, or what is left.
    pub fn take(&mut self, now: Instant, len: usize) {
        // Many messages are sent at the same time.
        if now != self.at {
            let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
            self.at = now;
            self.tokens = (self.tokens + self.rate * elapsed).min(self.rate * DEPTH);
        }
        self.tokens = (self.tokens - len as f64).max(0.0);
    }

    /// Whether there are enough bytes, as of now.
    pub fn admits(&mut self, now: Instant, len: usize) -> bool {
        self.take(now, 0);
        self.tokens >= len as f64
    }

    /// Whether more than a quarter of the tokens is left, as of the last [`take`](Self::take), which is a moment ago when it
    /// matters.
    pub fn has_quarter(&self) -> bool {
        self.tokens * 4.0 > self.rate * DEPTH
    }
}
