//! Unread messages of players whose session has ended (W51).
//!
//! Every message that was acknowledged is delivered: a client that closes is told so. The end of the session is reported when
//! its last message is read. Slot and address are free at once.

use crate::{DisconnectReason, PlayerId, connection::ReceiveBuffer};
use rallypoint_wire::session::SlotIndex;
use std::collections::VecDeque;

/// The ends of sessions whose messages are not read yet, the oldest first.
pub(super) struct DepartedPlayers {
    players: VecDeque<Departed>,
    /// The buffer that the last message was read from, which has to stay valid.
    last_read: Option<ReceiveBuffer>,
    /// Bytes of unread messages.
    memory: usize,
    max_memory: usize,
}

struct Departed {
    player: PlayerId,
    reason: DisconnectReason,
    unread: ReceiveBuffer,
}

impl DepartedPlayers {
    /// `max_memory`: bytes of messages of all players together. Beyond it the oldest messages are dropped: the application
    /// evidently does not read them.
    pub fn new(max_memory: usize) -> Self {
        Self { players: VecDeque::new(), last_read: None, memory: 0, max_memory }
    }

    /// Bytes of unread messages.
    pub fn memory(&self) -> usize {
        self.memory
    }

    pub fn is_readable(&self, player: PlayerId) -> bool {
        self.players.iter().any(|departed| departed.player == player)
    }

    /// Keeps the messages of a player. `ended` is called for players whose messages are dropped to make room.
    pub fn insert(
        &mut self,
        player: PlayerId,
        reason: DisconnectReason,
        unread: ReceiveBuffer,
        mut ended: impl FnMut(PlayerId, DisconnectReason),
    ) {
        self.memory += unread.memory();
        self.players.push_back(Departed { player, reason, unread });
        while (self.memory > self.max_memory || self.players.len() > SlotIndex::COUNT)
            && let Some(oldest) = self.players.pop_front()
        {
            self.memory -= oldest.unread.memory();
            ended(oldest.player, oldest.reason);
        }
    }

    /// The next message of a player. `ended` is called if it is the last one.
    pub fn recv(&mut self, player: PlayerId, ended: impl FnOnce(PlayerId, DisconnectReason)) -> Option<&[u8]> {
        let position = self.players.iter().position(|departed| departed.player == player)?;
        let departed = self.players.get_mut(position)?;
        self.memory -= departed.unread.memory();
        if departed.unread.readable() > 1 {
            departed.unread.release_read();
            // The message that is about to be read still counts.
            self.memory += departed.unread.memory();
            return self.players.get_mut(position)?.unread.read();
        }
        let departed = self.players.remove(position)?;
        ended(departed.player, departed.reason);
        self.last_read.insert(departed.unread).read()
    }

    /// The message that [`recv`](Self::recv) returned last, for the same player.
    pub fn last_received(&self, player: PlayerId) -> &[u8] {
        let departed = self.players.iter().find(|departed| departed.player == player);
        let unread = departed.map(|departed| &departed.unread).or(self.last_read.as_ref());
        unread.map_or(&[], ReceiveBuffer::last_read)
    }
}
