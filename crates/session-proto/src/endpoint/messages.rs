//! Messages between the application and the sessions of its players.

use super::{Endpoint, PlayerSlot, message_memory::MessageMemory};
use crate::{
    ChannelIndex, MessageId, PlayerId, SendError, ServerEvent,
    channels::{Next, OutgoingMessage, QUEUE_ENTRY},
};
use rallypoint_wire::session::SlotIndex;
use std::{collections::VecDeque, sync::Arc, time::Instant};

impl Endpoint {
    /// Sends a message to a player on a channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) if the session has no others. The ID is for
    /// receipts, which only channels can have.
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or there is no room: in the window, in the queue of the
    /// channel, or in those of all players (W124). Then [`ServerEvent::Writable`] follows.
    pub fn send(
        &mut self,
        now: Instant,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, SendError> {
        let Self { slots, memory, ready, .. } = self;
        let allowance = memory.allowance();
        let slot = slots.of_mut(player).ok_or(SendError::UnknownPlayer)?;
        let PlayerSlot { session, connection, queued, .. } = slot;
        let may_wait = || memory.has_queue_room(*queued, message.len() + QUEUE_ENTRY);
        match session.send_directly(now, connection, channel, message, allowance, may_wait) {
            Some(sent) => {
                slot.update(player.index, ready, memory);
                sent
            }
            None if session.join(connection, channel, message) => Ok(MessageId::without_receipt(channel)),
            None => queue(now, slot, channel, OutgoingMessage::Borrowed(message), ready, memory),
        }
    }

    /// Sends a message to several players; its bytes are kept once. `report` is called for each player: with the ID of its
    /// message, which [`ServerEvent::Receipt`] names, or with the reason why it cannot be sent.
    pub fn broadcast(
        &mut self,
        now: Instant,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        mut report: impl FnMut(PlayerId, Result<MessageId, SendError>),
    ) {
        let message = message.into();
        let Self { slots, memory, ready, .. } = self;
        for player in players {
            let sent = match slots.of_mut(player) {
                Some(slot) => queue(now, slot, channel, OutgoingMessage::Shared(&message), ready, memory),
                None => Err(SendError::UnknownPlayer),
            };
            report(player, sent);
        }
    }

    /// The next message of a player, and its channel. Its bytes stay valid until the next call. After the end of a session, the
    /// messages that are left can still be read; the end is reported after the last one.
    pub fn recv(&mut self, player: PlayerId) -> Option<(ChannelIndex, &[u8])> {
        let Self { slots, ready, memory, events, has_replies, .. } = self;
        let Some(slot) = slots.of_mut(player) else {
            let ended = |player, reason| events.push_back(ServerEvent::Disconnected(player, reason));
            return memory.departed.recv(player, ended);
        };
        recv(slot, player.index, ready, memory, has_replies)
    }

    /// The next event; if it is a message, that is copied into `buffer`, and was received on this channel. Players with several
    /// messages take turns. For a caller that does not call [`poll_event`](rallypoint_machine::Machine::poll_event).
    pub fn next_event(&mut self, buffer: &mut Vec<u8>) -> Option<(ServerEvent, ChannelIndex)> {
        loop {
            let event = self.events.pop_front()?;
            let ServerEvent::Message(player) = event else {
                self.on_polled(&event);
                return Some((event, ChannelIndex::default()));
            };
            let Self { slots, ready, memory, events, has_replies, .. } = self;
            let (received, is_left) = match slots.of_mut(player) {
                Some(slot) => {
                    let received = recv(slot, player.index, ready, memory, has_replies);
                    let received = received.map(|received| copy(received, buffer));
                    slot.has_message_event = received.is_some();
                    (received, received.is_some())
                }
                None => {
                    let ended = |player, reason| events.push_back(ServerEvent::Disconnected(player, reason));
                    let received = memory.departed.recv(player, ended).map(|received| copy(received, buffer));
                    (received, memory.departed.is_readable(player))
                }
            };
            if is_left {
                events.push_back(ServerEvent::Message(player));
            }
            if let Some(channel) = received {
                return Some((ServerEvent::Message(player), channel));
            }
        }
    }

    /// The application has polled an event.
    #[inline]
    pub(super) fn on_polled(&mut self, event: &ServerEvent) {
        match *event {
            ServerEvent::Message(player) => {
                if let Some(slot) = self.slots.of_mut(player) {
                    slot.has_message_event = false;
                }
            }
            ServerEvent::Writable(player) => {
                if let Some(slot) = self.slots.of_mut(player) {
                    slot.has_writable_event = false;
                }
            }
            _ => {}
        }
    }

    /// Whether there is room for a message of this length to a player; also if there is no session to wait for.
    #[must_use]
    pub fn has_room(&self, player: PlayerId, channel: ChannelIndex, length: usize) -> bool {
        self.slots.of(player).is_none_or(|slot| {
            let bytes = slot.session.queued_size(OutgoingMessage::Borrowed(&[])) + length;
            slot.session.has_room(&slot.connection, channel, length)
                && (slot.session.is_plain() || self.memory.has_queue_room(slot.queued, bytes))
        })
    }
}

/// Sends a message that may have to wait in a queue.
#[inline(never)]
fn queue(
    now: Instant,
    slot: &mut PlayerSlot,
    channel: ChannelIndex,
    message: OutgoingMessage<'_>,
    ready: &mut VecDeque<SlotIndex>,
    memory: &mut MessageMemory,
) -> Result<MessageId, SendError> {
    let allowance = memory.allowance();
    if !memory.take(slot, message) {
        return Err(SendError::WouldBlock);
    }
    let sent = slot.session.queue(now, &mut slot.connection, channel, message, allowance);
    if sent.is_err() {
        slot.count_queue(memory);
    }
    let index = slot.connection.index();
    slot.update(index, ready, memory);
    sent
}

/// The next message of a player who has a session.
#[inline(always)]
fn recv<'a>(
    slot: &'a mut PlayerSlot,
    index: SlotIndex,
    ready: &mut VecDeque<SlotIndex>,
    memory: &mut MessageMemory,
    has_replies: &mut bool,
) -> Option<(ChannelIndex, &'a [u8])> {
    slot.prepare_read(index, ready, memory);
    match slot.session.next(&mut slot.connection) {
        Next::Nothing => None,
        Next::Message(channel) => Some((channel, slot.connection.last_received_from(slot.session.message_start()))),
        next => finish_recv(slot, next, ready, memory, has_replies),
    }
}

/// [`recv`] in the general case.
#[inline(never)]
fn finish_recv<'a>(
    slot: &'a mut PlayerSlot,
    next: Next,
    ready: &mut VecDeque<SlotIndex>,
    memory: &mut MessageMemory,
    has_replies: &mut bool,
) -> Option<(ChannelIndex, &'a [u8])> {
    let received = slot.session.finish_read(next, &mut slot.connection);
    *has_replies |= slot.session.has_replies();
    let received = received.unwrap_or_else(|violation| {
        slot.session.fail(&mut slot.connection, violation);
        None
    });
    slot.count_unfinished(memory);
    // The peer's reports may allow more to be sent, and a report of this side may be due.
    if slot.session.has_work() {
        slot.connection.wake_source();
        slot.make_ready(slot.connection.index(), ready);
    }
    received.map(|channel| (channel, slot.session.message(&slot.connection)))
}

/// Copies a received message into `buffer`. Returns its channel.
#[inline]
fn copy((channel, bytes): (ChannelIndex, &[u8]), buffer: &mut Vec<u8>) -> ChannelIndex {
    buffer.clear();
    buffer.extend_from_slice(bytes);
    channel
}
