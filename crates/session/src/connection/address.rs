//! A new address of the peer, and what may be sent there before it has answered (S31).
//!
//! Whoever has a session can send data in somebody else's name, and the session moves there. So that this draws little, a new
//! address gets a small multiple of what came from it until it has acked something that was sent to it.

use super::{Connection, State};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// So many times the bytes that came from an address may be sent there before it has answered.
const SENT_PER_RECEIVED: i64 = 3;

/// And so many more, once per timeout, however often the address changes.
const GRANT: i64 = 1_500;

/// What is known about the peer's address.
#[derive(Debug)]
pub(super) struct Address {
    unproven: Option<Unproven>,
    /// How many bytes may be sent before it has answered. What was sent too much is not forgotten, so that moving often
    /// gains nothing.
    credit: i64,
    granted_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Unproven {
    /// Since when no address has answered.
    since: Instant,
    /// The ack of a transmission from this on is the answer.
    order: u64,
}

impl Address {
    /// The one that the login came from: its first message proved it.
    pub fn proven() -> Self {
        Self { unproven: None, credit: 0, granted_at: None }
    }

    fn change(&mut self, now: Instant, order: u64, grant_every: Duration) {
        let since = self.unproven.map_or(now, |unproven| unproven.since);
        self.unproven = Some(Unproven { since, order });
        self.credit = self.credit.min(0);
        if self.granted_at.is_none_or(|at| now >= at + grant_every) {
            self.granted_at = Some(now);
            self.credit += GRANT;
        }
    }

    /// A message was acked that was last sent as this one in the order of all.
    pub fn on_ack(&mut self, order: u64) {
        self.unproven.take_if(|unproven| order >= unproven.order);
    }

    pub fn on_sent(&mut self, bytes: usize) {
        if self.unproven.is_some() {
            self.credit -= bytes as i64;
        }
    }

    /// Whether so many more bytes may be sent, before one more datagram.
    pub fn allows(&self, bytes: usize) -> bool {
        self.unproven.is_none() || self.credit > bytes as i64
    }
}

impl Connection {
    /// The peer has another address (S31).
    pub(crate) fn move_to(&mut self, now: Instant, peer: SocketAddr) {
        self.peer = peer;
        self.address.change(now, self.outgoing.next_order(), self.config.idle_timeout);
        self.rtt.forget_path();
        self.congestion.on_new_path(now);
        self.progress(now);
        self.ask_for_proof(now);
    }

    /// So many bytes came from the peer's address.
    pub(crate) fn credit(&mut self, bytes: usize) {
        if self.is_unproven() {
            self.address.credit = self.address.credit.saturating_add(SENT_PER_RECEIVED * bytes as i64);
        }
    }

    /// Whether the peer's address is new, and has not answered.
    pub(crate) fn is_unproven(&self) -> bool {
        self.address.unproven.is_some()
    }

    /// A message without bytes, if there is no other that a new address could ack.
    pub(super) fn ask_for_proof(&mut self, now: Instant) {
        if self.is_unproven() && self.outgoing.unacked() == 0 && self.state == State::Open && !self.is_used_up() {
            self.push(now, &[]);
        }
    }

    /// When a peer that sends from a new address, but acks nothing, has timed out.
    pub(super) fn unproven_until(&self) -> Option<Instant> {
        let unproven = self.address.unproven.filter(|_| self.outgoing.unacked() > 0)?;
        Some(unproven.since + self.config.idle_timeout)
    }
}
