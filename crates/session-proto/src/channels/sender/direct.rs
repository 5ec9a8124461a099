//! Messages that are handed over to the connection without a queue.

use super::{ChannelIndex, MessageId, Sender};
use crate::Connection;
use rallypoint_wire::session::{MAX_TO_CLIENT, channels::message_header};
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
    /// would send it at once anyway: nothing waits, and it is not one that the next one could replace. Reliable messages wait in
    /// their queue while a channel is in use whose messages must not be late.
    #[inline(always)]
    pub fn send_directly(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: &[u8],
        allowance: usize,
    ) -> Option<MessageId> {
        let Self { channels, waiting, bulk, direct_budget, .. } = self;
        let own = channels.get_mut(usize::from(channel.get()))?;
        let position = own.next_direct(message.len())?;
        if !direct_budget.admits() && !direct_budget.determine(now, connection, *waiting == 0) {
            return None;
        }
        if !own.mode.is_reliable() {
            return self.send_expiring_directly(now, connection, channel, message, allowance);
        }
        let header = message_header(channel, position as u16);
        if bulk.is_active() || !connection.send_headed(now, header, message, allowance) {
            return None;
        }
        direct_budget.on_sent(message.len());
        Some(own.on_sent_directly())
    }

    /// [`send_directly`](Self::send_directly) on an expiring channel.
    #[inline(never)]
    fn send_expiring_directly(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: &[u8],
        allowance: usize,
    ) -> Option<MessageId> {
        let Self { channels, bulk, urgent, droppable, direct_budget, .. } = self;
        let own = channels.get_mut(usize::from(channel.get()))?;
        let position = own.next_direct(message.len())?;
        let header = message_header(channel, position as u16);
        let number = connection.next_number();
        if !urgent.is_unlimited() || !connection.send_headed(now, header, message, allowance) {
            return None;
        }
        let sent = direct_budget.on_sent(message.len());
        droppable.push(number, 0, own.expires_at(now));
        urgent.on_offer(now, sent);
        urgent.on_sent(now, sent);
        bulk.on_urgent(now, sent);
        Some(own.on_sent_directly())
    }
}
