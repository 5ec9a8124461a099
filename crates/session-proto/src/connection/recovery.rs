//! Loss detection, probes, and what is sent while nothing comes back (S24, S25, S31).

use super::{
    Connection, Side,
    congestion::LossEvent,
    resend_requests::REQUEST_DELAY,
    send_buffer::{LossCount, Retention},
};
use rallypoint_wire::session::MessageNumber;
use std::time::{Duration, Instant};

/// Interval at which the oldest message is resent while nothing comes back (S25).
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum of that interval if the silence began with a full queue, which frequent probes would keep full.
const MAX_CONGESTED_PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Number of probes for which that holds: a queue does not stay full for seconds in which nothing is sent.
const MAX_CONGESTED_PROBES: u32 = 8;

/// Number of later transmissions that have to be acked before a message counts as lost.
pub(super) const LOSS_THRESHOLD: u64 = 3;

/// The same for a thin stream.
const THIN_LOSS_THRESHOLD: u64 = 1;

/// A spurious resend makes later ones wait for one more ack and this many more milliseconds.
const TOLERANCE_STEP: u32 = 4;

/// Largest number of milliseconds by which they wait longer.
const MAX_TOLERANCE: u32 = 40;

/// Number of acked messages after which one of those milliseconds is forgotten.
const TOLERANCE_DECAY: u32 = 32;

/// Maximum number of times that the timeout of a thin stream is doubled.
const MAX_THIN_BACKOFF: u32 = 4;

/// Time without an answer after which a client sends a new message because its address may have changed: only a new message
/// moves the session to the new address.
const REBIND_PROBE_DELAY: Duration = Duration::from_millis(200);

/// Interval of further ones.
const REBIND_PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Bytes of resends of a thin stream that may be sent at once after a silence: five seconds of a game's traffic.
const BURST_AFTER_SILENCE: usize = 48_000;

/// Minimum time for which acked messages are kept, up to four windows of them. With acks that are forged during an outage of
/// a few seconds, nothing is lost (W63).
const MIN_RETENTION: Duration = Duration::from_secs(10);

/// State of loss recovery.
#[derive(Debug)]
pub(super) struct Recovery {
    /// When an ack last brought something new, or the first message after a pause was sent.
    pub last_progress: Instant,
    /// Whether nothing has come back for longer than the timeout.
    pub is_silent: bool,
    /// Bytes of resends that may be sent regardless of the congestion window.
    pub burst_bytes: usize,
    /// Number of times that the oldest message was probed since something came back.
    pub probes: u32,
    /// The oldest message has to be sent regardless of the congestion window.
    pub probe_oldest: bool,
    /// In silence, another lost message has to be sent as well: the peer may have the oldest one, and be cut off by a new
    /// address.
    pub probe_next: bool,
    /// When something was sent that the peer should have answered by now.
    pub unanswered_since: Option<Instant>,
    pub last_rebind_probe: Option<Instant>,
    /// A new message has to be sent regardless of the congestion window.
    pub rebind_probe: bool,
    /// A message that has to be resent with it.
    pub rebind_resend: Option<MessageNumber>,
    /// Grows with every spurious resend, and makes later ones wait longer.
    pub reordering_tolerance: u32,
    /// Number of times that the timeout of a thin stream is doubled: it passed, and no round trip was measured since.
    pub thin_backoff: u32,
    /// When that was last raised.
    pub thin_backoff_at: Instant,
    /// Nothing is resent before this time: messages that counted as lost turn out to be acked late.
    pub resend_at: Option<Instant>,
}

impl Recovery {
    pub fn new(now: Instant) -> Self {
        Self {
            last_progress: now,
            is_silent: false,
            burst_bytes: 0,
            probes: 0,
            probe_oldest: false,
            probe_next: false,
            unanswered_since: None,
            last_rebind_probe: None,
            rebind_probe: false,
            rebind_resend: None,
            reordering_tolerance: 0,
            thin_backoff: 0,
            thin_backoff_at: now,
            resend_at: None,
        }
    }

