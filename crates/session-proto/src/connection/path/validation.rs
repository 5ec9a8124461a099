//! Validation of a new address of the peer (S31, W34).

use super::Path;
use crate::connection::{
    Connection, State,
    path_challenge::{ChallengeState, MAX_PREPARED, PathChallenge},
};
use rallypoint_wire::session::MessageNumber;
use std::{net::SocketAddr, time::Instant};

/// Bytes that may be sent to an unvalidated address for each byte received from it (S16, S31).
pub(crate) const AMPLIFICATION_LIMIT: usize = 3;

/// Bytes of the IP and UDP headers, counted for each datagram so that many short ones do not cost a victim more than is
/// counted.
const HEADERS: usize = 28;

/// The validation of an address.
#[derive(Debug)]
pub(super) struct Validation {
    /// The last validated address.
    pub validated: SocketAddr,
    /// The time since which no address has been validated.
    since: Instant,
    challenge: Option<PathChallenge>,
    /// State of the generator from which challenges are drawn.
    random: u64,
    /// Bytes that may still be sent. Every change of address resets it, so moving back and forth gains nothing.
    credit: usize,
    /// A datagram was withheld because it exceeded the credit.
    is_exhausted: bool,
}

impl Validation {
    pub fn new(since: Instant, validated: SocketAddr, random: u64) -> Self {
        Self { validated, since, challenge: None, random, credit: 0, is_exhausted: false }
    }

    /// Whether nothing may be sent until something is received.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }
}

impl Path {
    /// Charges a datagram to the credit. Returns false if it must not be sent.
    pub fn charge(&mut self, bytes: usize) -> bool {
        let Some(validation) = &mut self.validation else { return true };
        match validation.credit.checked_sub(bytes + HEADERS) {
            Some(rest) if !validation.is_exhausted => validation.credit = rest,
            _ => validation.is_exhausted = true,
        }
        !validation.is_exhausted
    }

    /// The next message of the challenge to send.
    pub fn next_challenge(&self) -> Option<MessageNumber> {
        self.challenge()?.next()
    }

    pub fn on_sent(&mut self, number: MessageNumber) {
        if let Some(challenge) = self.validation.as_mut().and_then(|validation| validation.challenge.as_mut()) {
            challenge.on_sent(number);
        }
    }

    /// Whether this message may be sent for the first time.
    pub fn admits(&self, number: MessageNumber) -> bool {
        self.challenge().is_none_or(|challenge| challenge.is_behind(number))
    }

    /// The peer acks these messages, whether they were sent or not.
    pub fn on_acks(&mut self, numbers: impl Iterator<Item = MessageNumber>) {
        if self.validation.is_some() {
            numbers.for_each(|number| self.on_ack(number));
        }
    }

    fn on_ack(&mut self, number: MessageNumber) {
        let Some(validation) = &mut self.validation else { return };
        match validation.challenge.as_mut().map(|challenge| challenge.on_ack(number)) {
            Some(ChallengeState::Passed) => self.validation = None,
            // After a guess a new challenge is prepared.
            Some(ChallengeState::Failed) => validation.challenge = None,
            Some(ChallengeState::Pending) | None => {}
        }
    }

    /// Start of the validation that is under way.
    pub fn unvalidated_since(&self) -> Option<Instant> {
        self.validation.as_ref().map(|validation| validation.since)
    }

    fn challenge(&self) -> Option<&PathChallenge> {
        self.validation.as_ref()?.challenge.as_ref()
    }
}

impl Connection {
    /// The last address at which the peer has shown that it receives what is sent there: never one that it only claims to
    /// have (S31).
    #[must_use]
    pub fn validated_peer(&self) -> SocketAddr {
        self.path.validation.as_ref().map_or(self.path.peer, |validation| validation.validated)
    }

    /// Grants an unvalidated address a multiple of the bytes that were received from it.
    pub(crate) fn grant_credit(&mut self, bytes: usize) {
        if let Some(validation) = &mut self.path.validation {
            validation.credit = validation.credit.saturating_add(AMPLIFICATION_LIMIT * (bytes + HEADERS));
            validation.is_exhausted = false;
        }
    }

    /// Whether the peer's address is new and not validated yet.
    pub(crate) fn is_unvalidated(&self) -> bool {
        self.path.validation.is_some()
    }

    /// Prepares a challenge if the path needs one and the window has room for it.
    pub(in crate::connection) fn prepare_challenge(&mut self, now: Instant) {
        let first = self.send.buffer.next_number();
        let count = challenge_size(self.config.window);
        let Some(validation) = self.path.validation.as_mut().filter(|validation| validation.challenge.is_none()) else {
            return;
        };
        if self.state != State::Open || !self.send.buffer.has_room_for(count) {
            return;
        }
        let challenge = PathChallenge::new(first, count, &mut validation.random);
        // Numbers run out only at the end of an encrypted session, which then ends without the validation.
        if (0..count).all(|_| !self.has_used_all_numbers() && self.push_empty(now))
            && let Some(validation) = &mut self.path.validation
        {
            validation.challenge = Some(challenge);
        }
    }
}

/// Number of messages of a window that a challenge takes, and that are kept free for it.
pub(in crate::connection) fn challenge_size(window: usize) -> usize {
    MAX_PREPARED.min(window / 2)
}
