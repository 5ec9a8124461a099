//! The memory of unfinished messages, which all players share (W116).

use super::ChannelServer;
use crate::{
    DisconnectReason, PlayerId, ServerEvent,
    channels::{ChannelFault, player_session::PlayerSession},
};

impl ChannelServer {
    /// Counts the unfinished messages of a player. If those of all players take too much memory, the sessions end of those who
    /// have the most (W116).
    pub(super) fn count_memory(&mut self, player: PlayerId) {
        if !self.update_memory(player) {
            return;
        }
        while self.memory > self.max_memory {
            // Messages of players who have left come first.
            if let Some(oldest) = self.ended.pop_front() {
                self.drop_ended(oldest);
                continue;
            }
            let largest = self.sessions.iter().max_by_key(|(_, own)| own.memory).map(|(player, _)| player);
            let Some(largest) = largest else { break };
            self.abort(largest, ChannelFault::Memory);
            // A session that ended without the application: its connection is gone, and the end is about to be reported.
            if self.sessions.get(largest).is_some_and(|own| own.memory > 0)
                && self.remove_session(largest).is_some_and(|own| own.new.is_none())
            {
                let reason = DisconnectReason::Channels(ChannelFault::Memory);
                self.events.push_back(ServerEvent::Disconnected(largest, reason));
            }
        }
        self.endpoint.set_reserved(self.memory + self.queues.total());
    }

    /// Returns whether anything has changed.
    pub(super) fn update_memory(&mut self, player: PlayerId) -> bool {
        let Some(own) = self.sessions.get_mut(player) else { return false };
        let before = std::mem::replace(&mut own.memory, own.layer.memory());
        self.memory = self.memory - before + own.memory;
        own.memory != before
    }

    pub(super) fn remove_session(&mut self, player: PlayerId) -> Option<PlayerSession> {
        let own = self.sessions.remove(player)?;
        self.memory -= own.memory;
        self.queues.on_removed(&own);
        self.endpoint.set_reserved(self.memory + self.queues.total());
        Some(own)
    }

    /// Drops the messages of a player who has left, and reports the end of its session.
    pub(super) fn drop_ended(&mut self, player: PlayerId) {
        if let Some(reason) = self.remove_session(player).and_then(|own| own.end) {
            self.events.push_back(ServerEvent::Disconnected(player, reason));
        }
    }
}
