//! Numbers for players.

use rallypoint_session::{PlayerId, SlotIndex};

/// The players of a server, and the numbers that stand for them in C.
///
/// ```text
/// number: | serial (24 bits, never 0) | slot (8) |
/// ```
///
/// A slot has several players for a moment: one who has left and whose messages are still being read, and the next one.
#[derive(Debug)]
pub(crate) struct PlayerTable {
    slots: Vec<Vec<(PlayerId, u32)>>,
    last_serial: u32,
}

const SERIAL_BITS: u32 = 24;

impl PlayerTable {
    pub(crate) fn new() -> Self {
        Self { slots: vec![Vec::new(); SlotIndex::COUNT], last_serial: 0 }
    }

    /// The number of a player, who gets one if it has none.
    pub(crate) fn insert(&mut self, player: PlayerId) -> u32 {
        let known = self.number(player);
        if known != 0 {
            return known;
        }
        self.last_serial = self.last_serial % ((1 << SERIAL_BITS) - 1) + 1;
        let index = player.index().get();
        let number = self.last_serial << 8 | u32::from(index);
        if let Some(slot) = self.slots.get_mut(usize::from(index)) {
            slot.push((player, number));
        }
        number
    }

    /// The number of a player; 0 if it is unknown.
    #[inline]
    pub(crate) fn number(&self, player: PlayerId) -> u32 {
        let slot = self.slots.get(usize::from(player.index().get()));
        slot.and_then(|slot| slot.iter().find(|(id, _)| *id == player)).map_or(0, |(_, number)| *number)
    }

    #[inline]
    pub(crate) fn player(&self, number: u32) -> Option<PlayerId> {
        let slot = self.slots.get((number & 0xff) as usize)?;
        slot.iter().find(|(_, known)| *known == number).map(|(player, _)| *player)
    }

    /// Forgets a player and returns the number that it had.
    pub(crate) fn remove(&mut self, player: PlayerId) -> u32 {
        let number = self.number(player);
        if let Some(slot) = self.slots.get_mut(usize::from(player.index().get())) {
            slot.retain(|(id, _)| *id != player);
        }
        number
    }
}
