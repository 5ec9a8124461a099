//! What a connection sends, and when it wants to be asked again.

use super::{Connection, DOUBT_EVERY, GOODBYE_EVERY, State, Thin, rtt::Rtt};
use rallypoint_machine::Transmit;
use rallypoint_wire::session::{Control, MessageNumber, NumberListBuf};
use std::time::Instant;

/// What a system sends in one call is limited to the size of the largest datagram.
const LARGEST_BATCH: usize = 60_000;

/// What a thin stream says at once has at most so many messages.
const MOST_OF_A_TRICKLE: usize = 32;

impl Connection {
    /// The next datagrams: first what is small and urgent, then messages. All of them have the same length, but for the
    /// last, which may be shorter.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let start = out.len();
        self.paced_until = None;
        let mut count = 1;
        let mut segment = None;
        if self.address.is_short() && !matches!(self.state, State::Leaving { .. }) {
            return None;
        }
        if self.emit_control(now, out) {
            // What must not be sent to a new address is as good as lost (W34).
            if out.len() > start && !self.address.pay(out.len() - start) {
                out.truncate(start);
            }
        } else {
            let size;
            (count, size) = self.emit_messages(now, out);
            segment = (count > 1).then_some(size);
        }
        let len = out.len() - start;
        if len == 0 {
            return None;
        }
        self.last_sent = now;
        self.stats.datagrams_sent += count as u64;
        self.stats.bytes_sent += len as u64;
        Some(Transmit { to: self.peer, len, segment })
    }

    /// When it wants to be asked again.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Closed(_) => return None,
            State::Leaving { next, .. } => return Some(*next),
            State::Open | State::Flushing { .. } => {}
        }
        let flush = if let State::Flushing { until, .. } = self.state { Some(until) } else { None };
        let doubt = self.doubt.as_ref();
        let ends = [
            Some(self.last_heard + self.config.idle_timeout),
            self.unproven_until(),
            flush,
            doubt.map(|doubt| doubt.until),
        ];
        let ends = ends.into_iter().flatten().min();
        if self.address.is_short() {
            return ends;
        }
        [
            ends,
            Some(self.last_sent + self.config.keepalive),
            self.acks.due(),
            self.incoming.ask_at(),
            self.outgoing.detect_at(self.rtt.loss_delay(), self.overdue()),
            self.silent_at(),
            self.outgoing.copy_at(),
            self.probe_at(),
            self.revive_at(),
            self.room_at(),
            self.paced_until,
            doubt.map(|doubt| doubt.ask_at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn emit_control(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        match &mut self.state {
            State::Closed(_) => return true,
            State::Leaving { left, next, reason, goodbye } => {
                if *left == 0 {
                    let reason = reason.clone();
                    self.end(reason);
                } else if now >= *next {
                    *left -= 1;
                    *next = now + GOODBYE_EVERY;
                    self.channel.emit_disconnect(goodbye, out);
                }
                return true;
            }
            State::Open | State::Flushing { .. } => {}
        }
        // A new address proves itself before anything else.
        if self.address.next_message().is_some() {
            return false;
        }
        if self.acks.due().is_some_and(|due| now >= due) {
            self.acks.emit(now, out);
            return true;
        }
        if self.emit_resend(now, out) {
            return true;
        }
        if std::mem::take(&mut self.owes_answer) {
            Control::KeepaliveAck.emit(out);
            return true;
        }
        if let Some(doubt) = self.doubt.as_mut().filter(|doubt| now >= doubt.ask_at) {
            doubt.ask_at = now + DOUBT_EVERY;
            self.owes_keepalive = true;
        }
        if std::mem::take(&mut self.owes_keepalive) || now >= self.last_sent + self.config.keepalive {
            self.unanswered_since.get_or_insert(now);
            let again = self.outgoing.last_sent().filter(|_| self.assurances > 0);
            match again.map(|number| self.outgoing.datagram(number)) {
                Some(datagram) if !datagram.is_empty() => {
                    out.extend_from_slice(datagram);
                    self.assurances -= 1;
                }
                _ => Control::Keepalive.emit(out),
            }
            return true;
        }
        false
    }

    /// Asks for what is missing (S25).
    fn emit_resend(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.incoming.ask_at().is_none_or(|at| at > now) && self.reopened.is_none() {
            return false;
        }
        let mut list = NumberListBuf::new();
        if let Some(number) = self.reopened.take() {
            list.push(number);
        }
        let again = self.rtt.smoothed() * 5 / 4 + super::ASK_AFTER;
        while !list.is_full()
            && let Some(number) = self.incoming.ask(now, again)
        {
            list.push(number);
        }
        if list.as_list().is_empty() {
            return false;
        }
        Control::Resend(list.as_list()).emit(out);
        self.unanswered_since.get_or_insert(now);
        true
    }

    /// Appends messages; how many, and the length of the first.
    fn emit_messages(&mut self, now: Instant, out: &mut Vec<u8>) -> (usize, usize) {
        let (start, mut count, mut size) = (out.len(), 0, 0);
        while count < self.config.batch
            && let Some((number, kind)) = self.next_message(now)
        {
            let len = self.outgoing.datagram(number).len();
            if count > 0 && (len > size || out.len() - start + len > LARGEST_BATCH) {
                break;
            }
            if !self.address.pay(len) {
                break;
            }
            out.extend_from_slice(self.outgoing.datagram(number));
            self.note_sent(now, number, kind, len);
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
    fn next_message(&mut self, now: Instant) -> Option<(MessageNumber, Kind)> {
        if let Some(number) = self.address.next_message() {
            return Some((number, Kind::New));
        }
        if self.probe {
            if let Some((number, _)) = self.outgoing.oldest_sent() {
                return Some((number, Kind::Again));
            }
            self.probe = false;
        }
        if self.probe_another {
            if let Some(number) = self.outgoing.next_repeat() {
                return Some((number, Kind::Again));
            }
            self.probe_another = false;
        }
        if self.revive {
            if let Some(number) = self.next_new() {
                return Some((number, Kind::New));
            }
            self.revive = false;
        }
        if let Some(number) = self.outgoing.next_copy(now) {
            return Some((number, Kind::Copy));
        }
        let (number, kind) = match self.outgoing.next_repeat().filter(|_| !self.silent) {
            Some(number) => (number, Kind::Again),
            None => match self.next_new() {
                // Into the silence only as much is sent as costs nothing: it shows at once when the network is back.
                Some(number) if !self.silent || self.is_trickle() => (number, Kind::New),
                Some(_) => return None,
                None => {
                    self.congestion.on_app_limited(self.outgoing.in_flight());
                    return None;
                }
            },
        };
        if kind == Kind::Again && self.burst > 0 {
            return Some((number, kind));
        }
        self.burst = 0;
        if self.outgoing.in_flight() >= self.congestion.window(&self.rtt) {
            return None;
        }
        let rate = self.congestion.pacing_rate(&self.rtt);
        if !self.pacer.ready(now, rate) {
            self.paced_until = Some(self.pacer.next(rate));
            return None;
        }
        Some((number, kind))
    }

    /// The next message that was never sent, and may be.
    fn next_new(&self) -> Option<MessageNumber> {
        self.outgoing.next_waiting().filter(|number| self.address.admits(*number))
    }

    /// Whether what waits is what a thin stream has just said, and not the rest of something large.
    fn is_trickle(&self) -> bool {
        self.thin.is_thin() && self.outgoing.waiting() <= MOST_OF_A_TRICKLE
    }

    fn note_sent(&mut self, now: Instant, number: MessageNumber, kind: Kind, len: usize) {
        self.pacer.on_send(len);
        if kind == Kind::Copy {
            self.outgoing.on_copied();
            self.thin.on_copy(now, len);
            self.stats.copies += 1;
            return;
        }
        match kind {
            Kind::New => {
                self.address.on_sent(number);
                self.revive = false;
                self.assurances = super::ASSURANCES;
            }
            _ if self.probe => self.probe = false,
            _ => self.probe_another = false,
        }
        self.unanswered_since.get_or_insert(now);
        self.burst = self.burst.saturating_sub(len);
        let in_flight = self.outgoing.in_flight();
        if in_flight == 0 && kind == Kind::New && self.outgoing.oldest_sent().is_none() {
            self.progress(now);
        }
        let snapshot = self.congestion.on_send(now, in_flight);
        self.outgoing.on_sent(now, number, snapshot);
        match kind {
            Kind::New => self.thin.on_send(now, len),
            _ => self.stats.resends += 1,
        }
        if !self.silent && self.thin.wants_copy(now, len, kind == Kind::Again) {
            self.outgoing.plan_copy(now + Thin::copy_after(Rtt::min(&self.rtt)), number);
        }
    }
}

/// Why a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    Again,
    Copy,
}
