//! The async client with channels.

use crate::{
    ChannelMessage, ClientChannels, ClientOptions, ConnectError, PolledChannelClient,
    client_methods::async_client_methods,
    client_task::{self, ClientInterest},
    driver_task::{DriverTask, PolledSession},
    socket_driver::DriveState,
};
use rallypoint_session_proto::{ChannelIndex, ClientEvent, DisconnectReason, MessageId, SendError};
use rallypoint_udp::UdpSocket;
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::ToSocketAddrs;

/// A [`SessionClient`](crate::SessionClient) whose session has channels. A task of the runtime drives it; its methods can be
/// called from any task.
///
/// ```no_run
/// use rallypoint_session::{AsyncChannelClient, Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable, ClientConfig};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
/// let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 1_000)])?;
/// let client = AsyncChannelClient::connect("play.example.org:45555", ClientConfig::new("alice", "tag"), table).await?;
/// client.send(CHAT, b"hello").await?;
/// let mut message = ChannelMessage::default();
/// client.recv(&mut message).await?;
/// println!("{:?}: {:?}", message.channel, message.bytes);
/// client.close().await?;
/// # Ok(()) }
/// ```
pub struct AsyncChannelClient {
    driver: DriverTask<PolledChannelClient>,
    send_timeout: Duration,
}

impl PolledSession for PolledChannelClient {
    /// Room is that of a channel for a message of this length.
    type Interest = ClientInterest<(ChannelIndex, usize)>;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: Self::Interest) -> bool {
        match interest {
            ClientInterest::Event => self.has_event() || self.is_closed(),
            ClientInterest::Room((channel, length)) => self.has_room(channel, length),
            ClientInterest::Closed => self.is_closed(),
        }
    }
}

impl AsyncChannelClient {
    /// Logs in, and waits until the server has accepted the table of channels and the player. If a name has several
    /// addresses, each is tried until one answers. Must be called on a runtime.
    ///
    /// # Errors
    /// If an option is invalid, no socket can be bound, the name cannot be resolved, or the server refuses the login or does
    /// not answer.
    pub async fn connect(
        server: impl ToSocketAddrs,
        options: impl Into<ClientOptions>,
        channels: impl Into<ClientChannels>,
    ) -> Result<Self, ConnectError> {
        let options = options.into();
        let channels = channels.into();
        client_task::connect_any(server, |addr| Self::connect_to(addr, options.clone(), channels.clone())).await
    }

    async fn connect_to(
        server: SocketAddr,
        options: ClientOptions,
        channels: ClientChannels,
    ) -> Result<Self, ConnectError> {
        let send_timeout = options.send_timeout;
        let client = PolledChannelClient::connect_to(server, options, channels)?;
        let local = client.local_addr();
        let next_event = |client: &mut PolledChannelClient| client.next_event(&mut ChannelMessage::default());
        let driver = client_task::log_in(client, local, next_event).await?;
        Ok(Self { driver, send_timeout })
    }

    /// Copies the next message into `message`. Other events are dropped. At the end of the session this fails, unless the
    /// client reconnects: then it waits for the next session.
    ///
    /// # Errors
    /// Why the session has ended.
    pub async fn recv(&self, message: &mut ChannelMessage) -> Result<(), DisconnectReason> {
        loop {
            let event = self.next_event(message).await;
            if let Some(result) = client_task::recv_result(event, || self.is_closed()) {
                return result;
            }
        }
    }

    /// The next event; `None` once the client is closed for good. With [`ClientEvent::Message`], the message is copied into
    /// `message`. Cancel safe: it can be used in a `select!` without losing an event.
    pub async fn next_event(&self, message: &mut ChannelMessage) -> Option<ClientEvent> {
        let attempt = |client: &mut PolledChannelClient| {
            let event = client.next_event(message);
            if client.has_replies() {
                self.driver.wake();
            }
            match event {
                Some(event) => Some(Some(event)),
                None => client.is_closed().then_some(None),
            }
        };
        self.driver.wait_for(ClientInterest::Event, attempt).await
    }

    /// Sends a message on a channel. Waits while the queue of the channel is full, for
    /// [`send_timeout`](ClientOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or there was no room in time: then the message is
    /// not sent.
    pub async fn send(&self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let room = ClientInterest::Room((channel, message.len()));
        self.driver.send(room, self.send_timeout, |client| client.send(channel, message)).await
    }

    /// Sends a message on a channel, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the queue is full: [`ClientEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        self.driver.command(|client| client.send(channel, message))
    }

    async_client_methods!();
}

impl fmt::Debug for AsyncChannelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|client| fmt::Debug::fmt(client, f))
    }
}
