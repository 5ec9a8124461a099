//! Handling of received datagrams by a connection.

use super::{
    Connection, DataDisposition, State,
    ack_effect::{AckEffect, AckedMessage, ReceivedAck},
    closing::{PEER_CLOSE_TIMEOUT, PeerClose},
    early_ack_filter::early_share,
    receive_buffer::Insertion,
    redundancy::Redundancy,
    resend_requests::request_delay,
};
use crate::DisconnectReason;
use rallypoint_wire::session::{MessageNumber, NumberList, SealInput};
use std::time::{Duration, Instant};

/// Minimum interval between answers to keepalives (S29).
const KEEPALIVE_ACK_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum time since the last message of a peer that sends a game as well: one that has fallen behind sends a pair per round trip.
const TWO_WAY_INTERVAL: Duration = Duration::from_millis(250);

/// What an ack says about the messages that it names.
#[derive(Clone, Copy, Debug, Default)]
struct AckSummary {
    /// The newly acked message that was sent last.
    newest: Option<AckedMessage>,
    /// Time since the transmission of a message whose ack came too early.
    early: Option<Duration>,
    /// Number of newly acked bytes.
    bytes: u64,
    /// The longest round-trip time of the messages that were sent once.
    longest_rtt: Duration,
    /// Number of those.
    single_count: u32,
}

impl AckSummary {
    #[inline]
    fn add(&mut self, acked: AckedMessage) {
        self.bytes += acked.len;
        if let Some(rtt) = acked.rtt {
            self.longest_rtt = self.longest_rtt.max(rtt);
            self.single_count += 1;
        }
        if self.newest.is_none_or(|newest| acked.order > newest.order) {
            self.newest = Some(acked);
        }
    }
}

