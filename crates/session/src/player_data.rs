//! Values that a game attaches to its players.

use rallypoint_session_proto::{PlayerId, SlotIndex};
use std::{any::Any, collections::HashMap};

/// Number of values beyond which those of players without a session are dropped: the application does not poll their ends.
const MAX_VALUES: usize = 2 * SlotIndex::COUNT;

/// A value of any type for each player. It is dropped after the end of the player's session was handled.
#[derive(Default)]
pub(crate) struct PlayerData {
    values: HashMap<PlayerId, Box<dyn Any + Send>>,
    /// The player whose end is being handled.
    ended: Option<PlayerId>,
}

impl PlayerData {
    /// Attaches a value to a player, in place of the previous one. `is_live`: whether a player has a session.
    pub fn set(&mut self, player: PlayerId, value: Box<dyn Any + Send>, is_live: impl Fn(PlayerId) -> bool) {
        if self.values.len() >= MAX_VALUES {
            self.values.retain(|player, _| is_live(*player));
        }
        self.values.insert(player, value);
    }

    pub fn get<T: Any>(&self, player: PlayerId) -> Option<&T> {
        self.values.get(&player)?.downcast_ref()
    }

    pub fn get_mut<T: Any>(&mut self, player: PlayerId) -> Option<&mut T> {
        self.values.get_mut(&player)?.downcast_mut()
    }

    /// The end of a player's session is raised: its value is dropped when the next event is.
    pub fn on_end(&mut self, player: PlayerId) {
        self.on_next();
        self.ended = Some(player);
    }

    /// The application asks for the next event: it has handled the last one.
    #[inline]
    pub fn on_next(&mut self) {
        if let Some(ended) = self.ended.take() {
            self.values.remove(&ended);
        }
    }
}
