//! Redundancy for thin streams: a game sends little, so on a lossy network each message can be sent twice (S25).
//!
//! A stream is thin as long as it stays below a rate. When a noticeable share of its messages is lost, each small message is
//! sent a second time a moment later. That at most doubles the bytes of a thin stream, and copies have a budget of their own.
//! Copying continues as long as both transmissions of a message are lost now and then, which is how a loss shows that the
//! copies otherwise hide.
//!
//! Where the loss comes from a full queue, copies make it worse. So nothing is copied while the round-trip time shows a queue,
//! and copying that coincides with a queue, or does not lower the loss, is suspended, each time for longer.

use super::{average::flush_subnormal, byte_bucket::ByteBucket, steady_stream::SteadyStream};
use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

/// Maximum length of a datagram that is copied.
const MAX_COPIED_LEN: usize = 320;

/// Maximum rate of copies of one connection, in bytes per second.
const COPY_RATE: f64 = 16_000.0;

/// Share of lost messages at which copying starts: the longer the path, the later a resend arrives, and the sooner a copy
/// pays. 3 % up to 50 ms, 1 % from 150 ms on.
const START_LOSS: RangeInclusive<f64> = 0.01..=0.03;

/// In between, that share is this number of seconds divided by the round-trip time.
const START_LOSS_TIMES_RTT: f64 = 0.001_5;

/// Copying stops after this time without a message whose two transmissions were both lost, which happens every 18 s at 60
/// messages per second and a loss of 3 %.
const MAX_COPY_PERIOD: Duration = Duration::from_secs(30);

/// The same for the first time, because the loss may be over, unless something is lost soon after its end (W76).
const MIN_COPY_PERIOD: Duration = Duration::from_secs(6);

/// Round-trip time up to which the period is the shortest. On longer paths, where a loss costs more than copies do, it is longer in
/// proportion.
const SHORT_RTT: Duration = Duration::from_millis(50);

/// A loss this soon after the end of copying shows that it ended too early.
const EARLY_END: Duration = Duration::from_secs(5);

/// How long copying is suspended the first time.
const MIN_SUSPENSION: Duration = Duration::from_secs(5);

/// How long it is suspended at most.
const MAX_SUSPENSION: Duration = Duration::from_secs(300);

/// Weight of a single copied message in the loss of copied messages.
const COPIED_LOSS_WEIGHT: f64 = 1.0 / 64.0;

/// Number of copied messages before that loss says something.
const MIN_COPIED: u32 = 128;

/// Copies do not pay where more than this share is lost in spite of them.
const MAX_COPIED_LOSS: f64 = 0.25;

/// Weight of a single message in the measured loss: low, so that one loss in a hundred messages does not count as a bad
/// network.
const LOSS_WEIGHT: f64 = 1.0 / 128.0;

/// The peer acks two messages of a steady stream at a time (W31). If such an ack is lost, the next one with the same numbers
/// comes two messages later, and nothing is overdue before that, which takes up to this long. A lost message shows earlier: the
/// message after it is acked at once.
const STEADY_ACK_SLACK: Duration = Duration::from_millis(35);

/// Decides whether a stream is thin, and which messages are sent twice.
#[derive(Debug)]
pub(crate) struct Redundancy {
    /// Byte budget below which the stream counts as thin.
    stream: ByteBucket,
    /// Byte budget of copies.
    copies: ByteBucket,
    /// Measured share of messages whose first transmission was lost.
    loss: f64,
    /// Every small message is copied until this time.
    copy_until: Option<Instant>,
    copy_period: Duration,
    /// Measured share of copied messages that were lost both times, and the number of copied messages.
    copied_loss: f64,
    copied: u32,
    /// Nothing is copied until this time.
    suspended_until: Option<Instant>,
    /// How long copying was suspended the last time.
    suspension: Duration,
    sent: SteadyStream,
}

impl Redundancy {
    /// A stream below `rate` bytes per second counts as thin.
    pub fn new(now: Instant, rate: u32) -> Self {
        let rate = f64::from(rate);
        Self {
            stream: ByteBucket::new(now, rate),
            copies: ByteBucket::new(now, COPY_RATE.min(rate)),
            loss: 0.0,
            copy_until: None,
            copy_period: MIN_COPY_PERIOD,
            copied_loss: 0.0,
            copied: 0,
            suspended_until: None,
            suspension: Duration::ZERO,
            sent: SteadyStream::new(now),
        }
    }

    /// A new message is sent.
    pub fn on_send(&mut self, now: Instant, len: usize) {
        self.stream.take(now, len);
        self.copies.take(now, 0);
        self.sent.on_message(now);
    }

    /// A copy is sent.
    pub fn on_copy(&mut self, now: Instant, len: usize) {
        self.copies.take(now, len);
    }

