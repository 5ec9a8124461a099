//! Servers with changes of this node that the store has not confirmed.

use crate::record::EntryValue;
use rallypoint_lobby_proto::{ApplyMode, Removal};

/// The state of a server in the store at some point of the log.
#[derive(Clone, Debug)]
pub(super) struct ServerState {
    /// Number of the change that led to it.
    pub seq: u64,
    /// Its value, or that it is not there.
    pub change: Result<(Box<EntryValue>, ApplyMode), Removal>,
}

impl ServerState {
    pub fn put(seq: u64, value: EntryValue, mode: ApplyMode) -> Self {
        Self { seq, change: Ok((Box::new(value), mode)) }
    }

    /// The server is not in the store, for an unknown reason.
    pub fn lost(seq: u64) -> Self {
        Self { seq, change: Err(Removal::Lost) }
    }
}

/// A server whose changes by this node wait, or are being written.
///
/// A state of it that is read from the log meanwhile may be older than these changes, so it waits until they are confirmed:
/// then it is clear which is later.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Number of changes.
    pub count: usize,
    deferred: Option<ServerState>,
}

impl Pending {
    /// Keeps a state that the log or a scan has shown; only the latest matters.
    pub fn defer(&mut self, state: ServerState) {
        if self.deferred.as_ref().is_none_or(|known| known.seq <= state.seq) {
            self.deferred = Some(state);
        }
    }

    /// Forgets the deferred state: everything is read again, and numbers of another content of the store mean nothing there.
    pub fn forget_state(&mut self) {
        self.deferred = None;
    }

    /// The state that was deferred, if it is not older than a change with this number.
    pub fn take_since(self, seq: u64) -> Option<ServerState> {
        self.deferred.filter(|state| state.seq >= seq)
    }
}
