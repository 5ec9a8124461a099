//! Budget of what resend requests draw (W61).
//!
//! A resend request is not authenticated: 506 bytes can name 63 messages. Loss is found without requests in most cases, so
//! they are served from budgets that are small compared to the stream: one for messages that wait for their ack, and one for
//! messages that were acked. There is one exception: when nothing is acked although the stream waits for it, the receiver may
//! miss messages whose acks were forged, and only requests bring them back. The same holds for a stream that has nothing left to
//! send: there each acked message can be drawn once at a higher rate, so that all requests together draw at most as much as was
//! sent.

use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::{Duration, Instant};

/// Bytes that can be drawn at once: four datagrams.
const BURST: f64 = 4.0 * MAX_DATAGRAM as f64;

/// Rate in bytes per second of a stream that waits for nothing.
const RATE: f64 = 8_000.0;

/// Rate in bytes per second at which acked messages are resent for the first time, once requests for acked messages have
/// continued for [`DISPUTE`] without a pause of that length.
const FIRST_RATE: f64 = 32_000.0;
/// Time for which requests for acked messages have to continue.
const DISPUTE: Duration = Duration::from_secs(1);

/// Share of the rate of the stream while it waits for acks.
const SHARE: f64 = 1.0 / 4.0;

/// Smallest rate in bytes per second of a stream that is stuck: what is known about the path may be forged as well.
const STUCK_RATE: f64 = 64_000.0;

/// Bytes that can be drawn at once from a stream that is stuck: a request for 63 messages.
const STUCK_BURST: f64 = 63.0 * MAX_DATAGRAM as f64;

/// Token buckets of bytes.
#[derive(Debug)]
pub(crate) struct ResendBudget {
    unacked: f64,
    acked: f64,
    /// That of acked messages that are resent for the first time.
    first: f64,
    refilled_at: Instant,
    last_progress: Instant,
    /// When an acked message was last resent, and the first one without a pause since.
    last_disputed: Option<Instant>,
    disputed_since: Instant,
}

/// Whether a datagram of any length can be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResendCredit {
    pub unacked: bool,
    pub acked: bool,
    /// The same for an acked message that was not requested before.
    pub first: bool,
}

impl ResendBudget {
    pub fn new(now: Instant) -> Self {
        Self {
            unacked: BURST,
            acked: BURST,
            first: 0.0,
            refilled_at: now,
            last_progress: now,
            last_disputed: None,
            disputed_since: now,
        }
    }

    /// An ack brought something new, or a message is sent when there was nothing to ack.
    #[inline]
    pub fn on_progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Adds what has accumulated since the last call. `rate` is that of the path in bytes per second, `used` the part of it that
    /// the stream takes: a client that only shows where it is waits for an ack, too. A stream that waits for acks is stuck after
    /// `stuck_after`; that is `None` if it does not wait.
    pub fn refill(&mut self, now: Instant, rate: f64, used: f64, stuck_after: Option<Duration>) {
        let elapsed = now.saturating_duration_since(self.refilled_at).as_secs_f64();
        self.refilled_at = now;
        let is_stuck = stuck_after.is_some_and(|after| now.saturating_duration_since(self.last_progress) > after);
        let share = if stuck_after.is_some() { RATE.max(SHARE * used.min(rate)) } else { RATE };
        let (acked_rate, acked_burst) = if is_stuck { (rate.max(STUCK_RATE), STUCK_BURST) } else { (share, BURST) };
        self.unacked = (self.unacked + elapsed * share).min(BURST);
        self.acked = (self.acked + elapsed * acked_rate).min(acked_burst);
        let has_lasted = now.saturating_duration_since(self.disputed_since) > DISPUTE;
        let is_lasting = self.is_disputed(now, DISPUTE) && has_lasted;
        self.first = if is_lasting { (self.first + elapsed * FIRST_RATE).min(BURST) } else { 0.0 };
    }

    pub fn credit(&self) -> ResendCredit {
        let datagram = MAX_DATAGRAM as f64;
        let acked = self.acked >= datagram;
        ResendCredit { unacked: self.unacked >= datagram, acked, first: acked || self.first >= datagram }
    }

    pub fn charge(&mut self, now: Instant, bytes: usize, is_acked: bool) {
        if !is_acked {
            self.unacked -= bytes as f64;
            return;
        }
        if !self.is_disputed(now, DISPUTE) {
            self.disputed_since = now;
        }
        self.last_disputed = Some(now);
        // Charges the bucket that granted the credit.
        let bucket = if self.acked >= MAX_DATAGRAM as f64 { &mut self.acked } else { &mut self.first };
        *bucket -= bytes as f64;
    }

    /// Whether an acked message was resent within the last `period`: its ack, and others, may be forged.
    pub fn is_disputed(&self, now: Instant, period: Duration) -> bool {
        self.disputed_until(period).is_some_and(|until| now < until)
    }

    /// When no acked message will have been resent for this period.
    pub fn disputed_until(&self, period: Duration) -> Option<Instant> {
        self.last_disputed.map(|at| at + period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes drawn by requests for everything in every millisecond of a second.
    fn drawn(is_acked: bool, rate: f64, stuck_after: Option<Duration>) -> usize {
        let start = Instant::now();
        let mut budget = ResendBudget::new(start);
        let mut drawn = [0, 0];
        for ms in 0..=1_000 {
            let now = start + Duration::from_millis(ms);
            budget.refill(now, rate, rate, stuck_after);
            while if is_acked { budget.credit().acked } else { budget.credit().unacked } {
                budget.charge(now, 508, is_acked);
                drawn[usize::from(ms > 0)] += 508;
            }
        }
        assert_eq!(drawn[0], 4 * 508, "at once");
        drawn[1]
    }

    #[test]
    fn w61_requests_draw_8_kb_per_second_of_an_idle_stream_and_a_quarter_of_the_rate_of_another() {
        for is_acked in [false, true] {
            let idle = drawn(is_acked, 4e5, None);
            assert!((7_500..=8_500).contains(&idle), "{idle}");
            let waiting = drawn(is_acked, 4e5, Some(Duration::from_secs(9)));
            assert!((99_000..=100_500).contains(&waiting), "{waiting}");
        }
    }

    #[test]
    fn w61_requests_draw_the_rate_of_the_path_when_the_stream_is_stuck() {
        let stuck = drawn(true, 1e6, Some(Duration::from_millis(100)));
        assert!((910_000..=930_000).contains(&stuck), "{stuck}");
    }
}
