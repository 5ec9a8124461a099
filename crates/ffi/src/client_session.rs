//! A client with or without channels: the functions of the interface are the same.

use crate::failure::Failure;
use rallypoint_session::{
    ChannelIndex, ChannelMessage, ClientEvent, Connection, ConnectionStats, MessageId, PolledChannelClient,
    PolledClient,
};
use std::time::Duration;

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each has an allocation of its own in the handle table")]
pub(crate) enum ClientSession {
    Plain(PolledClient),
    Channels(PolledChannelClient),
}

impl ClientSession {
    pub(crate) fn poll(&mut self) {
        match self {
            Self::Plain(client) => client.poll(),
            Self::Channels(client) => client.poll(),
        }
    }

    pub(crate) fn wait(&mut self, timeout: Duration) {
        match self {
            Self::Plain(client) => client.wait(timeout),
            Self::Channels(client) => client.wait(timeout),
        }
    }

    pub(crate) fn flush(&mut self) {
        match self {
            Self::Plain(client) => client.flush(),
            Self::Channels(client) => client.flush(),
        }
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Plain(client) => Ok(client.send(message)?),
            Self::Channels(_) => Err(Failure::argument("this client has channels: use rp_client_send_on")),
        }
    }

    pub(crate) fn send_on(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, Failure> {
        match self {
            Self::Plain(_) => Err(Failure::argument("this client has no channels: use rp_client_send")),
            Self::Channels(client) => Ok(client.send(channel, message)?),
        }
    }

    #[inline]
    pub(crate) fn next_event(&mut self, message: &mut ChannelMessage) -> Option<ClientEvent> {
        match self {
            Self::Plain(client) => client.next_event(&mut message.bytes),
            Self::Channels(client) => client.next_event(message),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        match self {
            Self::Plain(client) => client.is_connected(),
            Self::Channels(client) => client.is_connected(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Plain(client) => client.is_closed(),
            Self::Channels(client) => client.is_closed(),
        }
    }

    pub(crate) fn is_delivered(&self) -> bool {
        match self {
            Self::Plain(client) => client.is_delivered(),
            Self::Channels(client) => client.is_delivered(),
        }
    }

    /// Statistics, and the maximum length of a message in a datagram.
    pub(crate) fn stats(&self) -> Option<(ConnectionStats, usize)> {
        match self {
            Self::Plain(client) => client.stats().zip(client.max_message()),
            Self::Channels(client) => client.stats().zip(client.connection().map(Connection::max_message)),
        }
    }

    pub(crate) fn close(&mut self) {
        match self {
            Self::Plain(client) => client.close(),
            Self::Channels(client) => client.close(),
        }
    }
}
