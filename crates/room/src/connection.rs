//! The connection to a room: with channels, or without if the room has none.

use crate::{
    GAME, MAX_MESSAGE,
    channels::{self, CHAT, PRESENCE},
};
use rallypoint_session::{
    Client, ClientConfig, ClientEvent, ClientOptions, ConnectError, ConnectionStats, Encryption, Layer, LoginError,
    NotAcknowledged, SendError, SetupError,
};
use std::net::SocketAddr;

/// A connection to a room.
pub struct RoomConnection {
    client: Client,
    /// Whether chat and presence have channels. Rooms of other software, and of earlier versions, have only a stream of lines.
    has_presence: bool,
}

/// An event in a room.
pub enum RoomEvent<'a> {
    /// A line arrived.
    Line(&'a [u8]),
    /// A presence report arrived.
    Presence(&'a [u8]),
    /// The state of the connection has changed.
    Session(ClientEvent<'a>),
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
        let mut options = ClientOptions::from(config).channels(table);
        match Client::connect(addrs, options.clone()).await {
            // A plain server does not run a game of that name (S18).
            Err(ConnectError::Login(LoginError::Refused(why))) if !is_transient(&why) => {
                options.client.layer = Layer::Stream { max_message: MAX_MESSAGE, is_named: false };
                Ok(Self { client: Client::connect(addrs, options).await?, has_presence: false })
            }
            result => Ok(Self { client: result?, has_presence: true }),
        }
    }

    /// The next event; `None` once the connection is closed for good. Cancel-safe.
    pub async fn next_event<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<RoomEvent<'a>> {
        Some(match self.client.next_event(buffer).await? {
            // The channel of lines is also that of rooms without channels.
            ClientEvent::Message { channel: CHAT, bytes } => RoomEvent::Line(bytes),
            ClientEvent::Message { bytes, .. } => RoomEvent::Presence(bytes),
            event => RoomEvent::Session(event),
        })
    }

    /// Sends a line.
    pub async fn send(&self, line: &[u8]) -> Result<(), SendError> {
        self.client.send(CHAT, line).await.map(drop)
    }

    /// Reports whether the guest is typing, to rooms with channels. If that is lost, the next report corrects it.
    pub fn send_typing(&self, is_typing: bool) {
        if self.has_presence {
            let state = if is_typing { channels::TYPING } else { channels::IDLE };
            let _ = self.client.try_send(PRESENCE, state.as_bytes());
        }
    }

    /// Statistics of the connection; `None` while there is none.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.client.stats()
    }

    /// The address of the room.
    pub fn server(&self) -> SocketAddr {
        self.client.server()
    }

    /// Whether the connection is closed for good.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Leaves the room, and waits until it has all lines.
    ///
    /// # Errors
    /// If some were not acknowledged.
    pub async fn close(self) -> Result<(), NotAcknowledged> {
        self.client.close().await
    }
}

fn is_transient(reason: &str) -> bool {
    LoginError::Refused(reason.to_owned()).is_transient()
}