    /// The first transmission of an uncopied message turned out to be lost or received; `rtt` is the round-trip time.
    pub fn on_first_transmission(&mut self, now: Instant, lost: bool, rtt: Duration) {
        self.loss = flush_subnormal(self.loss + (f64::from(u8::from(lost)) - self.loss) * LOSS_WEIGHT);
        if !lost {
            return;
        }
        let threshold = (START_LOSS_TIMES_RTT / rtt.as_secs_f64()).clamp(*START_LOSS.start(), *START_LOSS.end());
        if self.loss >= threshold && !self.is_suspended(now) {
            if self.suspended_until.is_some_and(|until| now > until + 4 * self.suspension) {
                self.suspension = Duration::ZERO;
            }
            self.copy_period = match self.copy_until {
                // It is still going on, or has just ended.
                Some(until) if now < until => self.copy_period,
                Some(until) if now < until + EARLY_END => MAX_COPY_PERIOD,
                _ => min_copy_period(rtt),
            };
            self.copy_until = Some(now + self.copy_period);
            self.copied_loss = 0.0;
            self.copied = 0;
            // After copying has stopped, little is needed to start again.
            self.loss = threshold * 0.75;
        }
    }

    /// Both transmissions of a copied message were lost.
    pub fn on_copied_message_lost(&mut self, now: Instant) {
        if self.is_copying(now) {
            self.copy_until = Some(now + self.copy_period);
        }
    }

    /// A copied message turned out to be lost both times, or received.
    pub fn on_copied_message(&mut self, now: Instant, lost: bool) {
        self.copied = self.copied.saturating_add(1);
        let copied_loss = self.copied_loss + (f64::from(u8::from(lost)) - self.copied_loss) * COPIED_LOSS_WEIGHT;
        self.copied_loss = flush_subnormal(copied_loss);
        if lost && self.copied > MIN_COPIED && self.copied_loss > MAX_COPIED_LOSS {
            self.suspend(now);
        }
    }

    /// The round-trip time shows a queue.
    pub fn on_queue(&mut self, now: Instant) {
        if self.is_copying(now) {
            self.suspend(now);
        }
    }

    fn suspend(&mut self, now: Instant) {
        self.suspension = (2 * self.suspension).clamp(MIN_SUSPENSION, MAX_SUSPENSION);
        self.suspended_until = Some(now + self.suspension);
        self.copy_until = None;
    }

    fn is_suspended(&self, now: Instant) -> bool {
        self.suspended_until.is_some_and(|until| now < until)
    }

    fn is_copying(&self, now: Instant) -> bool {
        self.copy_until.is_some_and(|until| now < until)
    }

    /// Whether the stream stays below the rate of a thin one.
    pub fn is_low_rate(&self) -> bool {
        self.stream.has_quarter()
    }

    /// Whether a datagram of this length should be copied. A resend always is: other messages wait for it.
    pub fn should_copy(&self, now: Instant, len: usize, is_resend: bool) -> bool {
        let is_lossy = (is_resend && !self.is_suspended(now)) || self.is_copying(now);
        is_lossy && len <= MAX_COPIED_LEN && self.is_low_rate() && self.copies.has_quarter()
    }

    /// Whether the last messages were sent so soon after each other that the peer may delay the ack of one until the next arrives.
    pub fn is_dense(&self) -> bool {
        self.sent.is_dense()
    }

    /// Extra time before an ack counts as overdue.
    pub fn ack_slack(&self) -> Duration {
        if self.sent.is_steady() { STEADY_ACK_SLACK } else { Duration::ZERO }
    }

    /// Delay of a copy after its original: losses often come in bursts.
    pub fn copy_delay(rtt: Duration) -> Duration {
        (rtt / 16).clamp(Duration::from_millis(1), Duration::from_millis(8))
    }
}

/// How long copying lasts at first.
fn min_copy_period(rtt: Duration) -> Duration {
    MIN_COPY_PERIOD.mul_f64((rtt.as_secs_f64() / SHORT_RTT.as_secs_f64()).max(1.0)).min(MAX_COPY_PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether new messages are still copied after 256 of which every `interval`th was lost both times.
    fn is_copied_after(interval: u32) -> bool {
        let now = Instant::now();
        let mut redundancy = Redundancy::new(now, 32_000);
        (0..8).for_each(|_| redundancy.on_first_transmission(now, true, Duration::from_millis(50)));
        assert!(redundancy.should_copy(now, 200, false), "many messages are lost");
        for number in 0..256 {
            redundancy.on_copied_message(now, number % interval == 0);
        }
        let is_copied = redundancy.should_copy(now, 200, false);
        assert_eq!(redundancy.should_copy(now, 200, true), is_copied, "resends are copied as well, or neither");
        // While copying is suspended, losses do not start it again.
        redundancy.on_first_transmission(now + MIN_SUSPENSION / 2, true, Duration::from_millis(50));
        assert_eq!(redundancy.should_copy(now + MIN_SUSPENSION / 2, 200, false), is_copied);
        is_copied
    }

    #[test]
    fn w72_copies_stop_if_they_do_not_lower_the_loss() {
        assert!(is_copied_after(10), "a tenth is lost in spite of copies, as at random with a loss of 32 %");
        assert!(!is_copied_after(3), "a third is lost in spite of copies");
    }

    #[test]
    fn a_loss_long_ago_is_forgotten_and_not_subnormal() {
        let now = Instant::now();
        let mut redundancy = Redundancy::new(now, 16_000);
        redundancy.on_first_transmission(now, true, Duration::from_millis(50));
        redundancy.on_copied_message(now, true);
        for _ in 0..100_000 {
            redundancy.on_first_transmission(now, false, Duration::from_millis(50));
            redundancy.on_copied_message(now, false);
        }
        assert_eq!((redundancy.loss, redundancy.copied_loss), (0.0, 0.0));
    }
}
