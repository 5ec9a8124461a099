//! Messages that are handed over to the connection without a queue.

use super::{ChannelIndex, MessageId, Sender, bit};
use crate::{ChannelMode, Connection};
use rallypoint_wire::session::{
    MAX_DATAGRAM, MAX_TO_CLIENT, MessageNumber,
    channels::{MESSAGE_HEADER, message_header},
};
use std::time::Instant;

/// Messages of at least this length are never worth packing: two of them do not fit into a payload.
const MIN_LARGE: usize = MAX_TO_CLIENT / 2;

/// Number of polls with a single message each after which small messages are not expected to share a payload.
pub(super) const MAX_SINGLE_MESSAGE_POLLS: u8 = 64;

/// Droppable messages that were handed over without a queue. They are counted together: it takes fewer instructions.
#[derive(Debug, Default)]
pub(super) struct DirectDroppable {
    /// Bytes of their datagrams, and those of the largest.
    bytes: u32,
    largest: u32,
    /// Number of points in time at which they were handed over.
    sends: u32,
    /// When the last one was handed over, if there is one.
    last_at: Option<Instant>,
}

impl DirectDroppable {
    #[inline]
    fn on_sent(&mut self, now: Instant, size: usize) {
        self.bytes += size as u32;
        self.largest = self.largest.max(size as u32);
        // Several in a row are often of one frame.
        if self.last_at != Some(now) {
            self.last_at = Some(now);
            self.sends += 1;
        }
    }
}

impl Sender {
    /// Whether a message of this length may be one for [`send_directly`](Self::send_directly): it is so large that no other of its
    /// size shares its payload, or the application sends one per frame.
    #[inline]
    pub fn may_send_directly(&self, length: usize) -> bool {
        length >= MIN_LARGE || self.single_message_polls >= MAX_SINGLE_MESSAGE_POLLS
    }

    /// Hands a message for which [`may_send_directly`](Self::may_send_directly) holds over to the connection without a queue, if
    /// that would send it at once anyway and nothing waits. Reliable messages wait in their queue while a droppable channel is in
    /// use. `may_wait`: whether there is memory for the message in the queue, if it is not handed over.
    #[inline(always)]
    pub fn send_directly(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        index: ChannelIndex,
        message: &[u8],
        allowance: usize,
        may_wait: impl FnOnce() -> bool,
    ) -> Option<MessageId> {
        let sent = self.hand_over(now, connection, index, message, allowance);
        // A message that is refused replaces nothing.
        if sent.is_none() && may_wait() {
            self.discard_unsent(now, connection, index, message.len());
        }
        sent
    }

    #[inline(always)]
    fn hand_over(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        index: ChannelIndex,
        message: &[u8],
        allowance: usize,
    ) -> Option<MessageId> {
        if self.waiting != 0 {
            return None;
        }
        let is_small = message.len() < MIN_LARGE;
        if is_small && connection.has_unsent() {
            // The second of a frame: they will be packed from now on.
            self.single_message_polls = 0;
            return None;
        }
        let mut budget = connection.direct_budget().left();
        if budget < MAX_DATAGRAM {
            budget = self.renew_direct_budget(now, connection)?;
        }
        let channel = self.channels.get_mut(usize::from(index.get()))?;
        let position = channel.next_direct(message.len())?;
        let is_reliable = channel.mode.is_reliable();
        if is_reliable && (self.traffic.is_active() || self.direct_droppable.last_at.is_some()) {
            return None;
        }
        if !is_reliable
            && (!self.is_droppable_direct || channel.newest_payload.is_some_and(|last| connection.is_unsent(last)))
        {
            return None;
        }
        if !connection.send_headed(now, message_header(index, position as u16), message, allowance, channel.max_age_us)
        {
            return None;
        }
        let size = message.len() + self.direct_overhead;
        // The budget of a game lasts for a few frames, however small its messages are.
        let charge = if is_small { MAX_DATAGRAM } else { size };
        connection.direct_budget().set_left(budget.saturating_sub(charge));
        let id = channel.on_sent_directly();
        if !is_reliable {
            self.direct_droppable.on_sent(now, size);
            if channel.mode == ChannelMode::Sequenced {
                let replaced = channel.newest_payload.replace(connection.last_number());
                self.supersede(now, connection, index, replaced);
            }
        }
        Some(id)
    }

    /// Determines what would be sent at once, and whether droppable messages are held back. Returns none if that is
    /// less than a datagram.
    #[inline(never)]
    fn renew_direct_budget(&mut self, now: Instant, connection: &mut Connection) -> Option<usize> {
        if connection.direct_budget().is_current() {
            return None;
        }
        self.count_direct_droppable();
        self.direct_overhead = MAX_DATAGRAM - connection.max_message() + MESSAGE_HEADER;
        self.is_droppable_direct = self.droppable_limit.stays_unlimited(now, connection);
        let budget = connection.send_budget(now);
        connection.direct_budget().renew(budget);
        (budget >= MAX_DATAGRAM).then_some(budget)
    }

    /// Counts the droppable messages that were handed over since the last time.
    pub(super) fn count_direct_droppable(&mut self) {
        if let DirectDroppable { bytes, largest, sends, last_at: Some(at) } = std::mem::take(&mut self.direct_droppable)
        {
            self.droppable_limit.on_offers(at, bytes as usize, sends);
            self.traffic.on_sent(at, largest as usize);
        }
    }

    /// A newer message of a sequenced channel was handed over. `replaced`: the payload of the last one, if it contained only that.
    #[inline(always)]
    fn supersede(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        index: ChannelIndex,
        replaced: Option<MessageNumber>,
    ) {
        if let Some(replaced) = replaced {
            connection.discard_at(replaced, now);
        }
        if !self.newest.is_empty() {
            self.newest.supersede(now, bit(index.get().into()), |number, at| connection.discard_at(number, at));
        }
    }

    /// If the last message of a sequenced channel was handed over and not sent yet, the next one replaces it, unless that is
    /// refused because of its length.
    #[cold]
    fn discard_unsent(&mut self, now: Instant, connection: &mut Connection, index: ChannelIndex, length: usize) {
        if let Some(channel) = self.channels.get_mut(usize::from(index.get()))
            && length <= channel.max_size
            && let Some(replaced) = channel.newest_payload.take_if(|last| connection.is_unsent(*last))
        {
            connection.discard_unsent(now, replaced);
            channel.on_direct_replaced();
        }
    }
}