    /// A message is acked that counted as lost by mistake. Others that were sent after it are probably only late, too.
    pub fn on_spurious_loss(&mut self, now: Instant, rtt: Duration) {
        self.reordering_tolerance = (self.reordering_tolerance + TOLERANCE_STEP).min(MAX_TOLERANCE);
        self.resend_at = Some(now + rtt / 4);
    }

    /// A message with this number is acked.
    pub fn on_ack(&mut self, number: u32) {
        let decay = u32::from(number.is_multiple_of(TOLERANCE_DECAY));
        self.reordering_tolerance = self.reordering_tolerance.saturating_sub(decay);
    }
}

impl Connection {
    pub(super) fn detect_losses(&mut self, now: Instant) {
        let threshold = if self.is_thin() { THIN_LOSS_THRESHOLD } else { LOSS_THRESHOLD };
        let threshold = threshold + u64::from(self.recovery.reordering_tolerance / TOLERANCE_STEP);
        let losses = self.send.buffer.detect_losses(now, threshold, self.rtt.loss_delay(), self.loss_timeout());
        self.on_losses(now, losses, false);
    }

    pub(super) fn on_losses(&mut self, now: Instant, losses: LossCount, is_requested: bool) {
        if losses.total == 0 {
            return;
        }
        self.send.direct_budget.invalidate();
        let event = LossEvent {
            datagrams: losses.total,
            bytes: losses.bytes,
            newest_order: losses.newest_order,
            next_order: self.send.buffer.next_order(),
            is_silent: self.recovery.is_silent,
            has_timed_out: losses.has_timed_out,
            is_requested,
        };
        self.congestion.on_losses(event, &self.rtt);
        if losses.has_timed_out && now.saturating_duration_since(self.recovery.thin_backoff_at) >= self.rtt.smoothed() {
            self.recovery.thin_backoff = (self.recovery.thin_backoff + 1).min(MAX_THIN_BACKOFF);
            self.recovery.thin_backoff_at = now;
        }
        if losses.copied > 0 {
            self.send.redundancy.on_copied_message_lost(now);
        }
    }

    /// Time after which a message is lost although nothing sent later is acked: on a thin stream when the ack is overdue;
    /// otherwise after the timeout (after two, unless there is silence), so that the congestion window does not stay full.
    pub(super) fn loss_timeout(&self) -> Duration {
        if self.recovery.is_silent {
            self.rtt.base_rto()
        } else if self.is_thin() {
            self.thin_timeout()
        } else {
            2 * self.rtt.base_rto()
        }
    }

    fn thin_timeout(&self) -> Duration {
        let tolerance = Duration::from_millis(self.recovery.reordering_tolerance.into());
        (self.rtt.thin_timeout() + self.send.redundancy.ack_slack() + tolerance) * (1 << self.recovery.thin_backoff)
    }

    /// Whether the stream sends little because the application has little to send, and not because of congestion.
    pub(super) fn is_thin(&self) -> bool {
        self.send.redundancy.is_low_rate() && !self.congestion.is_limited()
    }

    /// Frees messages that were acked long ago, beyond a whole window of them (S24). On a fast stream, where that would be too
    /// many, they are freed earlier, but not before the receiver could have requested them twice.
    pub(super) fn release(&mut self, now: Instant) {
        let is_disputed = self.send.resend_budget.is_disputed(now, MIN_RETENTION);
        self.send.buffer.release(now, Retention { is_disputed, ..self.retention() });
    }

    /// How long acked messages are kept.
    fn retention(&self) -> Retention {
        Retention {
            after: MIN_RETENTION.max(2 * self.rtt.base_rto()),
            shortened: 2 * (self.rtt.smoothed() + 4 * self.rtt.variation() + 2 * REQUEST_DELAY),
            is_memory_scarce: self.send.is_memory_scarce,
            is_disputed: false,
        }
    }

