//! Thin streams: what a game sends is little, so it can be repeated early when the network is bad (S25).
//!
//! A stream is thin as long as it stays under a rate. When a noticeable share of its messages gets lost, each small one is
//! sent twice, a moment apart: that at most doubles the bytes of a stream that is thin, and has a budget of its own. It goes
//! on as long as both of two get lost now and then, which is how a loss shows that is hidden by the copies.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

/// A message longer than this is not copied.
const LARGEST_COPIED: usize = 320;

/// Copies cost at most so many bytes per second.
const COPY_RATE: f64 = 16_000.0;

/// They begin when this share of messages is lost: the longer the path, the later a repeat comes, and the sooner a copy pays.
/// 3 % up to 50 ms, 1 % from 150 ms on.
const BEGIN: RangeInclusive<f64> = 0.01..=0.03;
const BEGIN_TIMES_RTT: f64 = 0.001_5;

/// They end after so long without a message that was lost twice. At 60 messages per second and a loss of 3 %, one is lost
/// twice every 18 s.
const GO_ON_FOR: Duration = Duration::from_secs(30);

/// How much a single message changes the measured loss: little, so that one lost in a hundred is not yet a bad network.
const WEIGHT: f64 = 1.0 / 128.0;

/// Messages that are sent this close to each other, so many of them, are acked two at a time (W31). If such an ack gets lost,
/// the one that says the same comes two messages later, and until then nothing is overdue. A message that got lost itself
/// shows earlier: the next one is then acked at once.
const EVEN: Duration = Duration::from_millis(20);
const EVEN_AFTER: u8 = 4;
const EVEN_SLACK: Duration = Duration::from_millis(35);

#[derive(Debug)]
pub(crate) struct Thin {
    /// What new messages may cost.
    stream: Bucket,
    /// What copies may cost.
    copies: Bucket,
    loss: f64,
    copies_until: Option<Instant>,
    last_sent: Instant,
    /// How many messages in a row were sent within [`EVEN`] of each other.
    even: u8,
}

impl Thin {
    /// A stream of less than `rate` bytes per second is thin.
    pub fn new(now: Instant, rate: u32) -> Self {
        let rate = f64::from(rate);
        let copies = Bucket::new(now, COPY_RATE.min(rate));
        Self { stream: Bucket::new(now, rate), copies, loss: 0.0, copies_until: None, last_sent: now, even: 0 }
    }

    /// A new message is sent.
    pub fn on_send(&mut self, now: Instant, len: usize) {
        self.stream.take(now, len);
        self.copies.take(now, 0);
        let soon = now.saturating_duration_since(self.last_sent) <= EVEN;
        self.even = if soon { (self.even + 1).min(EVEN_AFTER) } else { 0 };
        self.last_sent = now;
    }

    /// A message is sent a second time to be sure.
    pub fn on_copy(&mut self, now: Instant, len: usize) {
        self.copies.take(now, len);
    }

    /// A message that was sent once arrived or did not, on a path with this time to an answer.
    pub fn on_fate(&mut self, now: Instant, lost: bool, rtt: Duration) {
        self.loss += (f64::from(u8::from(lost)) - self.loss) * WEIGHT;
        let begin = (BEGIN_TIMES_RTT / rtt.as_secs_f64().max(0.001)).clamp(*BEGIN.start(), *BEGIN.end());
        if lost && self.loss >= begin {
            self.copies_until = Some(now + GO_ON_FOR);
            // When it is over, little is needed to begin again.
            self.loss = begin * 0.75;
        }
    }

    /// A message that was sent twice got lost twice.
    pub fn on_copy_lost(&mut self, now: Instant) {
        self.copies_until = Some(now + GO_ON_FOR);
    }

    pub fn is_thin(&self) -> bool {
        self.stream.has_quarter()
    }

    /// Whether a message is to be sent twice. What was lost once already always is: others wait for it.
    pub fn wants_copy(&self, now: Instant, len: usize, again: bool) -> bool {
        let bad = again || self.copies_until.is_some_and(|until| now < until);
        bad && len <= LARGEST_COPIED && self.is_thin() && self.copies.has_quarter()
    }

    /// How much later than otherwise an ack is overdue.
    pub fn slack(&self) -> Duration {
        if self.even >= EVEN_AFTER { EVEN_SLACK } else { Duration::ZERO }
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

/// How many bytes may come, per second and at once.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    tokens: f64,
    at: Instant,
}

/// How many seconds' worth of bytes may come at once.
const DEPTH: f64 = 0.5;

impl Bucket {
    fn new(now: Instant, rate: f64) -> Self {
        Self { rate, tokens: rate * DEPTH, at: now }
    }

    fn take(&mut self, now: Instant, len: usize) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.tokens = ((self.tokens + self.rate * elapsed).min(self.rate * DEPTH) - len as f64).max(0.0);
    }

    /// As of the last [`take`](Self::take), which is a moment ago when it matters.
    fn has_quarter(&self) -> bool {
        self.tokens * 4.0 > self.rate * DEPTH
    }
}
