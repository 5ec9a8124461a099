//! When a node reads the bans of the store.

use super::ClusterNode;

/// When the bans of the store are read: with each contact, and when the store has lost some.
#[derive(Debug, Default)]
pub(super) struct ReadState {
    /// Whether all bans are read next.
    pub is_due: bool,
    /// Number of bans in the store at the last tick of this contact.
    count: Option<u64>,
    /// Whether their key has another program's value.
    pub is_foreign: bool,
}

impl ReadState {
    /// The store was opened.
    pub fn handle_opened(&mut self) {
        self.is_due = true;
        self.count = None;
    }

    /// Handles the number of bans at a tick. Bans are never removed one by one, except when they ended long ago: if there are
    /// fewer than before, their key was deleted or evicted, and the nodes write what they know. Returns whether another
    /// program's value was found in their place.
    pub fn handle_count(&mut self, count: Option<u64>) -> bool {
        let is_found = count.is_none() && !self.is_foreign;
        let has_lost = count.zip(self.count).is_some_and(|(count, before)| count < before);
        let is_usable_again = count.is_some() && self.is_foreign;
        self.is_due |= has_lost || is_usable_again;
        self.is_foreign = count.is_none();
        self.count = count.or(self.count);
        is_found
    }
}

impl ClusterNode {
    /// Whether another program's value is where the bans should be: then they are not shared.
    #[must_use]
    pub fn has_foreign_bans(&self) -> bool {
        self.bans.is_foreign
    }

    /// Reads all bans of the store again, and hands over those that only this node has.
    pub fn reread_bans(&mut self) {
        self.bans.is_due = true;
    }
}
