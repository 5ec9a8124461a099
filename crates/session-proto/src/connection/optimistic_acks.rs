//! Detection of a peer that acks messages before it has received them (W79).
//!
//! Such acks hide losses and make the path seem short, so that the sender would send ever faster. QUIC leaves packet numbers out
//! and checks whether they are acked (RFC 9000, 21.4). Here every number has to be filled, so now and then the sender
//! withholds a message and sends the ones after it. A peer that follows the protocol acks those, or requests the missing one,
//! which is sent then. An ack of the withheld message is false. It may be forged by a third party, since acks are not
//! authenticated; then the peer still lacks the message, and others of which acks were forged, and requests them. A peer that
//! requests nothing has acked what it has not received.

use super::{Connection, State, path_challenge::split_mix};
use crate::DisconnectReason;
use rallypoint_wire::session::MessageNumber;
use std::time::{Duration, Instant};

/// Number of messages of a stream that waits for its window before the first one is withheld: a random number in this range.
const FIRST_AFTER: [u64; 2] = [64, 192];

/// Minimum of the mean time between two withheld messages. Each interval is up to half shorter or longer than the mean.
const INTERVAL: Duration = Duration::from_secs(2);
/// The same in round trips: the window may have to wait a round trip for each withheld message.
const INTERVAL_ROUND_TRIPS: u32 = 64;

/// Mean time between two withheld messages while the peer is suspected.
const SUSPECT_INTERVAL: Duration = Duration::from_millis(200);
/// How long a peer is suspected after a false ack.
const SUSPICION: Duration = Duration::from_secs(30);

/// Minimum length of a withheld datagram in bytes: one of a download, and not a position that must not be late.
const MIN_LEN: usize = 256;

/// Minimum number of messages that wait to be sent after it, so that the peer notices that one is missing.
const MIN_UNSENT: usize = 8;

/// Number of later transmissions that have to be acked before the peer counts as honest about a withheld message.
const ADMITTED_AFTER: u64 = 4;

/// Time after which the withheld message is sent if the peer acks later ones and requests nothing.
const REQUEST_TIME: Duration = Duration::from_millis(30);

/// Minimum time within which an honest peer requests a message that a third party acked: several requests may be lost.
const CONVICTION_TIME: Duration = Duration::from_secs(3);
/// The same in retransmission timeouts.
const CONVICTION_TIMEOUTS: u32 = 4;

/// Withholds messages, and judges the acks that follow.
#[derive(Debug)]
pub(crate) struct OptimisticAckDetector {
    random: u64,
    /// Number of messages until the first one is withheld.
    countdown: u64,
    /// When the next one is withheld.
    next_at: Option<Instant>,
    withheld: Option<Withheld>,
    suspected_until: Option<Instant>,
}

/// A message that later ones have overtaken.
#[derive(Clone, Copy, Debug)]
struct Withheld {
    number: MessageNumber,
    /// Position of the next message in the order of all transmissions.
    order: u64,
    /// When it is sent; or, if it was acked, when the peer is convicted.
    until: Instant,
    is_admitted: bool,
    is_acked: bool,
}

impl OptimisticAckDetector {
    /// `random` must be unpredictable for the peer.
    pub fn new(mut random: u64) -> Self {
        let [min, max] = FIRST_AFTER;
        let countdown = min + split_mix(&mut random) % (max - min);
        Self { random, countdown, next_at: None, withheld: None, suspected_until: None }
    }

    pub fn withheld(&self) -> Option<MessageNumber> {
        self.withheld.map(|withheld| withheld.number)
    }

    /// Whether a message that was never sent was acked recently, by the peer or a forger.
    pub fn is_suspected(&self, now: Instant) -> bool {
        self.suspected_until.is_some_and(|until| now < until)
    }

    /// When the state of the withheld message changes although nothing arrives.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.withheld.map(|withheld| withheld.until)
    }

    /// A message of a stream that waits for its window is about to be sent for the first time. Returns true if it is to be
    /// withheld.
    #[inline]
    fn tick(&mut self, now: Instant) -> bool {
        if self.withheld.is_some() {
            return false;
        }
        self.countdown = self.countdown.saturating_sub(1);
        self.countdown == 0 && self.next_at.is_none_or(|at| now >= at)
    }

    fn schedule(&mut self, now: Instant, rtt: Duration) {
        let mean = if self.is_suspected(now) {
            SUSPECT_INTERVAL.max(2 * rtt)
        } else {
            INTERVAL.max(rtt * INTERVAL_ROUND_TRIPS)
        };
        let part = (split_mix(&mut self.random) % 1_024) as u32;
        self.next_at = Some(now + mean / 2 + mean * part / 1_024);
    }
}

