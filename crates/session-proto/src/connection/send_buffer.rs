//! Messages on their way to the peer: when each was sent, which are acked, and which have to be resent (S21 to S25).
//!
//! Every message keeps its bytes as they go over the wire: a resend sends the same bytes, and nothing is sealed twice (S30).
//! Messages in flight form a list in the order of transmission, so that overdue ones are at its head and an ack needs no
//! search.

mod acks;
mod copies;
mod in_flight;
mod retention;
mod skipped;

pub(crate) use in_flight::LossCount;
pub(crate) use retention::Retention;

use super::{
    congestion::DeliverySnapshot,
    datagram_ring::{DatagramRing, Span},
    loss_meter::LossMeter,
    resend_budget::ResendCredit,
    transmission_outcomes::TransmissionOutcomes,
};
use rallypoint_wire::session::MessageNumber;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Maximum number of windows that are kept, acked messages included.
const MAX_WINDOWS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Not sent yet.
    Unsent,
    /// Sent, and neither acked nor declared lost.
    InFlight,
    /// Has to be resent.
    Lost,
    Acked,
}

#[derive(Debug)]
struct Message {
    span: Span,
    status: Status,
    /// Whether it is in `resends` and has to be sent.
    is_queued: bool,
    /// Number of transmissions, copies not counted.
    transmissions: u16,
    /// Whether a copy was sent after the first transmission, before there was a reason to assume that it was lost.
    is_copied: bool,
    /// Whether an ack was ignored because it came too early; `acked_at` is its time.
    is_acked_early: bool,
    /// Whether it was the first message of a loss event, after a single transmission without a copy.
    is_single_loss: bool,
    outcomes: TransmissionOutcomes,
    /// Whether its last transmission counts as lost because several later ones were acked, and not because its ack was late.
    is_overtaken: bool,
    /// Whether the peer has requested it after its ack.
    is_requested: bool,
    discard: Discard,
    /// Position of its last transmission in the order of all transmissions.
    order: u64,
    times: Timeline,
    snapshot: Option<DeliverySnapshot>,
    /// Neighbours in the list of messages in flight.
    previous: Option<MessageNumber>,
    next: Option<MessageNumber>,
}

/// When its bytes become obsolete: a resend then carries none.
#[derive(Clone, Copy, Debug, Default)]
struct Discard {
    at: Option<Instant>,
    /// The same as an age since the first transmission in microseconds; zero if there is none.
    max_age_us: u32,
}

/// When a message was sent and acked.
#[derive(Clone, Copy, Debug)]
struct Timeline {
    first_sent_at: Instant,
    sent_at: Instant,
    acked_at: Instant,
}

/// A message that is resent because the peer requested it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedMessage {
    pub losses: LossCount,
    pub len: usize,
    pub is_acked: bool,
}

/// The send window: messages that are waiting, in flight, lost, or kept after their ack.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    window: usize,
    /// Number of messages of the window that are kept free for a path challenge.
    reserve: usize,
    /// The number of the first entry of `messages`.
    base: MessageNumber,
    messages: VecDeque<Message>,
    ring: DatagramRing,
    /// The oldest number that is not acked.
    oldest_unacked: MessageNumber,
    /// The first number that was never sent. Some above it may have been (S31).
    next_unsent: MessageNumber,
    /// The last number that was sent before lower ones (S31): the peer knows of these before they are sent.
    sent_ahead: Option<MessageNumber>,
    /// A number below `next_unsent` which is withheld (W79).
    skipped: Option<MessageNumber>,
    /// First and last entry of the list of messages in flight.
    first_in_flight: Option<MessageNumber>,
    last_in_flight: Option<MessageNumber>,
    /// Bytes in flight.
    in_flight: u64,
    resends: VecDeque<MessageNumber>,
    /// Scheduled copies in the order of time.
    copies: VecDeque<(Instant, MessageNumber)>,
    next_order: u64,
    newest_acked_order: u64,
    loss: LossMeter,
}

impl SendBuffer {
    pub fn new(first: MessageNumber, window: usize, reserve: usize) -> Self {
        Self {
            window,
            reserve,
            base: first,
            messages: VecDeque::new(),
            ring: DatagramRing::default(),
            oldest_unacked: first,
            next_unsent: first,
            sent_ahead: None,
            skipped: None,
            first_in_flight: None,
            last_in_flight: None,
            in_flight: 0,
            resends: VecDeque::new(),
            copies: VecDeque::new(),
            next_order: 1,
            newest_acked_order: 0,
            loss: LossMeter::default(),
        }
    }

