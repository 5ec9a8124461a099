//! An address that another session claims as well (W54).

use super::Path;
use crate::connection::Connection;
use rallypoint_wire::session::{Control, NumberListBuf};
use std::time::{Duration, Instant};

/// Interval of the datagrams by which a peer is asked to confirm its address.
const CONFIRMATION_INTERVAL: Duration = Duration::from_millis(200);

/// Shortest time that the peer of an encrypted session is given to confirm it.
const MIN_CONFIRMATION_TIME: Duration = Duration::from_secs(1);

/// Longest time that it is given.
const MAX_CONFIRMATION_TIME: Duration = Duration::from_secs(3);

/// Time that the peer of a plain session is given: its session ends if it does not answer.
const PLAIN_CONFIRMATION_TIME: Duration = Duration::from_millis(1_500);

/// In a plain session it also has to be silent for this long, or for half of the idle timeout.
const PLAIN_SILENCE: Duration = Duration::from_secs(5);

/// Whether the peer is at its address (W54).
#[derive(Clone, Copy, Debug)]
pub(super) enum AddressState {
    /// It is, as far as is known.
    Confirmed,
    /// The peer has left its address, and where it is now is not settled: nothing is sent.
    Left,
    /// Another session claims the address. Until a deadline the peer is asked to confirm that it is there.
    Contested { until: Instant, probe_at: Instant, is_held: bool },
}

impl Path {
    /// Whether nothing is sent because the peer may not be at its address.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.address_state, AddressState::Left | AddressState::Contested { is_held: true, .. })
    }

    /// When a peer whose address is contested has to be asked again, or has not confirmed it in time.
    pub fn confirmation_at(&self) -> Option<Instant> {
        match self.address_state {
            AddressState::Contested { until, probe_at, .. } => Some(until.min(probe_at)),
            _ => None,
        }
    }

    /// Whether the time to confirm a contested address is up. Nothing more is sent there then.
    pub fn expire_confirmation(&mut self, now: Instant) -> bool {
        let is_expired = matches!(self.address_state, AddressState::Contested { until, .. } if now >= until);
        if is_expired {
            self.remember_peer(now);
            self.address_state = AddressState::Left;
        }
        is_expired
    }
}

impl Connection {
    /// The peer has left its address: nothing is sent until it is known where it is (W54).
    pub(crate) fn leave_address(&mut self, now: Instant) {
        self.path.remember_peer(now);
        self.path.address_state = AddressState::Left;
    }

    /// Another session claims the address of the peer, which is asked to confirm that it is there. With `is_held` nothing else
    /// is sent meanwhile.
    pub(crate) fn contest_address(&mut self, now: Instant, is_held: bool) {
        if matches!(self.path.address_state, AddressState::Confirmed) {
            let until = if self.is_encrypted() {
                now + (3 * self.rtt.base_rto()).clamp(MIN_CONFIRMATION_TIME, MAX_CONFIRMATION_TIME)
            } else {
                // A server that tolerates long outages does so here as well.
                let silence = PLAIN_SILENCE.max(self.config.idle_timeout / 2);
                (now + PLAIN_CONFIRMATION_TIME).max(self.path.last_data + silence)
            };
            self.path.address_state = AddressState::Contested { until, probe_at: now, is_held };
        }
    }

    /// The peer is at its address.
    pub(crate) fn confirm_address(&mut self) {
        self.path.address_state = AddressState::Confirmed;
    }

    /// Whether nothing is sent because the peer may not be at its address.
    pub(crate) fn is_held(&self) -> bool {
        self.path.is_held()
    }

    /// Appends a request for a message that the peer has sent before. Its answer carries the rand, or is sealed: only the peer
    /// can give it. Returns true if there is something to send.
    pub(in crate::connection) fn emit_confirmation_probe(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let AddressState::Contested { probe_at, .. } = &mut self.path.address_state else { return false };
        if now < *probe_at {
            return false;
        }
        *probe_at = now + CONFIRMATION_INTERVAL;
        let start = out.len();
        let mut list = NumberListBuf::new();
        list.push(self.receive.buffer.newest());
        Control::Resend(list.as_list()).emit(out);
        if !self.path.charge(out.len() - start) {
            out.truncate(start);
        }
        out.len() > start
    }
}
