//! The connection to a room: with channels, or without if the room has none.

use crate::host::{
    GAME, MAX_MESSAGE,
    channels::{self, CHAT, PRESENCE},
};
use rallypoint_session::{
    AsyncChannelClient, ChannelMessage, ClientConfig, ClientEvent, ClientOptions, ConnectError, ConnectionStats,
    Encryption, LoginError, NotAcknowledged, SendError, SessionClient, SetupError,
};
use std::net::SocketAddr;

/// A connection to a room.
pub enum RoomConnection {
    Channels(AsyncChannelClient),
    /// A room of other software, or of an earlier version.
    Plain(SessionClient),
}

/// An event in a room.
pub enum RoomEvent {
    /// A line arrived; it is in the message.
    Line,
    /// A presence report arrived; it is in the message.
    Presence,
    Session(ClientEvent),
}

impl RoomConnection {
    /// Connects with channels, and without if the room refuses that.
    pub async fn connect(
        addrs: &[SocketAddr],
        name: &str,
        encryption: Encryption,
        reconnect: bool,
    ) -> Result<Self, ConnectError> {
        let config = ClientConfig { encryption, reconnect, ..ClientConfig::new(name, GAME) };
        let table = channels::table().map_err(|error| SetupError::Config(error.into()))?;
        match AsyncChannelClient::connect(addrs, config.clone(), table).await {
            // A plain server does not run a game of that name (S18).
            Err(ConnectError::Login(LoginError::Refused(why))) if !is_transient(&why) => {
                let options = ClientOptions { stream: Some(MAX_MESSAGE), names_stream: false, ..config.into() };
                SessionClient::connect(addrs, options).await.map(Self::Plain)
            }
            result => result.map(Self::Channels),
        }
    }

    /// The next event; `None` once the connection is closed for good. Cancel-safe.
    pub async fn next_event(&self, message: &mut ChannelMessage) -> Option<RoomEvent> {
        let event = match self {
            Self::Channels(client) => client.next_event(message).await?,
            Self::Plain(client) => {
                message.channel = CHAT;
                client.next_event(&mut message.bytes).await?
            }
        };
        Some(match event {
            ClientEvent::Message if message.channel == CHAT => RoomEvent::Line,
            ClientEvent::Message => RoomEvent::Presence,
            event => RoomEvent::Session(event),
        })
    }

    /// Sends a line.
    pub async fn send(&self, line: &[u8]) -> Result<(), SendError> {
        match self {
            Self::Channels(client) => client.send(CHAT, line).await.map(drop),
            Self::Plain(client) => client.send(line).await,
        }
    }

    /// Reports whether the guest is typing, to rooms with channels. If that is lost, the next report corrects it.
    pub fn send_typing(&self, is_typing: bool) {
        if let Self::Channels(client) = self {
            let state = if is_typing { channels::TYPING } else { channels::IDLE };
            let _ = client.try_send(PRESENCE, state.as_bytes());
        }
    }

    pub fn stats(&self) -> Option<ConnectionStats> {
        match self {
            Self::Channels(client) => client.stats(),
            Self::Plain(client) => client.stats(),
        }
    }

    pub fn server(&self) -> SocketAddr {
        match self {
            Self::Channels(client) => client.server(),
            Self::Plain(client) => client.server(),
        }
    }

    pub fn is_closed(&self) -> bool {
        match self {
            Self::Channels(client) => client.is_closed(),
            Self::Plain(client) => client.is_closed(),
        }
    }

    pub async fn close(self) -> Result<(), NotAcknowledged> {
        match self {
            Self::Channels(client) => client.close().await,
            Self::Plain(client) => client.close().await,
        }
    }
}

fn is_transient(reason: &str) -> bool {
    LoginError::Refused(reason.to_owned()).is_transient()
}
