//! Servers with changes of this node that the store has not confirmed.

use super::Update;

/// A server whose changes by this node wait, or are being written.
///
/// A state of it that is read from the log meanwhile may be older than these changes, so it waits until they are confirmed:
/// then it is clear which is later.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Number of changes.
    pub count: usize,
    /// The update for the latest state, and the number of the change that led to it.
    deferred: Option<(u64, Update)>,
}

impl Pending {
    /// Keeps a state that the log or a scan has shown; only the latest matters.
    pub fn defer(&mut self, seq: u64, update: Update) {
        if self.deferred.as_ref().is_none_or(|(known, _)| *known <= seq) {
            self.deferred = Some((seq, update));
        }
    }

    /// Forgets the deferred state: everything is read again, and numbers of another content of the store mean nothing there.
    pub fn forget_state(&mut self) {
        self.deferred = None;
    }

    /// The state that was deferred, if it is not older than a change with this number.
    pub fn take_since(self, seq: u64) -> Option<(u64, Update)> {
        self.deferred.filter(|(deferred, _)| *deferred >= seq)
    }
}
