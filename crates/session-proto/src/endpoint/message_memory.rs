//! The memory for messages of all players, which is limited (S22).

use super::{Endpoint, departed::DepartedPlayers, slot_table::PlayerSlot};
use crate::{ChannelFault, PlayerId, channels::OutgoingMessage};
use std::time::Instant;

/// Share of the memory that unread messages of players who have left may take: a quarter.
const DEPARTED_SHARE: usize = 4;

/// Share of the memory that unfinished messages may take: a half (W116).
const UNFINISHED_SHARE: usize = 2;

/// Share of the memory that the queues of any players may take, and that is divided among all players (W124). Together they leave
/// most of it to messages that are sent and received.
const COMMON_QUEUE_SHARE: usize = 8;
const OWN_QUEUE_SHARE: usize = 8;

/// Bytes of messages that an endpoint keeps.
///
/// Players who do not read must not keep others from being sent something, so each of them has a part of the queues of its own.
pub(super) struct MessageMemory {
    /// Bytes of all connections.
    pub connections: usize,
    /// Bytes of unfinished messages of players who have a session, and of messages that wait for earlier ones.
    pub unfinished: usize,
    /// Bytes of messages that wait to be sent.
    pub queued: usize,
    pub departed: DepartedPlayers,
    max: usize,
    max_own_queue: usize,
    /// Players whose messages were refused, and the bytes of those.
    blocked: Vec<(PlayerId, usize)>,
}

impl MessageMemory {
    /// `max`: bytes of everything together.
    pub fn new(max: usize, max_players: usize) -> Self {
        Self {
            connections: 0,
            unfinished: 0,
            queued: 0,
            departed: DepartedPlayers::new(max / DEPARTED_SHARE),
            max,
            max_own_queue: max / OWN_QUEUE_SHARE / max_players.max(1),
            blocked: Vec::new(),
        }
    }

    #[inline]
    pub fn used(&self) -> usize {
        self.connections + self.unfinished + self.queued + self.departed.memory()
    }

    /// Number of bytes by which the memory may grow.
    #[inline]
    pub fn allowance(&self) -> usize {
        self.max.saturating_sub(self.used())
    }

    /// Whether the connections use so much that acked messages have to be freed early.
    #[inline]
    pub fn is_scarce(&self) -> bool {
        self.connections > self.max / 2
    }

    /// Whether unfinished messages take too much.
    #[inline]
    fn has_too_many_unfinished(&self) -> bool {
        self.unfinished + self.departed.unfinished() > self.max / UNFINISHED_SHARE
    }

    /// A player's slot is emptied.
    pub fn on_removed(&mut self, slot: &PlayerSlot) {
        self.connections -= slot.memory;
        self.unfinished -= slot.unfinished;
        self.queued -= slot.queued;
    }

    /// Whether the queue of a player with `queued` bytes has room for this many more. A single message that is larger than all of
    /// it fits as well.
    #[inline]
    pub fn has_queue_room(&self, queued: usize, bytes: usize) -> bool {
        let max_common = self.max / COMMON_QUEUE_SHARE;
        let is_common = self.queued <= max_common && (queued == 0 || self.queued + bytes <= max_common);
        is_common || queued + bytes <= self.max_own_queue
    }

    /// Takes memory for a message to a player, if there is enough.
    #[inline]
    pub fn take(&mut self, slot: &mut PlayerSlot, message: OutgoingMessage<'_>) -> bool {
        let bytes = slot.session.queued_size(message);
        if !self.has_queue_room(slot.queued, bytes) && !self.has_queue_room_after_count(slot, bytes) {
            return false;
        }
        slot.queued += bytes;
        self.queued += bytes;
        true
    }

    /// Whether a message has room, after what has been sent or replaced is counted.
    #[cold]
    fn has_queue_room_after_count(&mut self, slot: &mut PlayerSlot, bytes: usize) -> bool {
        slot.count_queue(self);
        let has_room = self.has_queue_room(slot.queued, bytes);
        if !has_room && !std::mem::replace(&mut slot.is_memory_blocked, true) {
            self.blocked.push((slot.player(), bytes));
        }
        has_room
    }
}

impl Endpoint {
    /// If the unfinished messages of all players take too much memory, the sessions end of those who have the most (W116).
    #[inline]
    pub(super) fn limit_unfinished(&mut self, now: Instant) {
        while self.memory.has_too_many_unfinished() {
            // Messages of players who have left come first.
            if self.memory.departed.unfinished() > 0
                && let Some((player, reason)) = self.memory.departed.drop_oldest()
            {
                self.events.push_back(crate::ServerEvent::Disconnected(player, reason));
                continue;
            }
            let Some(largest) = self.slots.iter_mut().max_by_key(|slot| slot.unfinished) else { return };
            largest.session.abort(now, &mut largest.connection, ChannelFault::Memory);
            let index = largest.connection.index();
            largest.count_unfinished(&mut self.memory);
            largest.update(index, &mut self.ready, &mut self.memory);
        }
    }

    /// Reports the players whose messages were refused for lack of memory, once there is memory again.
    #[inline]
    pub(super) fn report_queue_memory(&mut self) {
        if self.memory.blocked.is_empty() {
            return;
        }
        let Self { memory, slots, events, .. } = self;
        let blocked = std::mem::take(&mut memory.blocked);
        let is_still_blocked = |(player, bytes): &(PlayerId, usize)| {
            let Some(slot) = slots.of_mut(*player) else { return false };
            slot.is_memory_blocked = !memory.has_queue_room(slot.queued, *bytes);
            if !slot.is_memory_blocked {
                slot.raise_writable(events);
            }
            slot.is_memory_blocked
        };
        let blocked = blocked.into_iter().filter(is_still_blocked).collect();
        memory.blocked = blocked;
    }
}
