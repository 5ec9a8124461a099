//! Late binding: a layer above decides what is sent when it can be sent, not when the application hands it over.
//!
//! Such a layer keeps its messages in queues of its own. Before each transmission it is polled, and hands over no
//! more than window and pacer admit at once. So the most urgent message is always the next, and nothing waits behind bulk.

use super::{Connection, DirectBudget, State};
use crate::SendError;
use rallypoint_wire::session::{MAX_DATAGRAM, MessageNumber, channels::MESSAGE_HEADER};
use std::time::Instant;

/// The state of the layer above: whether it has messages, and when it wants to be polled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// Messages wait for the window or the pacer: the connection is not short of something to send.
    pub has_backlog: bool,
    /// When to poll it again, although nothing else happens.
    pub wake_at: Option<Instant>,
    /// Nothing waits: it is polled only after [`Connection::wake_source`].
    pub is_idle: bool,
}

/// Maximum number of messages that are sent in a row although others have to be resent: otherwise those would wait for as long as
/// there is something urgent.
const MAX_PRECEDING: u8 = 4;

/// Least number of messages in the window for which bulk leaves room: those of a game within a round trip and the time in which a
/// lost message is resent.
const MIN_DROPPABLE_NUMBERS: usize = 8;

/// New messages that are sent before those that have to be resent: a position that is sent now is worth more than a part of a
/// download.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Precedence {
    /// Number of them that were handed over and not sent yet.
    unsent: u8,
    /// Whether those are sent although the congestion window is full.
    may_overdraw: bool,
    /// Number of them that were sent since the last resend.
    sent: u8,
}

impl Precedence {
    /// A message is sent for the first time.
    #[inline]
    pub fn on_first(&mut self) {
        if self.unsent > 0 {
            self.unsent -= 1;
            self.sent = (self.sent + 1).min(MAX_PRECEDING);
        }
    }

    /// A message is resent.
    pub fn on_resend(&mut self) {
        self.sent = 0;
    }
}

impl Source {
    /// The layer above has nothing to send, until it wakes the source.
    pub const IDLE: Self = Self { has_backlog: false, wake_at: None, is_idle: true };
}

impl Connection {
    /// Number of bytes, headers included, that would be sent at once. The layer above has something to send.
    #[inline(always)]
    pub(crate) fn send_budget(&mut self, now: Instant) -> usize {
        if self.has_precedence(now) { 0 } else { self.droppable_budget(now, false) }
    }

    /// Whether only messages may be sent that must not be late: others have to be resent now, or nothing comes back. Into a
    /// silence, only what costs next to nothing is sent: it shows at once when the network is back.
    #[inline]
    pub(crate) fn has_precedence(&mut self, now: Instant) -> bool {
        (self.send.buffer.next_resend().is_some() && self.recovery.resend_at.is_none_or(|at| now >= at))
            || (self.recovery.is_silent && !self.send.redundancy.is_low_rate())
    }

    /// Whether the congestion window is full.
    pub(crate) fn is_window_full(&self) -> bool {
        let in_flight = self.send.buffer.in_flight();
        in_flight > 0 && self.congestion.room(in_flight) < MAX_DATAGRAM as f64
    }

    /// Number of messages that may be handed over although others have to be resent. `are_few`: those have their turn in any case.
    pub(crate) fn max_preceding(&self, are_few: bool) -> u8 {
        if are_few || self.recovery.is_silent { MAX_PRECEDING } else { MAX_PRECEDING - self.send.precedence.sent }
    }

    /// The message that was just handed over precedes those that have to be resent, and is sent into a silence. `may_overdraw`: it
    /// is sent although the congestion window is full, as happens when that has just shrunk.
    pub(crate) fn precede_resends(&mut self, may_overdraw: bool) {
        self.send.precedence.unsent += 1;
        self.send.precedence.may_overdraw = may_overdraw;
    }

    /// The next message, if it was never sent, precedes those that have to be resent, and may be sent now.
    pub(super) fn next_preceding(&mut self, now: Instant) -> Option<MessageNumber> {
        if self.send.precedence.unsent == 0 {
            return None;
        }
        let number = self.next_unsent();
        if number.is_none() {
            self.send.precedence.unsent = 0;
        }
        let may_overdraw = self.send.precedence.may_overdraw;
        number.filter(|number| (may_overdraw || self.fits_window(*number)) && self.is_pacer_ready(now))
    }

    /// The same as [`send_budget`](Self::send_budget) for messages that must not be late. `may_overdraw`: they are so few that they
    /// need not wait for the congestion window.
    #[inline(always)]
    pub(crate) fn droppable_budget(&mut self, now: Instant, may_overdraw: bool) -> usize {
        // As in `send`: messages that were acked long ago are freed with every ack, and here only if their memory is needed.
        if self.send.is_memory_scarce || !self.send.buffer.has_room() {
            self.release(now);
            if !self.send.buffer.has_room() {
                self.send.is_blocked = true;
                return 0;
            }
        }
        let buffer = &self.send.buffer;
        if self.state != State::Open || buffer.unsent() > 0 || !self.path.admits(buffer.next_number()) {
            return 0;
        }
        let in_flight = self.send.buffer.in_flight();
        if !self.send.pacer.refill_and_check(now, || self.congestion.pacing_rate(&self.rtt, None)) {
            return 0;
        }
        let left = self.congestion.room(in_flight);
        // A single datagram always fits: the pacer limits those.
        let left = if in_flight == 0 || may_overdraw { left.max(MAX_DATAGRAM as f64) } else { left };
        left.min(self.send.pacer.credit()) as usize
    }

