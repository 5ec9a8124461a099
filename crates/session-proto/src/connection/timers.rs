//! The timers of a connection: their deadlines, and what happens when they expire.
//!
//! Deadlines are derived from the state instead of being stored, so that no change of state can leave one behind.

use super::{Connection, State};
use crate::DisconnectReason;
use std::time::Instant;

/// A timer of a connection, named after what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Nothing was received for the idle timeout (S29).
    Idle,
    /// A new address of the peer was not validated in time (W34).
    PathValidation,
    /// Nothing was acked for the ack timeout (W52).
    AckTimeout,
    /// The peer has to confirm its address, which another session claims (W54).
    Confirmation,
    /// Messages that are left at the close were not delivered in time (S28).
    Flush,
    /// The peer's disconnect is confirmed by its silence (S28).
    PeerClose,
    /// Nothing was sent for the keepalive interval (S29).
    Keepalive,
    /// An ack has to be sent.
    Ack,
    /// A missing message has to be requested.
    ResendRequest,
    /// A withheld message has to be sent, or shows that the peer lies (W79).
    Withheld,
    /// A message in flight may be lost.
    LossDetection,
    /// The lack of acks starts to count as silence.
    Silence,
    /// A copy has to be sent.
    Copy,
    /// The oldest message has to be resent.
    Probe,
    /// A client without answers has to send a new message.
    RebindProbe,
    /// A client has to show that it is still at its address (W54).
    AddressProof,
    /// A blocked sender has room again.
    SendRoom,
    /// The pacer admits the next message.
    Pacing,
    /// A peer that seems to have disconnected has to be sent a keepalive probe.
    PeerCloseProbe,
}

impl Connection {
    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Closed(_) => return None,
            State::Disconnecting { next, .. } => return Some(*next),
            State::Open | State::Flushing { .. } => {}
        }
        // Timers that end the connection, or its close.
        let ending = [
            self.deadline(Timer::Idle),
            self.deadline(Timer::PathValidation),
            self.deadline(Timer::AckTimeout),
            self.deadline(Timer::Confirmation),
            self.deadline(Timer::Flush),
            self.deadline(Timer::PeerClose),
        ];
        let ending = ending.into_iter().flatten().min();
        if self.path.is_exhausted() {
            return ending;
        }
        // Timers that lead to a datagram being sent. They are written out: a loop over the variants would cost a tenth of the
        // instructions of a message, because it is not unrolled.
        let all = [
            ending,
            self.deadline(Timer::Keepalive),
            self.deadline(Timer::Ack),
            self.deadline(Timer::ResendRequest),
            self.deadline(Timer::Withheld),
            self.deadline(Timer::LossDetection),
            self.deadline(Timer::Silence),
            self.deadline(Timer::Copy),
            self.deadline(Timer::Probe),
            self.deadline(Timer::RebindProbe),
            self.deadline(Timer::AddressProof),
            self.deadline(Timer::SendRoom),
            self.deadline(Timer::Pacing),
            self.deadline(Timer::PeerCloseProbe),
        ];
        all.into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        if self.is_expired(now, Timer::Idle) || self.is_expired(now, Timer::PathValidation) {
            // On a slow path the time is over before it is certain that a disconnect was not forged: its reason is the likely one.
            let close = self.peer_close.take();
            return self
                .end(close.map_or(DisconnectReason::TimedOut, |close| DisconnectReason::ClosedByPeer(close.reason)));
        }
        if let Some(close) = self.peer_close.take_if(|close| now >= close.until) {
            return self.end(DisconnectReason::ClosedByPeer(close.reason));
        }
        if self.is_expired(now, Timer::AckTimeout) {
            return self.abort(now, DisconnectReason::AckTimeout);
        }
        self.events.unconfirmed |= self.path.expire_confirmation(now);
        self.finish_flush(now);
        if self.send.is_memory_scarce || self.is_expired(now, Timer::SendRoom) {
            self.release(now);
            self.notify_writable();
        }
        if self.is_expired(now, Timer::Silence) {
            self.recovery.is_silent = true;
            self.send.direct_budget.invalidate();
        }
        if self.is_expired(now, Timer::Withheld) {
            self.expire_withheld(now);
        }
        self.detect_losses(now);
        if self.is_expired(now, Timer::Probe) {
            self.recovery.probes += 1;
            self.recovery.probe_oldest = true;
            self.recovery.probe_next = self.recovery.is_silent;
            if self.recovery.is_silent {
                self.rtt.back_off();
            }
        }
        if self.is_expired(now, Timer::RebindProbe) {
            self.recovery.last_rebind_probe = Some(now);
            self.prepare_rebind_probe(now);
        }
        if self.is_expired(now, Timer::AddressProof) {
            self.liveness.last_proof = now;
            self.liveness.may_be_misrouted = false;
            self.prepare_rebind_probe(now);
        }
    }

    fn is_expired(&self, now: Instant, timer: Timer) -> bool {
        self.deadline(timer).is_some_and(|at| now >= at)
    }

    #[inline(always)]
    fn deadline(&self, timer: Timer) -> Option<Instant> {
        match timer {
            Timer::Idle => Some(self.liveness.last_received + self.config.idle_timeout),
            Timer::PathValidation => self.path.unvalidated_since().map(|since| since + self.config.idle_timeout),
            // A session that is being closed ends sooner.
            Timer::AckTimeout if !matches!(self.state, State::Open) => None,
            Timer::AckTimeout => self.liveness.awaiting_ack_since.map(|since| since + self.config.ack_timeout),
            Timer::Confirmation => self.path.confirmation_at(),
            Timer::AddressProof => self.address_proof_at(),
            Timer::Flush => match self.state {
                State::Flushing { until, .. } => Some(until),
                State::Open => self.prepared_close.as_ref().map(|close| close.until),
                State::Disconnecting { .. } | State::Closed(_) => None,
            },
            Timer::PeerClose => self.peer_close.as_ref().map(|close| close.until),
            Timer::Keepalive => Some(self.liveness.last_sent + self.config.keepalive),
            Timer::Ack => self.receive.acks.due(),
            Timer::ResendRequest => self.receive.buffer.request_at(),
            Timer::Withheld => self.send.optimistic_acks.deadline(),
            Timer::LossDetection => self.send.buffer.loss_detection_at(self.rtt.loss_delay(), self.loss_timeout()),
            Timer::Silence => self.silence_at(),
            Timer::Copy => self.send.buffer.copy_at(),
            Timer::Probe => self.probe_at(),
            Timer::RebindProbe => self.rebind_probe_at(),
            Timer::SendRoom => self.release_at(),
            Timer::Pacing => [self.send.paced_until, self.send.source.wake_at].into_iter().flatten().min(),
            Timer::PeerCloseProbe => self.peer_close.as_ref().map(|close| close.probe_at),
        }
    }
}
