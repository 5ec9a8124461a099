//! The peer's address, and its validation after the peer has moved (S31, W34).
//!
//! Any player can send data with another host's source address, and the session moves there. To keep this from being an
//! amplifier, a new address is sent only a small multiple of what came from it until it has passed a
//! [`PathChallenge`](super::path_challenge::PathChallenge).

mod alternation;
mod contest;
mod validation;

pub(crate) use validation::AMPLIFICATION_LIMIT;
pub(super) use validation::challenge_size;

use super::{Connection, former_addresses::FormerAddresses};
use alternation::Alternation;
use contest::AddressState;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use validation::Validation;

/// A peer whose port changes this soon after its address did last is still on the same path. A client that only listens shows its
/// address once per second.
const REPEATED_MOVE: Duration = Duration::from_millis(1_500);

/// The network path to the peer.
#[derive(Debug)]
pub(super) struct Path {
    /// The current address of the peer, which may be unvalidated.
    pub peer: SocketAddr,
    /// Set while the current address is unvalidated.
    validation: Option<Validation>,
    /// Addresses that were validated before.
    proven: FormerAddresses,
    /// Addresses that the peer left before they were validated.
    left_unvalidated: FormerAddresses,
    /// When data last came from the current address.
    last_data: Instant,
    /// When the peer last came to another address.
    moved_at: Option<Instant>,
    alternation: Alternation,
    address_state: AddressState,
}

impl Path {
    pub fn new(now: Instant, peer: SocketAddr) -> Self {
        Self {
            peer,
            validation: None,
            proven: FormerAddresses::default(),
            left_unvalidated: FormerAddresses::default(),
            last_data: now,
            moved_at: None,
            alternation: Alternation::default(),
            address_state: AddressState::Confirmed,
        }
    }

    /// Whether nothing may be sent until something is received.
    pub fn is_exhausted(&self) -> bool {
        self.is_held() || self.validation.as_ref().is_some_and(Validation::is_exhausted)
    }

    /// Remembers the address that the peer is about to leave.
    fn remember_peer(&mut self, now: Instant) {
        if matches!(self.address_state, AddressState::Left) {
            return;
        }
        if self.validation.is_none() {
            self.proven.insert(now, self.peer);
        } else {
            self.left_unvalidated.insert(now, self.peer);
        }
    }
}

impl Connection {
    /// Whether the peer is at this address, as far as is known.
    pub(crate) fn is_at(&self, addr: SocketAddr) -> bool {
        self.path.peer == addr && !matches!(self.path.address_state, AddressState::Left)
    }

    /// Data came from the current address of the peer.
    pub(crate) fn on_data_from_peer(&mut self, now: Instant) {
        self.path.last_data = now;
    }

    /// Whether the peer has proved lately that it receives what is sent to this address.
    pub(crate) fn has_proven(&self, now: Instant, addr: SocketAddr) -> bool {
        self.path.proven.left_at(now, addr).is_some()
    }

    /// Moves the session to a new address of the peer (S31). `random` must be unpredictable. Returns whether only the port of the
    /// peer changes.
    pub(crate) fn migrate(&mut self, now: Instant, peer: SocketAddr, random: u64) -> bool {
        self.send.direct_budget.invalidate();
        let validated = self.validated_peer();
        let since = self.path.unvalidated_since().unwrap_or(now);
        let left_proven = self.path.proven.left_at(now, peer);
        let left_unvalidated = self.path.left_unvalidated.left_at(now, peer);
        self.path.remember_peer(now);
        let left_at = left_proven.or(left_unvalidated);
        let alternates = left_at.is_some_and(|at| self.path.alternation.on_return(now, at));
        // A NAT that gives the peer another port again and again does not change the path (RFC 9000, section 9.4).
        let is_same_host = self.path.peer.ip() == peer.ip();
        let since_move = self.path.moved_at.map(|at| now.saturating_duration_since(at)).filter(|_| is_same_host);
        let is_same_path = since_move.is_some_and(|time| time < REPEATED_MOVE);
        self.path.moved_at = Some(now);
        self.path.peer = peer;
        self.path.last_data = now;
        self.path.address_state = AddressState::Confirmed;
        if self.has_proven(now, peer) {
            self.path.validation = None;
            if !alternates && !is_same_path {
                self.start_on_path(now);
            }
            return is_same_host;
        }
        self.path.validation = Some(Validation::new(since, validated, random));
        if is_same_path {
            self.on_progress(now);
        } else {
            self.start_on_path(now);
        }
        self.prepare_challenge(now);
        is_same_host
    }

    /// Forgets what was measured on another path.
    fn start_on_path(&mut self, now: Instant) {
        self.rtt.forget_path();
        self.send.early_acks.forget_path();
        // The end of a silence starts over as well. Twice in a row would make the initial window the one to return to.
        if !self.recovery.is_silent {
            self.congestion.on_new_path(now, self.send.buffer.next_order(), &self.rtt);
        }
        self.on_progress(now);
    }
}
