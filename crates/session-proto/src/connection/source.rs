//! Late binding: a layer above decides what is sent when it can be sent, not when the application hands it over.
//!
//! Such a layer keeps its messages in queues of its own. Before each transmission it is asked for messages, and hands over no
//! more than window and pacer admit at once. So the most urgent message is always the next, and nothing waits behind bulk.

use super::{Connection, DirectBudget, State};
use crate::SendError;
use rallypoint_wire::session::{MAX_DATAGRAM, MessageNumber, channels::MESSAGE_HEADER};
use std::time::{Duration, Instant};

/// The state of the layer above: whether it has messages, and when it wants to be asked for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// Messages wait for the window or the pacer: the connection is not short of something to send.
    pub has_backlog: bool,
    /// When to ask for messages again, although nothing else happens.
    pub wake_at: Option<Instant>,
    /// Nothing waits: messages are asked for only after [`Connection::wake_source`].
    pub is_idle: bool,
}

impl Source {
    /// The layer above has nothing to send, until it wakes the source.
    pub const IDLE: Self = Self { has_backlog: false, wake_at: None, is_idle: true };
}

impl Connection {
    /// Number of bytes, headers included, that would be sent at once. The layer above has something to send.
    #[inline(always)]
    pub(crate) fn send_budget(&mut self, now: Instant) -> usize {
        // As in `send`: messages that were acked long ago are freed with every ack, and here only if their memory is needed.
        if self.send.is_memory_scarce || !self.send.buffer.has_room() {
            self.release(now);
            if !self.send.buffer.has_room() {
                self.send.is_blocked = true;
                return 0;
            }
        }
        let buffer = &mut self.send.buffer;
        let is_held = |resend_at: Option<Instant>| resend_at.is_some_and(|at| now < at);
        if self.state != State::Open
            || buffer.unsent() > 0
            || (buffer.next_resend().is_some() && !is_held(self.recovery.resend_at))
            || !self.path.admits(buffer.next_number())
            || (self.recovery.is_silent && !self.send.redundancy.is_thin())
        {
            return 0;
        }
        let in_flight = self.send.buffer.in_flight();
        if !self.send.pacer.is_ready(now, || self.congestion.pacing_rate(&self.rtt, false)) {
            return 0;
        }
        let left = self.congestion.room(in_flight);
        // A single datagram always fits: the pacer limits those.
        let left = if in_flight == 0 { left.max(MAX_DATAGRAM as f64) } else { left };
        left.min(self.send.pacer.credit()) as usize
    }

    /// How much may be handed over before the layer is asked.
    #[inline]
    pub(crate) fn direct_budget(&mut self) -> &mut DirectBudget {
        &mut self.send.direct_budget
    }

    /// Whether the layer above has to be asked for messages before something is sent.
    #[inline]
    pub(crate) fn has_source_work(&self) -> bool {
        !self.send.source.is_idle
    }

    /// The layer above has something to send or to report: it has to be asked.
    #[inline]
    pub(crate) fn wake_source(&mut self) {
        self.send.source.is_idle = false;
    }

    /// Sets what the layer above waits for, until the next call.
    pub(crate) fn set_source(&mut self, source: Source) {
        self.send.source = source;
    }

    /// Asks for messages at this time at the latest.
    pub(crate) fn set_wake_at(&mut self, at: Instant) {
        let wake_at = &mut self.send.source.wake_at;
        *wake_at = Some(wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// The number of the last message that was handed over.
    #[inline]
    pub(crate) fn last_number(&self) -> MessageNumber {
        self.send.buffer.next_number().plus(u32::MAX)
    }

    /// Queues a message with the header of a channel, whose bytes are of no use from this age on, if it is not zero. Returns false
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

    /// The bytes of this message are of no use from this time on: if it has to be resent, a message without bytes takes its number.
    #[inline]
    pub(crate) fn discard_at(&mut self, number: MessageNumber, at: Instant) {
        self.send.buffer.discard_at(number, at);
    }

    /// The bytes of this message, which may not have been sent, are of no use any more.
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

    /// How much longer than without a queue a round trip takes now.
    pub(crate) fn queue_delay(&self) -> Duration {
        self.rtt.queue_delay()
    }

    /// The interval at which this side is polled: how long a datagram may wait to be read.
    pub(crate) fn poll_interval(&self) -> Duration {
        self.rtt.poll_interval()
    }

    /// The round-trip time without a queue.
    pub(crate) fn base_rtt(&self) -> Duration {
        self.rtt.base()
    }

    pub(crate) fn smoothed_rtt(&self) -> Duration {
        self.rtt.smoothed()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.send.buffer.in_flight()
    }

    /// Number of messages that are not acknowledged.
    pub(crate) fn unacked(&self) -> usize {
        self.send.buffer.unacked()
    }

    pub(crate) fn window(&self) -> u64 {
        self.congestion.window()
    }

    /// There is nothing to send that was handed over already, but the layer above has more.
    pub(super) fn wait_for_source(&mut self, now: Instant) {
        self.congestion.on_limited(0, false);
        if !self.send.pacer.is_ready(now, || self.congestion.pacing_rate(&self.rtt, false)) {
            self.send.paced_until = Some(self.send.pacer.retry_at(self.congestion.pacing_rate(&self.rtt, false)));
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
