//! Unread messages of players whose session has ended (W51).
//!
//! Every message that was acknowledged is delivered: a client that closes is told so. The end of the session is reported when
//! its last message is read. Slot and address are free at once.

use crate::{ChannelIndex, DisconnectReason, PlayerId, session::Unread};
use rallypoint_wire::session::SlotIndex;
use std::collections::VecDeque;

/// The ends of sessions whose messages are not read yet, the oldest first.
pub(super) struct DepartedPlayers {
    players: VecDeque<Departed>,
    /// The session that the last message was read from, which has to stay valid.
    last_read: Option<Unread>,
    /// Bytes of unread messages, and the part of them that is not in payloads: of unfinished messages.
    memory: usize,
    unfinished: usize,
    max_payloads: usize,
}

struct Departed {
    player: PlayerId,
    reason: DisconnectReason,
    unread: Unread,
}

impl DepartedPlayers {
    /// `max_payloads`: bytes of payloads of all players together. Beyond it the oldest messages are dropped: the application
    /// evidently does not read them.
    pub fn new(max_payloads: usize) -> Self {
        Self { players: VecDeque::new(), last_read: None, memory: 0, unfinished: 0, max_payloads }
    }

    /// Bytes of unread messages.
    #[inline]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes of unfinished messages.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    pub fn is_readable(&self, player: PlayerId) -> bool {
        self.position(player).is_some()
    }

    /// Keeps the messages of a player. `ended` is called for players whose messages are dropped to make room.
    pub fn insert(
        &mut self,
        player: PlayerId,
        reason: DisconnectReason,
        unread: Unread,
        mut ended: impl FnMut(PlayerId, DisconnectReason),
    ) {
        self.memory += unread.memory();
        self.unfinished += unread.unfinished_memory();
        self.players.push_back(Departed { player, reason, unread });
        while (self.memory - self.unfinished > self.max_payloads || self.players.len() > SlotIndex::COUNT)
            && let Some((player, reason)) = self.drop_oldest()
        {
            ended(player, reason);
        }
    }

    /// Drops the messages of the player who left first.
    pub fn drop_oldest(&mut self) -> Option<(PlayerId, DisconnectReason)> {
        let oldest = self.players.pop_front()?;
        self.memory -= oldest.unread.memory();
        self.unfinished -= oldest.unread.unfinished_memory();
        Some((oldest.player, oldest.reason))
    }

    /// The next message of a player. `ended` is called if it is the last one, or there is none.
    pub fn recv(
        &mut self,
        player: PlayerId,
        ended: impl FnOnce(PlayerId, DisconnectReason),
    ) -> Option<(ChannelIndex, &[u8])> {
        let position = self.position(player)?;
        let departed = self.players.get_mut(position)?;
        self.memory -= departed.unread.memory();
        self.unfinished -= departed.unread.unfinished_memory();
        let channel = departed.unread.recv();
        if channel.is_none() || !departed.unread.is_readable() {
            let departed = self.players.remove(position)?;
            ended(player, departed.reason);
            return Some((channel?, self.last_read.insert(departed.unread).message()));
        }
        // The message that is about to be read still counts.
        self.memory += departed.unread.memory();
        self.unfinished += departed.unread.unfinished_memory();
        Some((channel?, self.players.get(position)?.unread.message()))
    }

    fn position(&self, player: PlayerId) -> Option<usize> {
        self.players.iter().position(|departed| departed.player == player)
    }
}