    /// The number of the next message.
    pub fn next_number(&self) -> MessageNumber {
        self.base.plus(self.messages.len() as u32)
    }

    /// Whether another message of the application fits into the window, and not too many acked messages are kept.
    pub fn has_room(&self) -> bool {
        self.has_room_for(1 + self.reserve) && self.messages.len() < MAX_WINDOWS * self.window
    }

    /// Number of messages of the window that are kept free for a path challenge.
    pub fn reserve(&self) -> usize {
        self.reserve
    }

    /// Whether this many messages fit into the window, the reserve included.
    pub fn has_room_for(&self, messages: usize) -> bool {
        self.unacked() + messages <= self.window
    }

    /// Whether a peer that has received all messages has room for another one, although none of them is acked.
    pub fn has_room_beyond(&self) -> bool {
        self.unacked() + 1 < 2 * self.window
    }

    /// The last message for which the peer has room in any case, if the window is full and the message may be lost.
    pub fn last_of_full_window(&self) -> Option<MessageNumber> {
        let number = self.oldest_unacked.plus(self.window as u32 - 1);
        let message = self.get(number)?;
        (message.transmissions > 0 && message.status != Status::Acked).then_some(number)
    }

    /// Number of messages that are not acked.
    pub fn unacked(&self) -> usize {
        self.next_number().distance_from(self.oldest_unacked) as usize
    }

    /// Number of messages that are not acked, without those whose datagrams have only `empty_len` bytes: they carry no
    /// payload.
    pub fn undelivered(&self, empty_len: usize) -> usize {
        let first = self.oldest_unacked.distance_from(self.base) as usize;
        let is_undelivered =
            |message: &&Message| message.status != Status::Acked && usize::from(message.span.len) > empty_len;
        self.messages.iter().skip(first).filter(is_undelivered).count()
    }

    /// Number of messages that were never sent.
    pub fn unsent(&self) -> usize {
        self.next_number().distance_from(self.next_unsent) as usize
    }

    /// Position of the next transmission in the order of all transmissions.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Measured share of lost transmissions.
    pub fn loss(&self) -> f64 {
        self.loss.loss()
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.ring.used()
    }

    /// Appends the datagram of the next message. `max_age_us`: age in microseconds from which on its bytes are obsolete; zero if
    /// there is none.
    pub fn push(&mut self, now: Instant, datagram: &[u8], max_age_us: u32) {
        let span = self.ring.push(datagram, self.messages.iter_mut().map(|message| &mut message.span));
        self.messages.push_back(Message {
            span,
            status: Status::Unsent,
            is_queued: false,
            transmissions: 0,
            is_copied: false,
            is_acked_early: false,
            is_single_loss: false,
            outcomes: TransmissionOutcomes::default(),
            is_overtaken: false,
            is_requested: false,
            discard: Discard { at: None, max_age_us },
            order: 0,
            times: Timeline { first_sent_at: now, sent_at: now, acked_at: now },
            snapshot: None,
            previous: None,
            next: None,
        });
    }

    /// The next message that was never sent.
    pub fn next_unsent(&self) -> Option<MessageNumber> {
        (self.unsent() > 0).then_some(self.next_unsent)
    }

    /// The next message that has to be resent.
    pub fn next_resend(&mut self) -> Option<MessageNumber> {
        while let Some(&number) = self.resends.front() {
            match self.get(number) {
                // This may be an acked message that the receiver has requested.
                Some(message) if message.is_queued => return Some(number),
                _ => self.resends.pop_front(),
            };
        }
        None
    }

    /// Number of transmissions of a message.
    pub fn transmissions(&self, number: MessageNumber) -> u16 {
        self.get(number).map_or(0, |message| message.transmissions)
    }

    /// Whether a message is acked, and kept in case its ack was forged.
    pub fn is_acked(&self, number: MessageNumber) -> bool {
        self.get(number).is_some_and(|message| message.status == Status::Acked)
    }

    /// The oldest message that was sent and is not acked, and the time of its last transmission.
    pub fn oldest_sent(&self) -> Option<(MessageNumber, Instant)> {
        let message = self.get(self.oldest_unacked)?;
        (message.transmissions > 0).then_some((self.oldest_unacked, message.times.sent_at))
    }

    /// The newest message that was sent.
    pub fn newest_sent(&self) -> Option<MessageNumber> {
        (self.next_unsent != self.base)
            .then(|| self.next_unsent.plus(u32::MAX))
            .filter(|number| self.skipped != Some(*number))
    }