impl Connection {
    /// Handles a data datagram that names this session; in a plain session its rand is already verified. `allowance` is the
    /// number of bytes by which the memory may grow.
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        number: MessageNumber,
        bytes: &[u8],
        input: Option<&SealInput>,
        allowance: usize,
    ) -> DataDisposition {
        // A session accepts only its own data type (S20), and an encrypted one no number from its end on (S21).
        if self.is_encrypted() != input.is_some()
            || self.receive.awaits_first_ack
            || self.is_closed()
            || (self.is_encrypted() && number.get() >= MessageNumber::ENCRYPTED_END.get())
        {
            self.stats.dropped += 1;
            return DataDisposition::Unproven;
        }
        let request_delay = request_delay(self.rtt.smoothed());
        let codec = &self.codec;
        let fill = |out: &mut [u8]| codec.protection.open(input, bytes, out);
        match self.receive.buffer.insert(now, number, request_delay, allowance, fill) {
            Insertion::New { is_newest, has_gap } => {
                self.on_received(now);
                self.liveness.last_data = now;
                self.liveness.may_be_misrouted |= has_gap && input.is_none();
                if self.receive.buffer.is_readable() {
                    self.events.readable = true;
                }
                self.stats.messages_received += 1;
                self.receive.acks.on_message(now, number, has_gap);
                if is_newest { DataDisposition::Newest } else { DataDisposition::New }
            }
            // A duplicate may be a replay: it is acked again, and proves nothing (W64).
            Insertion::Duplicate => {
                self.stats.datagrams_received += 1;
                self.liveness.may_be_misrouted = true;
                self.stats.duplicates += 1;
                self.receive.acks.on_duplicate(now, number);
                self.probe_after_silence(now);
                DataDisposition::Duplicate
            }
            Insertion::AboveWindow => {
                self.stats.dropped += 1;
                self.liveness.may_be_misrouted |= input.is_none();
                DataDisposition::Unproven
            }
            Insertion::Stalled => {
                self.stats.dropped += 1;
                self.close_because(now, DisconnectReason::Stalled);
                DataDisposition::Unproven
            }
            Insertion::Rejected => {
                self.stats.dropped += 1;
                self.liveness.may_be_misrouted = true;
                if self.is_encrypted() && self.receive.decryption_failures.add() {
                    self.end(DisconnectReason::DecryptionFailures);
                }
                DataDisposition::Unproven
            }
        }
    }

    pub(crate) fn handle_ack(&mut self, now: Instant, numbers: NumberList<'_>) {
        self.path.on_acks(numbers.iter());
        // No peer acks a message that was not sent, so such an ack is forged as a whole (W62).
        if numbers.iter().any(|number| self.send.buffer.is_unsent(number)) {
            self.stats.dropped += 1;
            self.on_false_ack(now, numbers.iter());
            return self.prepare_challenge(now);
        }
        self.check_repeated_ack(now, numbers);
        let summary = self.process_numbers(self.received_ack(now, numbers));
        self.on_received(now);
        self.prepare_challenge(now);
        if let Some(rtt) = summary.early {
            self.send.early_acks.on_early_ack(now, rtt);
            // The path may have become shorter, which shows the sooner the more messages are acked: then there is no queue.
            self.send.delay_limit.lift();
        }
        let Some(newest) = summary.newest else { return };
        self.send.resend_budget.on_progress(now);
        self.receive.awaits_first_ack = false;
        self.liveness.awaiting_ack_since = self.send.buffer.oldest_sent().map(|_| now);
        let was_silent = self.recovery.is_silent;
        self.on_progress(now);
        self.update_rtt(now, &newest, &summary);
        self.update_delay_limit(now, summary.bytes, was_silent);
        self.congestion.on_acks_done(now, &newest, summary.bytes, &self.rtt);
        if self.send.optimistic_acks.withheld().is_some() {
            self.check_withheld(now);
        }
        self.detect_losses(now);
        self.release(now);
        self.notify_writable();
        self.finish_flush(now);
    }

    /// An ack whose first number was acked before, so not as a repetition, shows that one of the two acks is forged (W62).
    fn check_repeated_ack(&mut self, now: Instant, numbers: NumberList<'_>) {
        let first = numbers.iter().next();
        let Some(repeated) = first.and_then(|number| self.send.buffer.repeated_ack(now, number)) else { return };
        if self.send.early_acks.on_repeated_ack(now, repeated) {
            self.rtt.on_forged_sample(now, repeated);
        }
        if let Some(floor) = self.send.early_acks.login_floor(now) {
            self.rtt.raise_base(now, floor, repeated.second.min(self.send.early_acks.login_ceiling()));
        }
    }

    /// An ack with the time limits for interpreting it.
    fn received_ack<'a>(&self, now: Instant, numbers: NumberList<'a>) -> ReceivedAck<'a> {
        // A queue that has just become shorter may have delayed the last round trips.
        let shortest = if self.send.delay_limit.is_set() { self.rtt.min() } else { self.rtt.recent_min() };
        ReceivedAck {
            now,
            numbers,
            newest: numbers.iter().reduce(MessageNumber::newer).unwrap_or(MessageNumber::FIRST),
            floor: self.send.early_acks.floor(now, self.rtt.base()),
            min_resend_rtt: early_share(shortest),
            evidence_delay: self.rtt.smoothed() + Redundancy::copy_delay(self.rtt.min()),
            repetitions_left: ReceivedAck::MAX_REPETITIONS,
        }
    }

    /// Acks each message that an ack names.
    #[inline]
    fn process_numbers(&mut self, mut ack: ReceivedAck<'_>) -> AckSummary {
        let mut summary = AckSummary::default();
        for number in ack.numbers.iter() {
            match self.send.buffer.on_ack(&mut ack, number) {
                AckEffect::None => {}
                AckEffect::Early(since) => summary.early = Some(since),
                AckEffect::Acked(acked) => {
                    self.on_acked(ack.now, &acked);
                    self.recovery.on_ack(number.get());
                    summary.add(acked);
                }
            }
        }
        summary
    }

    /// A message is acked for the first time.
    #[inline]
    fn on_acked(&mut self, now: Instant, acked: &AckedMessage) {
        self.congestion.on_ack(now, acked.len);
        if acked.is_copied {
            self.send.redundancy.on_copied_message(now, acked.are_all_lost);
        }
        // What a stream loses that has to wait for the window was probably dropped from a queue, where copies do harm.
        if let Some(lost) = acked.loss_sample.filter(|lost| !lost || !self.congestion.is_limited()) {
            self.send.redundancy.on_first_transmission(now, lost, self.rtt.smoothed());
        }
        self.stats.spurious_resends += u64::from(acked.is_spurious_resend);
        if acked.is_spurious_loss {
            // A peer that acks what it has not received could undo every reduction of the window.
            if !self.send.optimistic_acks.is_suspected(now) {
                self.congestion.on_spurious_loss();
            }
            self.recovery.on_spurious_loss(now, self.rtt.smoothed());
        }
    }

    /// Measures the round-trip time. Only the newest message is measured: an ack also repeats numbers whose first ack may have been
    /// lost long ago.
    #[inline]
    fn update_rtt(&mut self, now: Instant, newest: &AckedMessage, summary: &AckSummary) {
        if let Some(rtt) = newest.rtt {
            self.send.early_acks.on_ack(Some(rtt).filter(|_| !newest.is_copied));
            let is_dense = self.send.redundancy.is_dense();
            self.rtt.sample_burst(now, rtt, summary.longest_rtt, summary.single_count, is_dense);
            self.recovery.thin_backoff = 0;
        } else if !self.send.is_blocked && (!newest.is_overtaken || self.send.redundancy.is_low_rate()) {
            // With a full window, and at the end of a download, only resends are in flight for a while.
            self.rtt.on_ambiguous_ack(now, now.saturating_duration_since(newest.first_sent_at));
        }
    }

    /// Limits a game that has fallen behind, after `acked` bytes were acked (W123).
    #[inline]
    fn update_delay_limit(&mut self, now: Instant, acked: u64, was_silent: bool) {
        self.send.offered.update(now, self.send.buffer.next_number());
        let backlog = self.game_backlog();
        let in_flight = self.send.buffer.in_flight() + acked;
        let is_two_way = now.saturating_duration_since(self.receive.acks.last_arrival()) < TWO_WAY_INTERVAL;
        self.send.delay_limit.on_ack(now, acked, in_flight, backlog, is_two_way, &self.rtt);
        if was_silent && self.rtt.is_link_slow() && self.send.redundancy.is_low_rate() {
            self.send.delay_limit.on_silence_end(self.send.buffer.unsent());
        }
    }

    /// Handles a resend request, which anyone may have forged: it is served within a budget of bytes (W61).
    pub(crate) fn handle_resend_request(&mut self, now: Instant, numbers: NumberList<'_>) {
        self.on_received(now);
        // The server may want to know whether this client is still at its address (W54).
        self.liveness.may_be_misrouted = true;
        let is_waiting = self.send.buffer.oldest_sent().is_some();
        let stuck_after = is_waiting.then(|| self.rtt.base_rto());
        let used = self.send.buffer.in_flight() as f64 / self.rtt.smoothed_secs();
        self.send.resend_budget.refill(now, self.congestion.rate(), used, stuck_after);
        let rtt = self.rtt.smoothed();
        for number in numbers.iter() {
            self.on_withheld_request(now, number);
            let credit = self.send.resend_budget.credit();
            if let Some(requested) = self.send.buffer.on_request(now, number, rtt, credit) {
                self.send.resend_budget.charge(now, requested.len, requested.is_acked);
                self.on_losses(now, requested.losses, true);
                self.on_progress(now);
            }
        }
    }

    pub(crate) fn handle_keepalive(&mut self, now: Instant) {
        self.on_received(now);
        let is_open = matches!(self.state, State::Open | State::Flushing { .. });
        let last_ack = self.liveness.last_keepalive_ack;
        if is_open && last_ack.is_none_or(|at| now.saturating_duration_since(at) >= KEEPALIVE_ACK_INTERVAL) {
            self.liveness.last_keepalive_ack = Some(now);
            self.liveness.owes_keepalive_ack = true;
        }
    }

    pub(crate) fn handle_keepalive_ack(&mut self, now: Instant) {
        self.on_received(now);
    }

    /// Handles a disconnect, which anyone may have forged: the peer is sent a keepalive probe, and the session ends if it
    /// does not answer (S28).
    pub(crate) fn handle_disconnect(&mut self, now: Instant, reason: &str) {
        match self.state {
            State::Open | State::Flushing { .. } if self.peer_close.is_none() => {
                let until = now + PEER_CLOSE_TIMEOUT.max(3 * self.rtt.base_rto());
                self.peer_close = Some(PeerClose { until, probe_at: now, reason: reason.to_owned() });
                self.events.closing = true;
            }
            _ => {}
        }
    }

    /// Counts the bytes of a datagram of this session.
    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.stats.bytes_received += bytes as u64;
    }

    /// Raises the event for a sender that was blocked, if there is room again.
    pub(super) fn notify_writable(&mut self) {
        if self.send.is_blocked && self.send.buffer.has_room() {
            self.send.is_blocked = false;
            self.events.writable = true;
        }
    }

    /// A datagram of the peer arrived.
    fn on_received(&mut self, now: Instant) {
        self.liveness.last_received = now;
        self.stats.datagrams_received += 1;
        self.recovery.unanswered_since = None;
        self.probe_after_silence(now);
        // A peer that sends has not disconnected.
        self.peer_close = None;
    }

    /// After a silence the network is back, at least in this direction: the oldest message is resent at once.
    fn probe_after_silence(&mut self, now: Instant) {
        let is_due = |sent_at: Instant| now.saturating_duration_since(sent_at) >= self.rtt.smoothed() / 2;
        if self.recovery.is_silent && self.send.buffer.oldest_sent().is_some_and(|(_, sent_at)| is_due(sent_at)) {
            self.recovery.probe_oldest = true;
        }
    }
}
