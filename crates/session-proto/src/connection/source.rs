//! Late binding: a layer above decides what is sent when it can be sent, not when the application hands it over.
//!
//! Such a layer keeps its messages in queues of its own. Before each transmission it is asked for messages, and hands over no
//! more than window and pacer admit at once. So the most urgent message is always the next, and nothing waits behind bulk.

use super::{Connection, State};
use crate::SendError;
use rallypoint_wire::session::{MAX_DATAGRAM, MessageNumber};
use std::time::{Duration, Instant};

/// The state of the layer above: whether it has messages, and when it wants to be asked for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// Messages wait for the window or the pacer: the connection is not short of something to send.
    pub has_backlog: bool,
    /// When to ask for messages again, although nothing else happens.
    pub wake_at: Option<Instant>,
}

impl Connection {
    /// Number of bytes, headers included, that would be sent at once. The layer above has something to send.
    pub(crate) fn send_budget(&mut self, now: Instant) -> usize {
        // As in `send`: messages that were acked long ago are freed with every ack, and here only if their memory is needed.
        if self.send.is_memory_scarce || !self.send.buffer.has_room() {
            self.release(now);
        }
        self.send.is_blocked |= !self.send.buffer.has_room();
        let buffer = &mut self.send.buffer;
        let is_held = self.recovery.resend_at.is_some_and(|at| now < at);
        if self.state != State::Open
            || buffer.unsent() > 0
            || !buffer.has_room()
            || (!is_held && buffer.next_resend().is_some())
            || !self.path.admits(buffer.next_number())
            || (self.recovery.is_silent && !self.send.redundancy.is_thin())
        {
            return 0;
        }
        let in_flight = self.send.buffer.in_flight();
        let left = self.congestion.window().saturating_sub(in_flight) as usize;
        // A single datagram always fits: the pacer limits those.
        let left = if in_flight == 0 { left.max(MAX_DATAGRAM) } else { left };
        let is_ready = self.send.pacer.is_ready(now, || self.congestion.pacing_rate(&self.rtt, false));
        let credit = if is_ready { self.send.pacer.credit() } else { 0 };
        left.min(credit)
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

    /// The number of the next message.
    pub(crate) fn next_number(&self) -> MessageNumber {
        self.send.buffer.next_number()
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
        let number = self.send.buffer.next_number();
        self.send_parts(now, head, body, allowance).map(|()| number)
    }

    /// The bytes of this message are of no use any more: if it has to be resent, a message without bytes takes its number.
    pub(crate) fn discard(&mut self, number: MessageNumber) {
        self.send.buffer.discard(number);
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

    /// Replaces the bytes of a discarded message by none before it is resent. Its first bytes may have arrived: the receiver
    /// takes one of the two, and the nonce of a message without bytes is another (S30).
    pub(super) fn apply_discard(&mut self, number: MessageNumber) {
        if !self.send.buffer.is_discarded(number) {
            return;
        }
        let mut datagram = std::mem::take(&mut self.send.scratch);
        datagram.clear();
        if self.codec.emit(number, &[], &[], &mut datagram) {
            self.send.buffer.replace(number, &datagram);
            self.stats.discarded += 1;
        }
        self.send.scratch = datagram;
    }
}
