//! The memory of messages that wait to be sent, which all players share (W124).

use super::ChannelServer;
use crate::{
    PlayerId, ServerEvent,
    channels::{message_store::OutgoingMessage, player_session::PlayerSession, send_channel::ENTRY},
};

/// Share of [`EndpointConfig::memory`](crate::EndpointConfig::memory) that the queues of any players may take, and that is divided
/// among all players. Together they leave most of it to messages that are sent and received.
const COMMON_SHARE: usize = 8;
const OWN_SHARE: usize = 8;

/// The memory of the queues of all players.
///
/// Players who do not read must not keep others from being sent something, so each of them has a part of its own.
#[derive(Debug)]
pub(super) struct QueueMemory {
    total: usize,
    max_common: usize,
    max_own: usize,
    /// Players whose messages were refused, and the bytes of those.
    blocked: Vec<(PlayerId, usize)>,
}

impl QueueMemory {
    pub fn new(memory: usize, max_players: usize) -> Self {
        Self {
            total: 0,
            max_common: memory / COMMON_SHARE,
            max_own: memory / OWN_SHARE / max_players.max(1),
            blocked: Vec::new(),
        }
    }

    /// Bytes of messages that wait to be sent to any player.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether there is memory for a message of this many bytes to a player with `queued` bytes. A single message that is
    /// larger than all of it fits as well.
    #[inline]
    pub fn has_room(&self, queued: usize, bytes: usize) -> bool {
        let is_common = self.total <= self.max_common && (queued == 0 || self.total + bytes <= self.max_common);
        is_common || queued + bytes <= self.max_own
    }

    /// Takes memory for a message to a player, if there is enough.
    #[inline]
    pub fn take(&mut self, player: PlayerId, own: &mut PlayerSession, message: OutgoingMessage<'_>) -> bool {
        let bytes = ENTRY + message.memory();
        if !self.has_room(own.queued, bytes) && !self.has_room_after_count(player, own, bytes) {
            return false;
        }
        own.queued += bytes;
        self.total += bytes;
        true
    }

    /// Whether a message has room, after what has been sent or replaced is counted.
    #[cold]
    fn has_room_after_count(&mut self, player: PlayerId, own: &mut PlayerSession, bytes: usize) -> bool {
        self.count(own);
        let has_room = self.has_room(own.queued, bytes);
        if !has_room && !std::mem::replace(&mut own.is_memory_blocked, true) {
            self.blocked.push((player, bytes));
        }
        has_room
    }

    /// Counts what waits to be sent to a player.
    #[inline]
    pub fn count(&mut self, own: &mut PlayerSession) {
        if own.queued > 0 {
            let before = std::mem::replace(&mut own.queued, own.layer.queue_memory());
            self.total = self.total - before + own.queued;
        }
    }

    /// A player's session is removed.
    pub fn on_removed(&mut self, own: &PlayerSession) {
        self.total -= own.queued;
    }
}

impl ChannelServer {
    /// Reports the players whose messages were refused for lack of memory, once there is memory again.
    pub(super) fn report_queue_memory(&mut self) {
        let Self { queues, sessions, events, .. } = self;
        if queues.blocked.is_empty() {
            return;
        }
        let blocked = std::mem::take(&mut queues.blocked);
        let is_still_blocked = |(player, bytes): &(PlayerId, usize)| {
            let Some(own) = sessions.get_mut(*player) else { return false };
            own.is_memory_blocked = !queues.has_room(own.queued, *bytes);
            if !own.is_memory_blocked {
                events.push_back(ServerEvent::Writable(*player));
            }
            own.is_memory_blocked
        };
        queues.blocked = blocked.into_iter().filter(is_still_blocked).collect();
    }
}
