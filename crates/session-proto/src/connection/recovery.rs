//! What is lost, what is kept, and what is done while nothing comes back (S24, S25, S31).

use super::{ASK_AFTER, BURST_AFTER_SILENCE, Connection, Losses, PROBE_EVERY, REVIVE_AFTER, REVIVE_EVERY, Side};
use std::time::{Duration, Instant};

impl Connection {
    pub(super) fn detect(&mut self, now: Instant) {
        let thin = self.thin.is_thin();
        let threshold = if thin { 1 } else { 3 } + u64::from(self.patience / 4);
        let losses = self.outgoing.detect(now, threshold, self.rtt.loss_delay(), self.overdue());
        self.lost(now, losses);
    }

    pub(super) fn lost(&mut self, now: Instant, losses: Losses) {
        (0..losses.all).for_each(|_| self.congestion.on_loss());
        if losses.copied > 0 {
            self.thin.on_copy_lost(now);
        }
    }

    /// After what time a message is lost although nothing that was sent later is acked: for a thin stream when the answer
    /// is overdue; and when nothing comes back at all, after the timeout, so that the window does not stay full.
    pub(super) fn overdue(&self) -> Option<Duration> {
        if self.silent { Some(self.rtt.base_rto()) } else { self.thin.is_thin().then(|| self.thin_timeout()) }
    }

    fn thin_timeout(&self) -> Duration {
        self.rtt.thin_timeout() + self.thin.slack() + Duration::from_millis(self.patience.into())
    }

    /// Frees what was acked two timeouts ago (S24). What is sent so fast that this would be too much is freed earlier, but not
    /// before the receiver could have asked for it twice.
    pub(super) fn release(&mut self, now: Instant) {
        let (after, hurried) = self.keep_for();
        self.outgoing.release(now, after, hurried);
    }

    pub(super) fn keep_for(&self) -> (Duration, Duration) {
        (2 * self.rtt.base_rto(), 2 * (self.rtt.smoothed() + 4 * self.rtt.variation() + 2 * ASK_AFTER))
    }

    /// When a sender that was turned away has room again, although no ack comes.
    pub(super) fn room_at(&self) -> Option<Instant> {
        let (after, hurried) = self.keep_for();
        self.outgoing.release_at(after, hurried).filter(|_| self.wants_room)
    }

    /// The peer is heard of, or there is nothing that it would have to say.
    pub(super) fn progress(&mut self, now: Instant) {
        self.last_progress = now;
        self.probes = 0;
        self.rtt.reset_backoff();
        if std::mem::take(&mut self.silent) {
            // The path may be another one now. What a thin stream could not say meanwhile is little, and goes at once.
            self.congestion.on_new_path(now);
            self.burst = if self.thin.is_thin() { BURST_AFTER_SILENCE } else { 0 };
        }
    }

    /// When it counts as silence that nothing comes back.
    pub(super) fn silent_at(&self) -> Option<Instant> {
        (!self.silent && self.outgoing.oldest_sent().is_some()).then(|| self.last_progress + self.rtt.base_rto())
    }

    /// When the oldest message is to be repeated whatever happens.
    pub(super) fn probe_at(&self) -> Option<Instant> {
        let (_, sent_at) = self.outgoing.oldest_sent()?;
        let heard_since = self.last_heard > sent_at && self.probes > 0;
        let wait = match self.probes {
            0 if self.thin.is_thin() => self.thin_timeout(),
            0 => self.rtt.rto(),
            _ if heard_since => self.rtt.rto(),
            _ => self.rtt.rto().min(PROBE_EVERY),
        };
        Some(sent_at + wait)
    }

    /// When a client that hears nothing has to show itself with a number that is above all the server has seen: its address
    /// may have changed, and nothing else moves the session (S31).
    pub(super) fn revive_at(&self) -> Option<Instant> {
        let since = self.unanswered_since.filter(|_| self.channel.side == Side::Client)?;
        let first = since + REVIVE_AFTER.max(2 * self.rtt.base_rto());
        Some(self.last_revival.map_or(first, |last| first.max(last + REVIVE_EVERY)))
    }
}