    /// When a blocked sender has room again although no ack arrives.
    pub(super) fn release_at(&self) -> Option<Instant> {
        if !self.send.is_blocked {
            return None;
        }
        let retention = self.retention();
        let at = self.send.buffer.release_at(retention)?;
        let Some(disputed_until) = self.send.resend_budget.disputed_until(MIN_RETENTION) else { return Some(at) };
        // If many messages are kept, a dispute does not hold them.
        let in_dispute = self.send.buffer.release_at(Retention { is_disputed: true, ..retention });
        Some(in_dispute.unwrap_or(at.max(disputed_until)))
    }

    /// The peer has acked something new, or there was nothing for it to ack.
    pub(super) fn on_progress(&mut self, now: Instant) {
        self.recovery.last_progress = now;
        self.recovery.probes = 0;
        self.rtt.reset_backoff();
        if std::mem::take(&mut self.recovery.is_silent) {
            // The path may have changed. What a thin stream has to catch up on is little, and is sent at once, unless the
            // silence began with a full queue.
            let may_burst = self.send.redundancy.is_low_rate() && !self.rtt.had_queue();
            self.congestion.on_new_path(now, self.send.buffer.next_order(), &self.rtt);
            self.recovery.burst_bytes = if may_burst { BURST_AFTER_SILENCE } else { 0 };
        }
    }

    /// When the lack of acks starts to count as silence.
    pub(super) fn silence_at(&self) -> Option<Instant> {
        let is_waiting = !self.recovery.is_silent && self.send.buffer.oldest_sent().is_some();
        is_waiting.then(|| self.recovery.last_progress + self.rtt.base_rto())
    }

    /// When the oldest message has to be resent in any case.
    pub(super) fn probe_at(&self) -> Option<Instant> {
        let (_, sent_at) = self.send.buffer.oldest_sent()?;
        let received_since = self.liveness.last_received > sent_at && self.recovery.probes > 0;
        let timeout = match self.recovery.probes {
            0 if self.is_thin() => self.thin_timeout(),
            0 => self.rtt.rto(),
            _ if received_since => self.rtt.rto(),
            probes if probes <= MAX_CONGESTED_PROBES && self.rtt.had_queue() => {
                self.rtt.rto().min(MAX_CONGESTED_PROBE_INTERVAL)
            }
            _ => self.rtt.rto().min(PROBE_INTERVAL),
        };
        // While acks arrive, lost messages are known by them (RFC 6298, 5.3), up to twice the timeout.
        let is_acked = self.recovery.probes == 0 && self.congestion.is_limited();
        let since = if is_acked { self.recovery.last_progress.clamp(sent_at, sent_at + timeout) } else { sent_at };
        Some(since + timeout)
    }

    /// Prepares the message that moves the session to the address of this client, if that has changed: one above all that the
    /// server has received.
    ///
    /// With a full window it is not known which one that is. If the server has received everything, it is a new one, and the
    /// server has room for another window of those; otherwise it is probably the last of the window (W78).
    pub(super) fn prepare_rebind_probe(&mut self, now: Instant) {
        let buffer = &self.send.buffer;
        let is_possible = buffer.unsent() > 0 || (buffer.has_room_beyond() && !self.has_used_all_numbers());
        self.recovery.rebind_resend = buffer.last_of_full_window();
        self.recovery.rebind_probe = is_possible && (self.send.buffer.unsent() > 0 || self.push_empty(now));
    }

    /// When a client without answers has to send a number above all that the server has received: its address may have
    /// changed, and nothing else moves the session (S31).
    pub(super) fn rebind_probe_at(&self) -> Option<Instant> {
        let since = self.recovery.unanswered_since.filter(|_| self.codec.side == Side::Client)?;
        let first = since + REBIND_PROBE_DELAY.max(2 * self.rtt.base_rto());
        Some(self.recovery.last_rebind_probe.map_or(first, |last| first.max(last + REBIND_PROBE_INTERVAL)))
    }
}
