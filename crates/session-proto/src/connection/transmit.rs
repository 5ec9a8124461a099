//! Transmission: control datagrams first, then messages.

use super::{
    Connection, SendSide, State,
    closing::{DISCONNECT_INTERVAL, PEER_CLOSE_PROBE_INTERVAL},
    copy_budget::CopyBudget,
    redundancy::Redundancy,
};
use rallypoint_machine::Transmit;
use rallypoint_wire::session::{Control, MAX_DATAGRAM, MessageNumber, NumberListBuf};
use std::time::Instant;

/// Maximum number of bytes in a batch: a system sends at most the size of the largest datagram in one call.
const MAX_BATCH_BYTES: usize = 60_000;

/// Maximum number of unsent messages of a thin stream that are sent into a silence.
const MAX_UNSENT_IN_SILENCE: usize = 32;

/// Maximum number of unsent messages of a short backlog: four seconds of a game.
const MAX_SHORT_BACKLOG: usize = 256;

/// The same for a thin stream, which can only be a game that a crowded link has held up for longer. Without the help that a short
/// backlog gets, it would be the last to catch up.
const MAX_THIN_BACKLOG: usize = 1_024;

/// Number of messages that wait from which acks do not repeat numbers: they pass the same link as the messages.
const CROWDED_BACKLOG: usize = 8;

/// Number of keepalives after a message that are replaced by that message. If its ack was forged and it never arrived, the
/// receiver could not know that something is missing (S24).
const TAIL_RESENDS: u8 = 3;

/// Why a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transmission {
    First,
    Resend,
    Copy,
}

