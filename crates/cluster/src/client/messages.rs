//! The stream of messages between nodes.

use super::{REQUEST_TIMEOUT, Script, StoreClient, StoreConnection, replies};
use crate::{StoreError, clock::milliseconds};
use redis::Value;
use std::{fmt, time::Duration};

/// Number of messages per request. A message has up to 500 kB, usually 10 kB.
const READ_COUNT: usize = 20;

/// How long the store waits for a message.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// The ID of a message in the stream: the store's time in milliseconds, and a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageId(pub u64, pub u64);

impl MessageId {
    pub fn parse(text: &str) -> Option<Self> {
        let (time, number) = text.split_once('-')?;
        Some(Self(time.parse().ok()?, number.parse().ok()?))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl StoreClient {
    /// Sends a message to all nodes. Messages are kept for `retention`.
    pub(crate) async fn send_message(
        &self,
        connection: &mut StoreConnection,
        message: &[u8],
        retention: Duration,
    ) -> Result<(), StoreError> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.scripts.hash(Script::Send)).arg(1).arg(self.message_key());
        command.arg(message).arg(milliseconds(retention));
        self.read::<Value>(connection, &command).await.map(drop)
    }

    /// The ID of the newest message; the lowest one if there is none.
    pub(crate) async fn newest_message(&self, connection: &mut StoreConnection) -> Result<MessageId, StoreError> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.scripts.hash(Script::NewestMessage)).arg(1).arg(self.message_key());
        match self.read::<String>(connection, &command).await {
            Ok(id) => Ok(MessageId::parse(&id).unwrap_or_default()),
            Err(error) => Err(self.name_message_key(connection, error).await),
        }
    }

    /// Messages after this one; waits some seconds if there are none.
    pub(crate) async fn read_messages(
        &self,
        connection: &mut StoreConnection,
        after: MessageId,
    ) -> Result<Vec<(MessageId, Vec<u8>)>, StoreError> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(READ_COUNT).arg("BLOCK").arg(milliseconds(READ_TIMEOUT));
        command.arg("STREAMS").arg(self.message_key()).arg(after.to_string());
        match self.read_within::<Value>(READ_TIMEOUT + REQUEST_TIMEOUT, connection, &command).await {
            Ok(value) => Ok(replies::messages_of_stream(value)),
            Err(error) => Err(self.name_message_key(connection, error).await),
        }
    }

    pub(super) fn message_key(&self) -> String {
        format!("{}:msg", self.keys.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_messages_are_ordered_by_number() {
        let id = |text| MessageId::parse(text);
        assert!(id("9-10") > id("9-9") && id("10-0") > id("9-10"));
        assert_eq!((id("x"), id("1"), id("1-x")), (None, None, None));
        assert_eq!(id("17-3").unwrap().to_string(), "17-3");
    }
}
