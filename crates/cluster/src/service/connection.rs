//! The connection for commands that are not the driver's own.

use crate::{StoreConnection, StoreError, StoreErrorKind};
use std::sync::{Mutex, PoisonError};

/// The connection for commands, as long as the node has contact with the store.
#[derive(Debug, Default)]
pub(super) struct SharedConnection(Mutex<Option<StoreConnection>>);

impl SharedConnection {
    pub fn set(&self, connection: Option<StoreConnection>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    pub fn get(&self) -> Option<StoreConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The error of a request for which there is no connection.
pub(super) fn no_connection() -> StoreError {
    StoreError { kind: StoreErrorKind::Unreachable, message: "there is no connection to the store".into() }
}