impl Connection {
    /// Appends the next datagrams: first what is small and urgent, then messages. All of them have the same length, except
    /// that the last may be shorter.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        copies: &mut CopyBudget,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let start = out.len();
        self.send.paced_until = None;
        self.send.direct_budget.on_transmission(self.send.buffer.unsent());
        let mut count = 1;
        let mut segment = None;
        if self.emit_confirmation_probe(now, out) {
            let len = out.len() - start;
            self.stats.datagrams_sent += 1;
            self.stats.bytes_sent += len as u64;
            return Some(Transmit::one(self.path.peer, len));
        }
        if self.path.is_exhausted() && !matches!(self.state, State::Disconnecting { .. }) {
            return None;
        }
        if self.emit_control(now, out) {
            // A datagram that must not be sent to a new address counts as lost (W34).
            if out.len() > start && !self.path.charge(out.len() - start) {
                out.truncate(start);
            }
        } else {
            let size;
            (count, size) = self.emit_messages(now, copies, out);
            segment = (count > 1).then_some(size);
        }
        let len = out.len() - start;
        if len == 0 {
            return None;
        }
        self.liveness.last_sent = now;
        self.stats.datagrams_sent += count as u64;
        self.stats.bytes_sent += len as u64;
        Some(Transmit { to: self.path.peer, len, segment, from: None })
    }

    /// Appends a control datagram. Returns false if there is none to send, and messages may be sent.
    fn emit_control(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        match &mut self.state {
            State::Closed(_) => return true,
            State::Disconnecting { left, next, reason, text } => {
                if *left == 0 {
                    let reason = reason.clone();
                    self.end(reason);
                } else if now >= *next {
                    *left -= 1;
                    *next = now + DISCONNECT_INTERVAL;
                    self.codec.emit_disconnect(text, out);
                }
                return true;
            }
            State::Open | State::Flushing { .. } => {}
        }
        // The challenge of a new address goes before everything else.
        if self.path.next_challenge().is_some() {
            return false;
        }
        if self.receive.acks.due().is_some_and(|due| now >= due) {
            let is_crowded = self.game_backlog().is_some_and(|backlog| backlog >= CROWDED_BACKLOG);
            self.receive.acks.emit(now, is_crowded, out);
            return true;
        }
        if self.emit_resend_request(now, out) {
            return true;
        }
        if std::mem::take(&mut self.liveness.owes_keepalive_ack) {
            Control::KeepaliveAck.emit(out);
            return true;
        }
        let mut is_keepalive_due = now >= self.liveness.last_sent + self.config.keepalive;
        if let Some(close) = self.peer_close.as_mut().filter(|close| now >= close.probe_at) {
            close.probe_at = now + PEER_CLOSE_PROBE_INTERVAL;
            is_keepalive_due = true;
        }
        if is_keepalive_due {
            self.emit_keepalive(now, out);
        }
        is_keepalive_due
    }

    /// Appends a keepalive, or the last message in its place.
    fn emit_keepalive(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.recovery.unanswered_since.get_or_insert(now);
        let tail = self.send.buffer.newest_sent().filter(|_| self.liveness.tail_resends > 0);
        match tail.map(|number| self.send.buffer.datagram(number)) {
            Some(datagram) if !datagram.is_empty() => {
                out.extend_from_slice(datagram);
                self.liveness.tail_resends -= 1;
            }
            _ => Control::Keepalive.emit(out),
        }
    }

    /// Appends a request for missing messages (S25).
    fn emit_resend_request(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.receive.buffer.request_at().is_none_or(|at| at > now) && self.receive.reopened.is_none() {
            return false;
        }
        let mut list = NumberListBuf::new();
        if let Some(number) = self.receive.reopened.take() {
            list.push(number);
        }
        self.receive.buffer.emit_requests(now, self.rtt.smoothed(), &mut list);
        if list.as_list().is_empty() {
            return false;
        }
        Control::Resend(list.as_list()).emit(out);
        self.recovery.unanswered_since.get_or_insert(now);
        true
    }

    /// Appends messages. Returns their number and the length of the first.
    fn emit_messages(&mut self, now: Instant, copies: &mut CopyBudget, out: &mut Vec<u8>) -> (usize, usize) {
        let start = out.len();
        let mut count = 0;
        let mut size = 0;
        while count < self.config.batch
            && let Some((number, transmission)) = self.next_message(now, copies)
        {
            if transmission == Transmission::Resend && self.apply_discard(now, number) {
                self.stats.discarded += 1;
            }
            let len = self.send.buffer.datagram_len(number);
            if count > 0 && (len > size || out.len() - start + len > MAX_BATCH_BYTES) {
                break;
            }
            if !self.path.charge(len) {
                break;
            }
            // Only a copy that is sent is charged: one that does not fit into this batch comes up again in the next.
            if transmission == Transmission::Copy && !self.is_lost_twice(number) {
                copies.charge(now, len);
            }
            out.extend_from_slice(self.send.buffer.datagram(number));
            self.on_sent(now, number, transmission, len);
            count += 1;
            if count == 1 {
                size = len;
            } else if len < size {
                break;
            }
        }
        (count, size)
    }

    /// The message that may be sent now, if there is one.
    fn next_message(&mut self, now: Instant, copies: &mut CopyBudget) -> Option<(MessageNumber, Transmission)> {
        if let Some(number) = self.path.next_challenge() {
            return Some((number, Transmission::First));
        }
        if let Some(probe) = self.next_probe() {
            return Some(probe);
        }
        while let Some(number) = self.send.buffer.next_copy(now) {
            let len = self.send.buffer.datagram_len(number);
            if self.try_admit_copy(now, number) && (self.is_lost_twice(number) || copies.admits(now, len)) {
                return Some((number, Transmission::Copy));
            }
            self.send.buffer.cancel_copy();
        }
        if let Some(number) = self.next_preceding(now) {
            return Some((number, Transmission::First));
        }
        let (number, transmission) = self.next_candidate(now)?;
        // An acked message is resent only on request, within the budget of requests (W61).
        if transmission == Transmission::Resend && (self.recovery.burst_bytes > 0 || self.send.buffer.is_acked(number))
        {
            return Some((number, transmission));
        }
        self.recovery.burst_bytes = 0;
        if !self.fits_window(number) {
            let is_held_back = self.fits_congestion_window(number);
            self.congestion.on_limited(self.send.short_backlog(), is_held_back);
            return None;
        }
        if !self.is_pacer_ready(now) {
            self.congestion.on_limited(self.send.short_backlog(), false);
            let rate = self.congestion.pacing_rate(&self.rtt, self.send.backlog_rate());
            self.send.paced_until = Some(self.send.pacer.retry_at(rate));
            return None;
        }
        if transmission == Transmission::First && self.withhold(now, number) {
            return self.next_unsent().map(|next| (next, transmission));
        }
        Some((number, transmission))
    }

    /// The message that is next to wait for the window and the pacer.
    #[inline]
    fn next_candidate(&mut self, now: Instant) -> Option<(MessageNumber, Transmission)> {
        let is_silent = self.recovery.is_silent;
        let resend = self.send.buffer.next_resend().filter(|_| !is_silent);
        // Messages that seem to be lost may be acked at any moment if others of that kind just were.
        let is_held = resend.is_some() && self.recovery.resend_at.is_some_and(|at| now < at);
        if is_held {
            self.send.paced_until = self.recovery.resend_at;
        }
        match resend.filter(|_| !is_held) {
            Some(number) => Some((number, Transmission::Resend)),
            None => match self.next_unsent() {
                // Into a silence, only what costs next to nothing is sent: it shows at once when the network is back.
                Some(number) if !is_silent || self.is_trickle() => Some((number, Transmission::First)),
                Some(_) => None,
                None if self.send.source.has_backlog => {
                    self.wait_for_source(now);
                    None
                }
                None => {
                    self.congestion.on_app_limited(self.send.buffer.in_flight());
                    None
                }
            },
        }
    }

    /// Whether a message of a download was lost twice. Everything after it waits for it, so its copy needs no budget.
    fn is_lost_twice(&self, number: MessageNumber) -> bool {
        self.send.buffer.transmissions(number) > 2 && !self.is_thin()
    }

    /// Whether a copy may be sent: window and pacer would admit a message, and there is no queue that it would lengthen.
    fn try_admit_copy(&mut self, now: Instant, number: MessageNumber) -> bool {
        if self.rtt.has_long_queue() {
            self.send.redundancy.on_queue(now);
            return false;
        }
        self.fits_window(number) && self.is_pacer_ready(now)
    }

    /// Whether the pacer admits a message.
    pub(super) fn is_pacer_ready(&mut self, now: Instant) -> bool {
        let offered = self.send.backlog_rate();
        self.send.pacer.refill_and_check(now, || self.congestion.pacing_rate(&self.rtt, offered))
    }

    /// Whether the congestion window, and the limit by delay (W123), have room for a message. A single one always fits: the pacer
    /// limits those.
    pub(super) fn fits_window(&self, number: MessageNumber) -> bool {
        let len = self.send.buffer.datagram_len(number) as u64;
        self.fits_congestion_window(number) && self.send.delay_limit.admits(self.send.buffer.in_flight(), len)
    }

    fn fits_congestion_window(&self, number: MessageNumber) -> bool {
        let in_flight = self.send.buffer.in_flight();
        in_flight == 0 || in_flight + self.send.buffer.datagram_len(number) as u64 <= self.congestion.window()
    }

    /// Number of messages of a game that wait for the window or the pacer. `None` if what waits is not a short backlog of a game.
    pub(super) fn game_backlog(&self) -> Option<usize> {
        if !self.congestion.is_limited() {
            return Some(0);
        }
        let is_game = self.send.redundancy.is_low_rate();
        is_game.then(|| self.send.short_backlog()).filter(|&backlog| backlog > 0)
    }

    /// The next message that recovery sends regardless of the congestion window.
    fn next_probe(&mut self) -> Option<(MessageNumber, Transmission)> {
        if self.recovery.probe_oldest {
            if let Some((number, _)) = self.send.buffer.oldest_sent() {
                return Some((number, Transmission::Resend));
            }
            self.recovery.probe_oldest = false;
        }
        if self.recovery.probe_next {
            if let Some(number) = self.send.buffer.next_resend() {
                return Some((number, Transmission::Resend));
            }
            self.recovery.probe_next = false;
        }
        if let Some(number) = self.recovery.rebind_resend {
            if !self.send.buffer.is_acked(number) {
                return Some((number, Transmission::Resend));
            }
            self.recovery.rebind_resend = None;
        }
        if self.recovery.rebind_probe {
            if let Some(number) = self.next_unsent() {
                return Some((number, Transmission::First));
            }
            self.recovery.rebind_probe = false;
        }
        None
    }

    /// The next message that was never sent, if the path admits it.
    pub(super) fn next_unsent(&self) -> Option<MessageNumber> {
        self.send.buffer.next_unsent().filter(|number| self.path.admits(*number))
    }

    /// Whether the unsent messages are recent ones of a thin stream, and not the rest of something large.
    fn is_trickle(&self) -> bool {
        self.send.redundancy.is_low_rate() && self.send.buffer.unsent() <= MAX_UNSENT_IN_SILENCE
    }

    fn on_sent(&mut self, now: Instant, number: MessageNumber, transmission: Transmission, len: usize) {
        // Acked messages that are resent on request have a budget of their own, and bypass the pacer: the stream would wait for
        // them.
        if transmission != Transmission::Resend || !self.send.buffer.is_acked(number) {
            self.send.pacer.on_send(len);
        }
        match transmission {
            Transmission::Copy => {
                self.send.buffer.on_copy_sent();
                self.send.redundancy.on_copy(now, len);
                self.send.direct_budget.invalidate();
                self.stats.copies += 1;
                return;
            }
            Transmission::First => self.on_first_sent(now, number, len),
            Transmission::Resend => self.clear_probe(),
        }
        self.recovery.unanswered_since.get_or_insert(now);
        self.recovery.burst_bytes = self.recovery.burst_bytes.saturating_sub(len);
        let in_flight = self.send.buffer.in_flight();
        if in_flight == 0 && transmission == Transmission::First && self.send.buffer.oldest_sent().is_none() {
            self.on_progress(now);
            self.send.resend_budget.on_progress(now);
        }
        self.send.delay_limit.on_send();
        let snapshot = self.congestion.on_send(now, in_flight, len as u64);
        self.send.buffer.on_sent(now, number, snapshot);
        let is_resend = transmission == Transmission::Resend;
        if is_resend {
            self.send.precedence.on_resend();
            self.send.direct_budget.invalidate();
            self.stats.resends += 1;
        } else {
            self.send.precedence.on_first();
            self.send.redundancy.on_send(now, len);
        }
        if self.is_copy_useful(now, number, len, is_resend) {
            self.send.buffer.schedule_copy(now + Redundancy::copy_delay(self.rtt.min()), number);
        }
    }

    /// A message is sent for the first time.
    #[inline]
    fn on_first_sent(&mut self, now: Instant, number: MessageNumber, len: usize) {
        self.path.on_sent(number);
        self.recovery.rebind_probe = false;
        // A message without bytes that is missing is requested when the next one arrives.
        let is_empty = len <= MAX_DATAGRAM - self.max_message();
        self.liveness.tail_resends = if is_empty { 0 } else { TAIL_RESENDS };
        self.liveness.awaiting_ack_since.get_or_insert(now);
        self.liveness.last_proof = now;
        self.liveness.may_be_misrouted = false;
    }

    /// The resend that [`next_probe`](Self::next_probe) returned, if it did, is sent.
    #[inline]
    fn clear_probe(&mut self) {
        if self.recovery.probe_oldest {
            self.recovery.probe_oldest = false;
        } else if self.recovery.probe_next {
            self.recovery.probe_next = false;
        } else {
            self.recovery.rebind_resend = None;
        }
    }

    /// Whether a message that was just sent is to be sent a second time.
    #[inline]
    fn is_copy_useful(&self, now: Instant, number: MessageNumber, len: usize, is_resend: bool) -> bool {
        // A message that was lost twice delays everything after it: one more copy costs little on a path without a queue.
        let is_lost_again =
            is_resend && self.is_lost_twice(number) && !self.recovery.is_silent && !self.rtt.has_queue();
        is_lost_again
            || (!self.recovery.is_silent
                && !self.congestion.is_limited()
                && self.send.redundancy.should_copy(now, len, is_resend))
    }
}

impl SendSide {
    /// Number of messages that wait, including the next, if they are a few seconds of a game and not the rest of something large;
    /// zero otherwise.
    fn short_backlog(&self) -> usize {
        let unsent = self.buffer.unsent();
        let max = if self.redundancy.is_low_rate() { MAX_THIN_BACKLOG } else { MAX_SHORT_BACKLOG };
        if unsent <= max && !self.source.has_backlog { unsent + 1 } else { 0 }
    }

    /// The rate of the application in bytes per second, if what waits is a short backlog.
    fn backlog_rate(&self) -> Option<f64> {
        let newest = self.buffer.newest_sent().filter(|_| self.short_backlog() > 0)?;
        Some(self.buffer.datagram_len(newest) as f64 * self.offered.rate())
    }
}
