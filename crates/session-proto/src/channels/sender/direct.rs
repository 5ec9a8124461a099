//! Messages that are handed over to the connection without a queue.

use super::{ChannelIndex, MessageId, Sender, bit};
use crate::Connection;
use rallypoint_wire::session::{
    MAX_DATAGRAM, MAX_TO_CLIENT,
    channels::{MESSAGE_HEADER, message_header},
};
use std::time::Instant;

/// Minimum length of a message that is handed over without a queue: two of them do not fit into a payload.
const MIN_DIRECT: usize = MAX_TO_CLIENT / 2;

impl Sender {
    /// Whether a message of this length may be one for [`send_directly`](Self::send_directly): it is so large that no other of its
    /// size shares its payload.
    #[inline]
    pub fn may_send_directly(length: usize) -> bool {
        length >= MIN_DIRECT
    }

    /// Hands a message for which [`may_send_directly`](Self::may_send_directly) holds over to the connection without a queue, if that
    /// would send it at once anyway and nothing waits. Reliable messages wait in their queue while a channel is in use whose
    /// messages must not be late.
    #[inline(always)]
    pub fn send_directly(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: &[u8],
        allowance: usize,
    ) -> Option<MessageId> {
        if self.waiting != 0 {
            return None;
        }
        let budget = match connection.direct_budget() {
            Some(budget) => budget,
            None => self.determine_direct_budget(now, connection),
        };
        let own = self.channels.get_mut(usize::from(channel.get()))?;
        let position = own.next_direct(message.len()).filter(|_| budget >= MAX_DATAGRAM)?;
        let is_reliable = own.mode.is_reliable();
        if is_reliable && self.traffic.is_active() {
            return None;
        }
        if !is_reliable && (!self.is_urgent_direct || own.newest_payload.is_some_and(|last| connection.is_unsent(last)))
        {
            self.discard_unsent(now, connection, channel);
            return None;
        }
        if !connection.send_headed(now, message_header(channel, position as u16), message, allowance) {
            return None;
        }
        let size = message.len() + self.direct_overhead;
        connection.charge_direct_budget(size);
        let id = own.on_sent_directly();
        if !is_reliable {
            self.on_droppable_sent(now, connection, channel, size);
        }
        Some(id)
    }

    /// Determines what would be sent at once, and whether messages that must not be late are held back.
    #[inline(never)]
    fn determine_direct_budget(&mut self, now: Instant, connection: &mut Connection) -> usize {
        self.direct_overhead = MAX_DATAGRAM - connection.max_message() + MESSAGE_HEADER;
        self.is_urgent_direct = self.urgent.stays_unlimited(now, connection);
        connection.determine_direct_budget(now)
    }

    /// A message of a sequenced or expiring channel was handed over, in a datagram of this size.
    #[inline(never)]
    fn on_droppable_sent(&mut self, now: Instant, connection: &mut Connection, channel: ChannelIndex, size: usize) {
        let Some(own) = self.channels.get_mut(usize::from(channel.get())) else { return };
        self.urgent.on_offer(now, size);
        self.traffic.on_sent(now, size);
        if let Some(expires_at) = own.expires_at(now) {
            connection.discard_last_at(expires_at);
            return;
        }
        if let Some(replaced) = own.newest_payload.replace(connection.last_number()) {
            connection.discard_at(replaced, now);
        }
        if !self.newest.is_empty() {
            self.newest.supersede(now, bit(channel.get().into()), |number, at| connection.discard_at(number, at));
        }
    }

    /// If the last message of a sequenced channel was handed over and not sent yet, the next one replaces it.
    #[cold]
    fn discard_unsent(&mut self, now: Instant, connection: &mut Connection, channel: ChannelIndex) {
        if let Some(own) = self.channels.get_mut(usize::from(channel.get()))
            && let Some(replaced) = own.newest_payload.take_if(|last| connection.is_unsent(*last))
        {
            connection.discard_unsent(now, replaced);
            own.on_direct_replaced();
        }
    }
}
