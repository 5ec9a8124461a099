//! A new address of the peer, and what may be sent there before it has answered (S31, W34).
//!
//! Whoever has a session can send data in somebody else's name, and the session moves there. So that this draws little, a new
//! address gets a small multiple of what came from it until it has met a [`Challenge`].

use super::{
    Connection, State,
    challenge::{Challenge, PREPARED, Verdict},
};
use rallypoint_wire::session::MessageNumber;
use std::{net::SocketAddr, time::Instant};

/// So many times the bytes that came from an address may be sent there before it has answered.
const SENT_PER_RECEIVED: usize = 3;

/// What IP and UDP add to every datagram, so that many short ones do not cost the victim more than is counted.
const HEADERS: usize = 28;

/// What is known about the peer's address.
#[derive(Debug, Default)]
pub(super) struct Address {
    unproven: Option<Unproven>,
}

#[derive(Debug)]
struct Unproven {
    /// The last address that has answered.
    proven: SocketAddr,
    /// Since when no address has answered.
    since: Instant,
    challenge: Option<Challenge>,
    /// What challenges are drawn from.
    chance: u64,
    /// How many bytes may be sent. It begins with nothing at every address, so going to and fro gains nothing.
    credit: usize,
    /// There was something to send that is longer than that.
    is_short: bool,
}

impl Address {
    /// Pays for a datagram before it is sent. False if it must not be.
    pub fn pay(&mut self, bytes: usize) -> bool {
        let Some(unproven) = &mut self.unproven else { return true };
        match unproven.credit.checked_sub(bytes + HEADERS) {
            Some(rest) if !unproven.is_short => unproven.credit = rest,
            _ => unproven.is_short = true,
        }
        !unproven.is_short
    }

    /// Whether nothing is sent until something comes.
    pub fn is_short(&self) -> bool {
        self.unproven.as_ref().is_some_and(|unproven| unproven.is_short)
    }

    /// The message of the challenge that is to be sent next.
    pub fn next_message(&self) -> Option<MessageNumber> {
        self.challenge()?.next()
    }

    pub fn on_sent(&mut self, number: MessageNumber) {
        if let Some(challenge) = self.unproven.as_mut().and_then(|unproven| unproven.challenge.as_mut()) {
            challenge.on_sent(number);
        }
    }

    /// Whether this message may be sent for the first time.
    pub fn admits(&self, number: MessageNumber) -> bool {
        self.challenge().is_none_or(|challenge| challenge.is_before(number))
    }

    /// The peer says that it has this message, whether that was sent or not.
    pub fn on_ack(&mut self, number: MessageNumber) {
        let Some(unproven) = &mut self.unproven else { return };
        match unproven.challenge.as_mut().map(|challenge| challenge.on_ack(number)) {
            Some(Verdict::Proven) => self.unproven = None,
            // Whoever guesses has to begin anew.
            Some(Verdict::Guessed) => unproven.challenge = None,
            Some(Verdict::Nothing) | None => {}
        }
    }

    fn challenge(&self) -> Option<&Challenge> {
        self.unproven.as_ref()?.challenge.as_ref()
    }
}

impl Connection {
    /// Where the peer was when it last showed that it sees what is sent there: never an address that it only claims to have
    /// (S31).
    #[must_use]
    pub fn proven_peer(&self) -> SocketAddr {
        self.address.unproven.as_ref().map_or(self.peer, |unproven| unproven.proven)
    }

    /// The peer has another address (S31). `chance` is one that nobody can guess.
    pub(crate) fn move_to(&mut self, now: Instant, peer: SocketAddr, chance: u64) {
        let proven = self.proven_peer();
        self.peer = peer;
        let since = self.address.unproven.as_ref().map_or(now, |unproven| unproven.since);
        self.address.unproven = Some(Unproven { proven, since, challenge: None, chance, credit: 0, is_short: false });
        self.rtt.forget_path();
        self.congestion.on_new_path(now);
        self.progress(now);
        self.ask_for_proof(now);
    }

    /// A datagram of so many bytes came from the peer's address.
    pub(crate) fn credit(&mut self, bytes: usize) {
        if let Some(unproven) = &mut self.address.unproven {
            unproven.credit = unproven.credit.saturating_add(SENT_PER_RECEIVED * (bytes + HEADERS));
            unproven.is_short = false;
        }
    }

    /// Whether the peer's address is new, and has not answered.
    pub(crate) fn is_unproven(&self) -> bool {
        self.address.unproven.is_some()
    }

    /// Prepares a challenge, if one is wanted and there is room in the window.
    pub(super) fn ask_for_proof(&mut self, now: Instant) {
        let first = self.outgoing.next();
        let count = reserve(self.config.window);
        let Some(unproven) = self.address.unproven.as_mut().filter(|unproven| unproven.challenge.is_none()) else {
            return;
        };
        if self.state != State::Open || !self.outgoing.has_room_for(count) {
            return;
        }
        let challenge = Challenge::new(first, count, &mut unproven.chance);
        // Only at the end of an encrypted session there are not enough numbers left: it ends without the proof.
        if (0..count).all(|_| !self.is_used_up() && self.push(now, &[]))
            && let Some(unproven) = &mut self.address.unproven
        {
            unproven.challenge = Some(challenge);
        }
    }

    /// When a peer that sends from a new address, but does not prove it, has timed out.
    pub(super) fn unproven_until(&self) -> Option<Instant> {
        Some(self.address.unproven.as_ref()?.since + self.config.idle_timeout)
    }
}

/// How many messages of a window are kept free for a challenge.
pub(super) fn reserve(window: usize) -> usize {
    PREPARED.min(window / 2)
}
