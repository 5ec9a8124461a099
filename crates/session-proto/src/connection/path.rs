//! The peer's address, and its validation after the peer has moved (S31, W34).
//!
//! Any player can send data with another host's source address, and the session moves there. To keep this from being an
//! amplifier, a new address is sent only a small multiple of what came from it until it has passed a [`PathChallenge`].

use super::{
    Connection, State,
    former_addresses::FormerAddresses,
    path_challenge::{ChallengeState, MAX_PREPARED, PathChallenge},
};
use rallypoint_wire::session::{Control, MessageNumber, NumberListBuf};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Bytes that may be sent to an unvalidated address for each byte received from it (S16, S31).
pub(crate) const AMPLIFICATION_LIMIT: usize = 3;

/// Bytes of the IP and UDP headers, counted for each datagram so that many short ones do not cost a victim more than is
/// counted.
const HEADERS: usize = 28;

/// A peer that returns to an address this soon after leaving it alternates between addresses (W53).
const ALTERNATION_THRESHOLD: Duration = Duration::from_secs(4);

/// A peer whose port changes this soon after its address did last is still on the same path. A client that only listens shows its
/// address once per second.
const REPEATED_MOVE: Duration = Duration::from_millis(1_500);

/// Time for which a peer that alternated between addresses is expected to do so again.
const ALTERNATION_MEMORY: Duration = Duration::from_secs(10);

/// Smallest time without data from its address after which the session of a peer that alternates moves on. It is twice the time
/// that the peer needed to return, if that is longer.
const MIN_STAY_TIMEOUT: Duration = Duration::from_millis(500);

/// Interval of the datagrams by which a peer is asked to confirm its address, and limits of the time that it is given (W54).
const CONFIRMATION_INTERVAL: Duration = Duration::from_millis(200);
const MIN_CONFIRMATION_TIME: Duration = Duration::from_secs(1);
const MAX_CONFIRMATION_TIME: Duration = Duration::from_secs(3);

/// In a plain session the peer is given the first time, and until no message came from it for the second time, or for half of
/// the idle timeout: its session ends if it does not answer.
const PLAIN_CONFIRMATION_TIME: Duration = Duration::from_millis(1_500);
const PLAIN_SILENCE: Duration = Duration::from_secs(5);

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
    /// The peer alternates between addresses, and probably will until this time.
    alternates_until: Option<Instant>,
    /// A peer that alternates is sent to the same address as long as data came from there within this time.
    stay_timeout: Duration,
    address_state: AddressState,
}

/// Whether the peer is at its address (W54).
#[derive(Clone, Copy, Debug)]
enum AddressState {
    /// It is, as far as is known.
    Confirmed,
    /// The peer has left its address, and where it is now is not settled: nothing is sent.
    Left,
    /// Another session claims the address. Until a deadline the peer is asked to confirm that it is there.
    Contested { until: Instant, probe_at: Instant, is_held: bool },
}

#[derive(Debug)]
struct Validation {
    /// The last validated address.
    validated: SocketAddr,
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

impl Path {
    pub fn new(now: Instant, peer: SocketAddr) -> Self {
        Self {
            peer,
            validation: None,
            proven: FormerAddresses::default(),
            left_unvalidated: FormerAddresses::default(),
            last_data: now,
            moved_at: None,
            alternates_until: None,
            stay_timeout: MIN_STAY_TIMEOUT,
            address_state: AddressState::Confirmed,
        }
    }

    /// Charges a datagram to the credit. Returns false if it must not be sent.
    pub fn charge(&mut self, bytes: usize) -> bool {
        let Some(validation) = &mut self.validation else { return true };
        match validation.credit.checked_sub(bytes + HEADERS) {
            Some(rest) if !validation.is_exhausted => validation.credit = rest,
            _ => validation.is_exhausted = true,
        }
        !validation.is_exhausted
    }

    /// Whether nothing may be sent until something is received.
    pub fn is_exhausted(&self) -> bool {
        self.is_held() || self.validation.as_ref().is_some_and(|validation| validation.is_exhausted)
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

    /// Whether nothing is sent because the peer may not be at its address.
    fn is_held(&self) -> bool {
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

    /// Whether the peer is at this address, as far as is known.
    pub(crate) fn is_at(&self, addr: SocketAddr) -> bool {
        self.path.peer == addr && !matches!(self.path.address_state, AddressState::Left)
    }

    /// Data came from the current address of the peer.
    pub(crate) fn on_data_from_peer(&mut self, now: Instant) {
        self.path.last_data = now;
    }

    /// Whether the session stays where it is although its newest message came from another address: the peer alternates
    /// between the two (W53).
    pub(crate) fn stays_at_peer(&mut self, now: Instant) -> bool {
        let path = &mut self.path;
        if !matches!(path.address_state, AddressState::Confirmed)
            || now.saturating_duration_since(path.last_data) >= path.stay_timeout
        {
            return false;
        }
        let alternates = path.alternates_until.is_some_and(|until| now < until);
        if alternates {
            path.alternates_until = Some(now + ALTERNATION_MEMORY);
        }
        alternates
    }

    /// Whether the peer has alternated between addresses lately.
    pub(crate) fn alternates(&self, now: Instant) -> bool {
        self.path.alternates_until.is_some_and(|until| now < until)
    }

    /// Whether the peer has proved lately that it receives what is sent to this address.
    pub(crate) fn has_proven(&self, now: Instant, addr: SocketAddr) -> bool {
        self.path.proven.left_at(now, addr).is_some()
    }

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
    pub(super) fn emit_confirmation_probe(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
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
        let away = left_at.map(|at| now.saturating_duration_since(at)).filter(|away| *away < ALTERNATION_THRESHOLD);
        let alternates = away.is_some();
        if let Some(away) = away {
            self.path.stay_timeout = (2 * away).max(MIN_STAY_TIMEOUT);
            self.path.alternates_until = Some(now + ALTERNATION_MEMORY);
        }
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
        self.path.validation =
            Some(Validation { validated, since, challenge: None, random, credit: 0, is_exhausted: false });
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
    pub(super) fn prepare_challenge(&mut self, now: Instant) {
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
pub(super) fn challenge_size(window: usize) -> usize {
    MAX_PREPARED.min(window / 2)
}
