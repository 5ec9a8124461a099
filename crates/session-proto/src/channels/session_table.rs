//! The sessions of all players, by slot.

use super::player_session::PlayerSession;
use crate::{PlayerId, SlotIndex};

/// The sessions of all players. A slot has several for a moment: one that has ended and whose messages are still being read, and
/// the next one.
#[derive(Default)]
pub(super) struct SessionTable {
    slots: Vec<Vec<(PlayerId, PlayerSession)>>,
}

impl SessionTable {
    pub fn get(&self, player: PlayerId) -> Option<&PlayerSession> {
        let slot = self.slots.get(usize::from(player.index))?;
        slot.iter().find(|(known, _)| *known == player).map(|(_, session)| session)
    }

    #[inline]
    pub fn get_mut(&mut self, player: PlayerId) -> Option<&mut PlayerSession> {
        let (first, others) = self.slots.get_mut(usize::from(player.index))?.split_first_mut()?;
        if first.0 == player { Some(&mut first.1) } else { find_mut(others, player) }
    }

    pub fn insert(&mut self, player: PlayerId, session: PlayerSession) {
        self.remove(player);
        if self.slots.is_empty() {
            self.slots.resize_with(SlotIndex::COUNT, Vec::new);
        }
        if let Some(slot) = self.slots.get_mut(usize::from(player.index)) {
            slot.push((player, session));
        }
    }

    pub fn remove(&mut self, player: PlayerId) -> Option<PlayerSession> {
        let slot = self.slots.get_mut(usize::from(player.index))?;
        let position = slot.iter().position(|(known, _)| *known == player)?;
        Some(slot.swap_remove(position).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (PlayerId, &PlayerSession)> {
        self.slots.iter().flatten().map(|(player, session)| (*player, session))
    }
}

fn find_mut(slot: &mut [(PlayerId, PlayerSession)], player: PlayerId) -> Option<&mut PlayerSession> {
    slot.iter_mut().find(|(known, _)| *known == player).map(|(_, session)| session)
}