    /// How much may be handed over before the layer is polled.
    #[inline]
    pub(crate) fn direct_budget(&mut self) -> &mut DirectBudget {
        &mut self.send.direct_budget
    }

    /// Whether the layer above has to be polled before something is sent.
    #[inline]
    pub(crate) fn has_source_work(&self) -> bool {
        !self.send.source.is_idle
    }

    /// The layer above has something to send or to report: it has to be polled.
    #[inline]
    pub(crate) fn wake_source(&mut self) {
        self.send.source.is_idle = false;
    }

    /// Sets what the layer above waits for, until the next call.
    pub(crate) fn set_source(&mut self, source: Source) {
        self.send.source = source;
    }

    /// The number of the last message that was handed over.
    #[inline]
    pub(crate) fn last_number(&self) -> MessageNumber {
        self.send.buffer.next_number().plus(u32::MAX)
    }

    /// Queues a message with the header of a channel, whose bytes are obsolete from this age on, if it is not zero. Returns false
    /// if it cannot be sent now, or does not fit. Inlined: the call with its many arguments would take 18 instructions more,
    /// 0.5 % of a message of 400 bytes.
    #[inline(always)]
    pub(crate) fn send_headed(
        &mut self,
        now: Instant,
        header: [u8; MESSAGE_HEADER],
        body: &[u8],
        allowance: usize,
        max_age_us: u32,
    ) -> bool {
        self.send_checked(now, &header, body, allowance, max_age_us).is_ok()
    }

    /// Queues a message of at least one byte, in two parts of which the first may be empty, and returns its number.
    #[inline]
    pub(crate) fn send_numbered(
        &mut self,
        now: Instant,
        head: &[u8],
        body: &[u8],
        allowance: usize,
    ) -> Result<MessageNumber, SendError> {
        self.send.direct_budget.invalidate();
        let number = self.send.buffer.next_number();
        self.send_parts(now, head, body, allowance).map(|()| number)
    }

    /// The bytes of this message are obsolete from this time on: if it has to be resent, a message without bytes takes its number.
    #[inline]
    pub(crate) fn discard_at(&mut self, number: MessageNumber, at: Instant) {
        self.send.buffer.discard_at(number, at);
    }

    /// The bytes of this message, which may not have been sent, are obsolete.
    pub(crate) fn discard_unsent(&mut self, now: Instant, number: MessageNumber) {
        self.discard_at(number, now);
        self.apply_discard(now, number);
    }

    /// Whether a message was handed over and not sent yet.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.send.buffer.unsent() > 0
    }

    /// Whether this message was never sent.
    #[inline]
    pub(crate) fn is_unsent(&self, number: MessageNumber) -> bool {
        self.send.buffer.is_unsent(number)
    }

    /// Delivers messages on arrival from now on (S27), beginning with those that arrived early.
    pub(crate) fn deliver_on_arrival(&mut self) {
        self.receive.buffer.deliver_on_arrival();
        self.events.readable |= self.receive.buffer.is_readable();
    }

    /// Whether there is room for a message that leaves some numbers of the window to others, which must not wait for an ack.
    #[inline]
    pub(crate) fn has_room_beside_droppable(&self) -> bool {
        self.send
            .buffer
            .has_room_for(1 + self.send.buffer.reserve() + (self.config.window / 16).max(MIN_DROPPABLE_NUMBERS))
    }

    /// There is nothing to send that was handed over already, but the layer above has more.
    pub(super) fn wait_for_source(&mut self, now: Instant) {
        self.congestion.on_limited(0, false);
        if !self.send.pacer.refill_and_check(now, || self.congestion.pacing_rate(&self.rtt, None)) {
            self.send.paced_until = Some(self.send.pacer.retry_at(self.congestion.pacing_rate(&self.rtt, None)));
        }
    }

    /// Replaces the bytes of a discarded message by none before it is sent or resent, and returns whether it did. Its first bytes
    /// may have arrived: the receiver takes one of the two, and the nonce of a message without bytes is another (S30).
    pub(super) fn apply_discard(&mut self, now: Instant, number: MessageNumber) -> bool {
        if !self.send.buffer.is_discarded(now, number) {
            return false;
        }
        let mut datagram = std::mem::take(&mut self.send.scratch);
        datagram.clear();
        let is_emitted = self.codec.emit(number, &[], &[], &mut datagram);
        if is_emitted {
            self.send.buffer.replace(number, &datagram);
        }
        self.send.scratch = datagram;
        is_emitted
    }
}
