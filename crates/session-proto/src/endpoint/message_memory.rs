//! The memory for messages of all players, which is limited (S22).

use super::departed::DepartedPlayers;

/// Share of the memory that unread messages of players who have left may take: a quarter.
const DEPARTED_SHARE: usize = 4;

/// Bytes of messages that an endpoint keeps.
pub(super) struct MessageMemory {
    /// Bytes of all connections.
    pub connections: usize,
    /// Bytes that a layer above keeps.
    pub reserved: usize,
    pub departed: DepartedPlayers,
    max: usize,
}

impl MessageMemory {
    /// `max`: bytes of everything together.
    pub fn new(max: usize) -> Self {
        Self { connections: 0, reserved: 0, departed: DepartedPlayers::new(max / DEPARTED_SHARE), max }
    }

    pub fn used(&self) -> usize {
        self.connections + self.departed.memory() + self.reserved
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
}
