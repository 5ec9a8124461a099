//! What a connection makes of the datagrams and the time that it is given.

use super::{
    ANSWER_EVERY, ASK_AFTER, Acked, Arrived, Connection, DOUBT_FOR, Doubt, GOODBYES, MOST_FORGED, MOST_PATIENCE,
    Outcome, PATIENCE_LASTS, Reason, State,
};
use rallypoint_wire::session::{MessageNumber, NumberList, SealInput};
use std::time::Instant;

impl Connection {
    /// A data datagram came that names this session; in a plain one, its proof was right. `allowance` is how much more
    /// memory may be used.
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        number: MessageNumber,
        bytes: &[u8],
        input: Option<&SealInput>,
        allowance: usize,
    ) -> Outcome {
        // A session accepts only its own data type (S20), and an encrypted one no number from its end on (S21).
        if self.is_encrypted() != input.is_some()
            || self.waits_for_ack
            || self.is_closed()
            || (self.is_encrypted() && number.get() >= MessageNumber::ENCRYPTED_END.get())
        {
            self.stats.dropped += 1;
            return Outcome::Foreign;
        }
        let ask_after = ASK_AFTER.max(self.rtt.smoothed() / 8);
        let channel = &self.channel;
        let fill = |room: &mut [u8]| channel.open(input, bytes, room);
        match self.incoming.arrive(now, number, ask_after, allowance, fill) {
            Arrived::New { newest, gap } => {
                self.heard(now);
                if self.incoming.is_readable() {
                    self.notices.readable = true;
                }
                self.stats.messages_received += 1;
                self.acks.arrived(now, number, gap);
                if newest { Outcome::Newest } else { Outcome::Known }
            }
            Arrived::Duplicate => {
                self.heard(now);
                self.stats.duplicates += 1;
                self.acks.arrived_again(now, number);
                Outcome::Known
            }
            Arrived::Above => {
                self.stats.dropped += 1;
                Outcome::Known
            }
            Arrived::Refused => {
                self.stats.dropped += 1;
                self.forged += u32::from(self.is_encrypted());
                if self.forged >= MOST_FORGED {
                    self.end(Reason::Forged);
                }
                Outcome::Foreign
            }
        }
    }

    pub(crate) fn handle_ack(&mut self, now: Instant, numbers: NumberList<'_>) {
        let mut newest: Option<Acked> = None;
        for number in numbers.iter() {
            self.address.on_ack(number);
            let Some(acked) = self.outgoing.on_ack(now, number, self.rtt.min()) else { continue };
            self.congestion.on_ack(now, acked.len);
            if let Some(lost) = acked.first_lost {
                self.thin.on_fate(now, lost, self.rtt.smoothed());
            }
            if acked.spurious {
                self.stats.spurious += 1;
                self.patience = (self.patience + 4).min(MOST_PATIENCE);
            }
            self.patience = self.patience.saturating_sub(u32::from(number.get().is_multiple_of(PATIENCE_LASTS)));
            if newest.is_none_or(|newest| acked.order > newest.order) {
                newest = Some(acked);
            }
        }
        self.heard(now);
        self.ask_for_proof(now);
        let Some(newest) = newest else { return };
        self.waits_for_ack = false;
        self.progress(now);
        // Only the newest: an ack also repeats numbers whose first ack may have been lost long ago.
        if let Some(rtt) = newest.rtt {
            self.rtt.sample(now, rtt);
        }
        self.congestion.on_acks_done(now, newest.snapshot, self.outgoing.in_flight(), &self.rtt);
        self.detect(now);
        self.release(now);
        self.look_for_room();
        self.flushed(now);
    }

    pub(crate) fn handle_resend(&mut self, now: Instant, numbers: NumberList<'_>) {
        self.heard(now);
        let at_most_every = self.rtt.smoothed() / 2;
        for number in numbers.iter() {
            if let Some(losses) = self.outgoing.on_asked(now, number, at_most_every) {
                self.lost(now, losses);
                self.progress(now);
            }
        }
    }

    pub(crate) fn handle_keepalive(&mut self, now: Instant) {
        self.heard(now);
        let open = matches!(self.state, State::Open | State::Flushing { .. });
        if open && self.last_answer.is_none_or(|at| now.saturating_duration_since(at) >= ANSWER_EVERY) {
            self.last_answer = Some(now);
            self.owes_answer = true;
        }
    }

    pub(crate) fn handle_keepalive_ack(&mut self, now: Instant) {
        self.heard(now);
    }

    /// The peer may have said goodbye: ask, and believe it when there is no answer (S28).
    pub(crate) fn handle_disconnect(&mut self, now: Instant, reason: &str) {
        match self.state {
            State::Open | State::Flushing { .. } if self.doubt.is_none() => {
                let until = now + DOUBT_FOR.max(3 * self.rtt.base_rto());
                self.doubt = Some(Doubt { until, ask_at: now, reason: reason.to_owned() });
                self.notices.closing = true;
            }
            _ => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        if now >= self.last_heard + self.config.idle_timeout {
            return self.end(Reason::TimedOut);
        }
        if self.unproven_until().is_some_and(|until| now >= until) {
            return self.end(Reason::TimedOut);
        }
        if let Some(doubt) = self.doubt.take_if(|doubt| now >= doubt.until) {
            return self.end(Reason::ClosedByPeer(doubt.reason));
        }
        self.flushed(now);
        if self.room_at().is_some_and(|at| now >= at) {
            self.release(now);
            self.look_for_room();
        }
        if self.silent_at().is_some_and(|at| now >= at) {
            self.silent = true;
        }
        self.detect(now);
        if self.probe_at().is_some_and(|at| now >= at) {
            self.probes += 1;
            self.probe = true;
            self.probe_another = self.silent;
            if self.silent {
                self.rtt.back_off();
            }
        }
        if self.revive_at().is_some_and(|at| now >= at) {
            self.last_revival = Some(now);
            self.revive = self.outgoing.waiting() > 0 || (!self.is_used_up() && self.push(now, &[]));
        }
    }

    pub(super) fn look_for_room(&mut self) {
        if self.wants_room && self.outgoing.has_room() {
            self.wants_room = false;
            self.notices.writable = true;
        }
    }

    fn heard(&mut self, now: Instant) {
        self.last_heard = now;
        self.stats.datagrams_received += 1;
        self.unanswered_since = None;
        // The network is back, or only the way from the peer: try at once.
        let patient = |sent_at: Instant| now.saturating_duration_since(sent_at) >= self.rtt.smoothed() / 2;
        if self.silent && self.outgoing.oldest_sent().is_some_and(|(_, sent_at)| patient(sent_at)) {
            self.probe = true;
        }
        // Whoever says something is still there.
        self.doubt = None;
    }

    /// Counts the bytes of a datagram that came for this session.
    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.stats.bytes_received += bytes as u64;
    }

    /// Goes on from delivering what is left to saying goodbye.
    pub(super) fn flushed(&mut self, now: Instant) {
        if let State::Flushing { until, reason, goodbye } = &mut self.state
            && (self.outgoing.unacked() == 0 || now >= *until)
        {
            let (reason, goodbye) = (reason.clone(), std::mem::take(goodbye));
            self.state = State::Leaving { left: GOODBYES, next: now, reason, goodbye };
        }
    }
}