impl Connection {
    /// Sets the seed that decides which messages are withheld.
    pub(crate) fn seed_optimistic_ack_detection(&mut self, random: u64) {
        self.send.optimistic_acks = OptimisticAckDetector::new(random);
    }

    /// Withholds the next unsent message if it is time for that.
    #[inline]
    pub(super) fn withhold(&mut self, now: Instant, number: MessageNumber) -> bool {
        self.congestion.is_limited() && self.send.optimistic_acks.tick(now) && self.start_withholding(now, number)
    }

    #[cold]
    fn start_withholding(&mut self, now: Instant, number: MessageNumber) -> bool {
        let unsent = self.send.buffer.unsent();
        let has_more = unsent > MIN_UNSENT || (unsent > 1 && self.send.source.has_backlog);
        if self.is_thin()
            || self.recovery.is_silent
            || self.is_unvalidated()
            || self.state != State::Open
            || self.send.buffer.datagram_len(number) < MIN_LEN
            || !has_more
        {
            return false;
        }
        let order = self.send.buffer.next_order();
        let until = now + 2 * self.rtt.base_rto();
        self.send.buffer.skip_unsent();
        self.send.optimistic_acks.withheld =
            Some(Withheld { number, order, until, is_admitted: false, is_acked: false });
        true
    }

    /// An ack names messages that were never sent.
    #[cold]
    pub(super) fn on_false_ack(&mut self, now: Instant, mut numbers: impl Iterator<Item = MessageNumber>) {
        let conviction = CONVICTION_TIME.max(CONVICTION_TIMEOUTS * self.rtt.base_rto());
        let detector = &mut self.send.optimistic_acks;
        if let Some(withheld) = &mut detector.withheld
            && numbers.any(|number| number == withheld.number)
        {
            if !withheld.is_acked {
                withheld.until = now + conviction;
            }
            withheld.is_acked = true;
            detector.suspected_until = Some(now + SUSPICION);
        }
    }

    /// Messages are acked: whether the peer admits that the withheld one is missing.
    #[cold]
    pub(super) fn check_withheld(&mut self, now: Instant) {
        let newest = self.send.buffer.newest_acked_order();
        let rtt = self.rtt.smoothed();
        if let Some(withheld) = &mut self.send.optimistic_acks.withheld
            && !withheld.is_admitted
            && !withheld.is_acked
            && newest >= withheld.order + ADMITTED_AFTER
        {
            withheld.is_admitted = true;
            withheld.until = withheld.until.min(now + rtt / 4 + REQUEST_TIME);
        }
    }

    /// The peer requests a message. If it is the withheld one, or one that was acked, its ack was forged by a third party.
    pub(super) fn on_withheld_request(&mut self, now: Instant, number: MessageNumber) {
        let Some(withheld) = self.send.optimistic_acks.withheld else { return };
        if withheld.number == number || (withheld.is_acked && self.send.buffer.is_acked(number)) {
            self.send_withheld(now);
        }
    }

    /// The time of the withheld message is up. If it was acked, and the peer never requested it, the peer has acked what it has not
    /// received.
    pub(super) fn expire_withheld(&mut self, now: Instant) {
        let Some(withheld) = self.send.optimistic_acks.withheld.filter(|withheld| now >= withheld.until) else {
            return;
        };
        if withheld.is_acked && self.state == State::Open {
            return self.abort(now, DisconnectReason::FalseAcks);
        }
        self.send_withheld(now);
    }

    fn send_withheld(&mut self, now: Instant) {
        let rtt = self.rtt.smoothed();
        if let Some(withheld) = self.send.optimistic_acks.withheld.take() {
            self.send.buffer.send_skipped(withheld.number);
        }
        self.send.optimistic_acks.schedule(now, rtt);
    }
}
