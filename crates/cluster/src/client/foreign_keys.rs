//! Keys of the cluster that have another program's value.

use super::{REQUEST_TIMEOUT, StoreClient, StoreConnection, error, store_error};
use crate::{StoreError, StoreErrorKind};

/// Where the key of the messages is among all.
const MESSAGES: usize = 8;

/// The types of the keys in the order in which the scripts expect them, and of the messages.
const TYPES: [&str; 9] = ["hash", "hash", "hash", "zset", "zset", "stream", "hash", "hash", "stream"];

impl StoreClient {
    /// The error of the first key that has a value of another type than the nodes write.
    pub(super) async fn find_foreign_key(
        &self,
        connection: &mut StoreConnection,
    ) -> Result<Option<StoreError>, StoreError> {
        self.find_foreign_key_from(connection, 0).await
    }

    async fn find_foreign_key_from(
        &self,
        connection: &mut StoreConnection,
        first: usize,
    ) -> Result<Option<StoreError>, StoreError> {
        let url = self.connector.url();
        let keys: Vec<_> = self.keys.all.iter().cloned().chain([self.message_key()]).skip(first).collect();
        let mut commands = redis::pipe();
        for key in &keys {
            commands.cmd("TYPE").arg(key);
        }
        let found = tokio::time::timeout(REQUEST_TIMEOUT, connection.query_pipeline::<Vec<String>>(&commands)).await;
        let found = found.map_err(|_| error::timeout(url))?.map_err(|error| store_error(url, &error))?;
        let mut types = keys.iter().zip(found).zip(TYPES.into_iter().skip(first));
        let foreign = types.find(|((_, found), expected)| found != "none" && found != expected);
        Ok(foreign.map(|((key, found), expected)| error::foreign(url, key, &found, expected)))
    }

    /// Names the key, if an error is about the type of one: the store's own error does not.
    pub(super) async fn name_foreign_key(&self, connection: &mut StoreConnection, error: StoreError) -> StoreError {
        self.name_foreign_key_from(connection, 0, error).await
    }

    /// Names the foreign key behind an error about the messages.
    pub(super) async fn name_message_key(&self, connection: &mut StoreConnection, error: StoreError) -> StoreError {
        self.name_foreign_key_from(connection, MESSAGES, error).await
    }

    async fn name_foreign_key_from(
        &self,
        connection: &mut StoreConnection,
        first: usize,
        error: StoreError,
    ) -> StoreError {
        if error.kind != StoreErrorKind::Foreign {
            return error;
        }
        self.find_foreign_key_from(connection, first).await.ok().flatten().unwrap_or(error)
    }
}