    /// The length of a message's datagram.
    pub fn datagram_len(&self, number: MessageNumber) -> usize {
        self.get(number).map_or(0, |message| message.span.len.into())
    }

    /// The bytes of a message's datagram.
    pub fn datagram(&self, number: MessageNumber) -> &[u8] {
        self.get(number).map_or(&[], |message| self.ring.get(message.span))
    }

    /// The bytes of a message are obsolete from this time on.
    #[inline]
    pub fn discard_at(&mut self, number: MessageNumber, at: Instant) {
        if let Some(message) = self.get_mut(number) {
            message.discard.at = Some(at);
        }
    }

    /// Whether the bytes of a message are obsolete, and it still has them.
    pub fn is_discarded(&self, now: Instant, number: MessageNumber) -> bool {
        let Some(message) = self.get(number) else { return false };
        let Discard { at, max_age_us } = message.discard;
        let expires_at = message.times.first_sent_at + Duration::from_micros(max_age_us.into());
        at.is_some_and(|at| now >= at) || (max_age_us > 0 && now >= expires_at)
    }

    /// Replaces the datagram of a discarded message by a shorter one.
    pub fn replace(&mut self, number: MessageNumber, datagram: &[u8]) {
        let position = number.distance_from(self.base) as usize;
        let Some(message) = self.messages.get_mut(position) else { return };
        message.discard = Discard::default();
        let before = message.span.len;
        self.ring.replace(&mut message.span, datagram);
        if message.status == Status::InFlight {
            self.in_flight -= u64::from(before - message.span.len);
        }
    }

    /// A message is sent, for the first time or again.
    pub fn on_sent(&mut self, now: Instant, number: MessageNumber, snapshot: DeliverySnapshot) {
        let order = self.next_order;
        let Some(message) = self.get_mut(number) else { return };
        let status = message.status;
        message.is_queued = false;
        message.times.sent_at = now;
        if message.transmissions == 0 {
            message.times.first_sent_at = now;
        }
        message.transmissions = message.transmissions.saturating_add(1);
        message.outcomes.on_sent();
        if status == Status::Acked {
            return;
        }
        message.order = order;
        message.snapshot = Some(snapshot);
        message.status = Status::InFlight;
        let len = u64::from(message.span.len);
        self.next_order += 1;
        if status == Status::InFlight {
            self.unlink(number);
        } else {
            self.in_flight += len;
        }
        self.link(number);
        if status == Status::Unsent && self.next_unsent.is_before(number) {
            self.sent_ahead = Some(number);
        }
        self.advance_unsent();
    }

    fn advance_unsent(&mut self) {
        while self.get(self.next_unsent).is_some_and(|message| message.status != Status::Unsent) {
            self.next_unsent = self.next_unsent.next();
        }
    }

    /// The peer requests a message. It is resent, acked or not, but not twice within half of the round-trip time `rtt` (S24, S25),
    /// only with credit (W61), and if it was resent before, or sent after a higher number, only if the peer could have received
    /// that transmission before it sent the request.
    pub fn on_request(
        &mut self,
        now: Instant,
        number: MessageNumber,
        rtt: Duration,
        credit: ResendCredit,
    ) -> Option<RequestedMessage> {
        let is_overtaken = self.sent_ahead.is_some_and(|ahead| number.is_before(ahead));
        let message = self.get_mut(number)?;
        let is_acked = message.status == Status::Acked;
        let min_interval = if message.transmissions > 1 || is_overtaken { rtt } else { rtt / 2 };
        if message.transmissions == 0
            || message.is_queued
            || now.saturating_duration_since(message.times.sent_at) < min_interval
            || !(match (is_acked, message.is_requested) {
                (false, _) => credit.unacked,
                (true, false) => credit.first,
                (true, true) => credit.acked,
            })
        {
            return None;
        }
        message.is_requested |= is_acked;
        let len = usize::from(message.span.len);
        if message.status == Status::InFlight {
            return Some(RequestedMessage { losses: self.declare_lost(number, true), len, is_acked });
        }
        message.is_queued = true;
        // The receiver waits for it, and may have no room for anything else that is to be resent.
        self.resends.push_front(number);
        Some(RequestedMessage { losses: LossCount::default(), len, is_acked })
    }

    fn get(&self, number: MessageNumber) -> Option<&Message> {
        self.messages.get(number.distance_from(self.base) as usize)
    }

    fn get_mut(&mut self, number: MessageNumber) -> Option<&mut Message> {
        self.messages.get_mut(number.distance_from(self.base) as usize)
    }
}
