//! Thin streams: what a game sends is little, so it can be repeated early when the network is bad (S25).
//!
//! A stream is thin as long as it stays under a rate. When a noticeable share of its messages gets lost, each small one is
//! sent twice, a moment apart: that doubles at most the bytes of a stream that is thin, and never more. It goes on as long as
//! both of two get lost now and then, which is how a loss shows that is hidden by the copies.

use std::time::{Duration, Instant};

/// A message longer than this is not copied.
const LARGEST_COPIED: usize = 320;

/// Copies begin when this share of messages is lost.
const BEGIN: f64 = 0.03;

/// They end after so long without a message that was lost twice. At 60 messages per second and a loss of 3 %, one is lost
/// twice every 18 s.
const GO_ON_FOR: Duration = Duration::from_secs(30);

/// How much a single message changes the measured loss: little, so that one lost in a hundred is not yet a bad network.
const WEIGHT: f64 = 1.0 / 128.0;

/// How many seconds' worth of bytes may come at once.
const DEPTH: f64 = 0.5;

#[derive(Debug)]
pub(crate) struct Thin {
    rate: f64,
    tokens: f64,
    at: Instant,
    loss: f64,
    copies_until: Option<Instant>,
}

impl Thin {
    /// A stream of less than `rate` bytes per second is thin.
    pub fn new(now: Instant, rate: u32) -> Self {
        let rate = f64::from(rate);
        Self { rate, tokens: rate * DEPTH, at: now, loss: 0.0, copies_until: None }
    }

    /// A new message is sent.
    pub fn on_send(&mut self, now: Instant, len: usize) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        let most = self.rate * DEPTH;
        self.tokens = ((self.tokens + self.rate * elapsed).min(most) - len as f64).max(0.0);
    }

    /// A message that was sent once arrived or did not.
    pub fn on_fate(&mut self, now: Instant, lost: bool) {
        self.loss += (f64::from(u8::from(lost)) - self.loss) * WEIGHT;
        if self.loss >= BEGIN {
            self.copies_until = Some(now + GO_ON_FOR);
            // If it was a mistake, or when it is over, little is needed to begin again.
            self.loss = BEGIN / 2.0;
        }
    }

    /// A message that was sent twice got lost twice.
    pub fn on_copy_lost(&mut self, now: Instant) {
        self.copies_until = Some(now + GO_ON_FOR);
    }

    pub fn is_thin(&self) -> bool {
        self.tokens * 4.0 > self.rate * DEPTH
    }

    /// Whether a message is to be sent twice. What was lost once already always is: others wait for it.
    pub fn wants_copy(&self, now: Instant, len: usize, again: bool) -> bool {
        let bad = again || self.copies_until.is_some_and(|until| now < until);
        bad && len <= LARGEST_COPIED && self.is_thin()
    }

    /// How long after the first the second is sent: losses often come in a row.
    pub fn copy_after(rtt: Duration) -> Duration {
        (rtt / 16).clamp(Duration::from_millis(1), Duration::from_millis(8))
    }

    /// The measured loss of single messages.
    pub fn loss(&self) -> f64 {
        self.loss
    }
}
