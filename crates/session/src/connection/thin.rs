//! Thin streams: what a game sends is little, so it can be repeated early when the network is bad (S25).
//!
//! A stream is thin as long as it stays under a rate. While a noticeable share of its messages gets lost, each small one is
//! sent twice, a moment apart: that doubles at most the bytes of a stream that is thin, and never more. One message in
//! [`CONTROL`] goes without a copy, because only such messages show how much is still lost.

use rallypoint_wire::session::MessageNumber;
use std::time::{Duration, Instant};

/// A message longer than this is not copied.
const LARGEST_COPIED: usize = 320;

/// Copies begin when this share of messages is lost, and end when it is less than the second.
const BEGIN: f64 = 0.03;
const END: f64 = 0.015;

/// One message in so many goes without a copy.
const CONTROL: u32 = 24;

/// How much a single message changes the measured loss: little, so that one lost in a hundred is not yet a bad network;
/// and more while only a few messages tell.
const WEIGHT: f64 = 1.0 / 128.0;
const CONTROL_WEIGHT: f64 = 1.0 / 40.0;

/// How many seconds' worth of bytes may come at once.
const DEPTH: f64 = 0.5;

#[derive(Debug)]
pub(crate) struct Thin {
    rate: f64,
    tokens: f64,
    at: Instant,
    loss: f64,
    copying: bool,
}

impl Thin {
    /// A stream of less than `rate` bytes per second is thin.
    pub fn new(now: Instant, rate: u32) -> Self {
        let rate = f64::from(rate);
        Self { rate, tokens: rate * DEPTH, at: now, loss: 0.0, copying: false }
    }

    /// A new message is sent.
    pub fn on_send(&mut self, now: Instant, len: usize) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        let most = self.rate * DEPTH;
        self.tokens = ((self.tokens + self.rate * elapsed).min(most) - len as f64).max(0.0);
    }

    /// A message that was sent once arrived or did not.
    pub fn on_fate(&mut self, lost: bool) {
        let weight = if self.copying { CONTROL_WEIGHT } else { WEIGHT };
        self.loss += (f64::from(u8::from(lost)) - self.loss) * weight;
        self.copying = self.loss >= if self.copying { END } else { BEGIN };
    }

    pub fn is_thin(&self) -> bool {
        self.tokens * 4.0 > self.rate * DEPTH
    }

    /// Whether a message is to be sent twice.
    pub fn wants_copy(&self, number: MessageNumber, len: usize) -> bool {
        self.copying && len <= LARGEST_COPIED && self.is_thin() && !number.get().is_multiple_of(CONTROL)
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
