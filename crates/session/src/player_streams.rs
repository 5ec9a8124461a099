//! The streams of a server's players (S33).

use crate::frame_stream::FrameStream;
use rallypoint_session_proto::{DisconnectReason, PlayerId, SlotIndex};
use std::collections::VecDeque;

/// The streams of all players, also of those who have left and whose last messages are not read yet.
#[derive(Default)]
pub(crate) struct PlayerStreams {
    /// The streams of current players, by slot.
    current: Vec<Option<Box<PlayerStream>>>,
    /// The streams of players who have left, the oldest first.
    departed: VecDeque<Box<PlayerStream>>,
}

struct PlayerStream {
    player: PlayerId,
    stream: FrameStream,
    /// Why the session ended. It is reported when all messages are read.
    end: Option<DisconnectReason>,
}

impl PlayerStreams {
    pub fn contains(&self, player: PlayerId) -> bool {
        self.current_of(player).is_some() || self.departed.iter().any(|own| own.player == player)
    }

    #[inline]
    pub fn get_mut(&mut self, player: PlayerId) -> Option<&mut FrameStream> {
        let own = self.current.get_mut(usize::from(player.index()))?.as_mut()?;
        (own.player == player).then_some(&mut own.stream)
    }

    /// The stream of a player. `is_live`: whether the player has a session, and therefore its slot.
    pub fn get_or_insert(&mut self, player: PlayerId, is_live: bool, max_message: usize) -> &mut FrameStream {
        let new = || Box::new(PlayerStream { player, stream: FrameStream::new(max_message), end: None });
        let slot = usize::from(player.index());
        if self.current.len() <= slot {
            self.current.resize_with(slot + 1, || None);
        }
        if is_live || self.current_of(player).is_some() {
            // In range: the vector was just made long enough.
            let slot = &mut self.current[slot];
            if let Some(other) = slot.take_if(|own| own.player != player) {
                self.departed.push_back(other);
            }
            return &mut slot.get_or_insert_with(new).stream;
        }
        let position = self.departed.iter().position(|own| own.player == player);
        let position = position.unwrap_or_else(|| {
            self.departed.push_back(new());
            self.departed.len() - 1
        });
        // In range: it was found or just added.
        &mut self.departed[position].stream
    }

    /// The session of a player has ended. Returns the oldest player whose messages are dropped because they are not read.
    pub fn end(&mut self, player: PlayerId, reason: DisconnectReason) -> Option<(PlayerId, DisconnectReason)> {
        let mut own = self.take(player)?;
        own.end = Some(reason);
        self.departed.push_back(own);
        let oldest = (self.departed.len() > SlotIndex::COUNT).then(|| self.departed.pop_front())??;
        oldest.end.map(|reason| (oldest.player, reason))
    }

    /// Takes the reason for the end of a player's session, if it has ended, and removes the stream.
    pub fn take_end(&mut self, player: PlayerId) -> Option<DisconnectReason> {
        let position = self.departed.iter().position(|own| own.player == player && own.end.is_some())?;
        self.departed.remove(position)?.end
    }

    pub fn remove(&mut self, player: PlayerId) {
        self.take(player);
    }

    fn current_of(&self, player: PlayerId) -> Option<&PlayerStream> {
        self.current.get(usize::from(player.index()))?.as_deref().filter(|own| own.player == player)
    }

    fn take(&mut self, player: PlayerId) -> Option<Box<PlayerStream>> {
        let current = self.current.get_mut(usize::from(player.index()));
        if let Some(own) = current.and_then(|slot| slot.take_if(|own| own.player == player)) {
            return Some(own);
        }
        let position = self.departed.iter().position(|own| own.player == player)?;
        self.departed.remove(position)
    }
}
