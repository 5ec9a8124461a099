//! The async client with channels.

use crate::{
    ChannelMessage, ClientChannels, ClientOptions, ConnectError, LinkConditions, NotAcknowledged, PolledChannelClient,
    SetupError,
    driver_task::{DriverTask, PolledSession},
    socket_driver::DriveState,
};
use rallypoint_session_proto::{
    ChannelIndex, ClientEvent, ConnectionStats, DisconnectReason, LoginError, MessageId, SendError,
};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{
    fmt, io,
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

/// What a caller waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ChannelClientInterest {
    /// The next event.
    Event,
    /// Room in a channel for a message of this length.
    Room(ChannelIndex, usize),
    /// The end of the client.
    Closed,
}

impl PolledSession for PolledChannelClient {
    type Interest = ChannelClientInterest;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: ChannelClientInterest) -> bool {
        match interest {
            ChannelClientInterest::Event => self.has_event() || self.is_closed(),
            ChannelClientInterest::Room(channel, length) => self.has_room(channel, length),
            ChannelClientInterest::Closed => self.is_closed(),
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
        let mut last = None;
        for addr in tokio::net::lookup_host(server).await.map_err(ConnectError::Resolve)? {
            match Self::connect_to(addr, options.clone(), channels.clone()).await {
                Err(error @ ConnectError::Login(LoginError::TimedOut)) => last = Some(error),
                result => return result,
            }
        }
        Err(last.unwrap_or_else(|| ConnectError::Resolve(io::ErrorKind::NotFound.into())))
    }

    async fn connect_to(
        server: SocketAddr,
        options: ClientOptions,
        channels: ClientChannels,
    ) -> Result<Self, ConnectError> {
        let send_timeout = options.send_timeout;
        let client = PolledChannelClient::connect_to(server, options, channels)?;
        let local = client.local_addr();
        let driver = DriverTask::start(client)
            .map_err(|error| SetupError::from(BindError::new(SocketKind::Udp, local, error)))?;
        let attempt = |client: &mut PolledChannelClient| match client.next_event(&mut ChannelMessage::default()) {
            Some(ClientEvent::Connected) => Some(Ok(())),
            Some(ClientEvent::LoginFailed(error)) => Some(Err(error)),
            _ => None,
        };
        driver.wait_for(ChannelClientInterest::Event, attempt).await?;
        Ok(Self { driver, send_timeout })
    }

    /// Copies the next message into `message`. Other events are dropped. At the end of the session this fails, unless the
    /// client reconnects: then it waits for the next session.
    ///
    /// # Errors
    /// Why the session has ended.
    pub async fn recv(&self, message: &mut ChannelMessage) -> Result<(), DisconnectReason> {
        loop {
            match self.next_event(message).await {
                Some(ClientEvent::Message) => return Ok(()),
                Some(ClientEvent::Disconnected(reason)) if self.is_closed() => return Err(reason),
                Some(_) => {}
                None => return Err(DisconnectReason::Closed),
            }
        }
    }

    /// The next event; `None` once the client is closed for good. With [`ClientEvent::Message`], the message is copied into
    /// `message`. Cancel safe: it can be used in a `select!` without losing an event.
    pub async fn next_event(&self, message: &mut ChannelMessage) -> Option<ClientEvent> {
        let attempt = |client: &mut PolledChannelClient| {
            let event = client.next_event(message);
            if client.take_has_replies() {
                self.driver.wake();
            }
            match event {
                Some(event) => Some(Some(event)),
                None => client.is_closed().then_some(None),
            }
        };
        self.driver.wait_for(ChannelClientInterest::Event, attempt).await
    }

    /// Sends a message on a channel. Waits while the queue of the channel is full, for
    /// [`send_timeout`](ClientOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or there was no room in time: then the message is
    /// not sent.
    pub async fn send(&self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let attempt = |client: &mut PolledChannelClient| match client.send(channel, message) {
            Err(SendError::WouldBlock) => None,
            result => Some(result),
        };
        let sent = self.driver.wait_for(ChannelClientInterest::Room(channel, message.len()), attempt);
        let sent = tokio::time::timeout(self.send_timeout, sent).await.unwrap_or(Err(SendError::TimedOut));
        self.driver.wake();
        sent
    }

    /// Sends a message on a channel, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the queue is full: [`ClientEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        self.driver.command(|client| client.send(channel, message))
    }

    /// Ends the session: sends the messages that are left, disconnects, and waits until that is done, for a few seconds at
    /// most.
    ///
    /// # Errors
    /// If the server has not acknowledged everything that was sent, in this session or in an earlier one.
    pub async fn close(self) -> Result<(), NotAcknowledged> {
        self.driver.command(PolledChannelClient::close);
        self.driver.wait_for(ChannelClientInterest::Closed, |client| client.is_closed().then_some(())).await;
        let is_delivered = self.driver.with(|client| client.is_delivered());
        self.driver.stop().await;
        if is_delivered { Ok(()) } else { Err(NotAcknowledged) }
    }

    /// Current round-trip time, loss and throughput of the connection, while there is one.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.driver.with(|client| client.stats())
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.driver.with(|client| client.is_connected())
    }

    /// Whether the client is closed for good: when the pending events are polled, there will be no further ones.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.driver.with(|client| client.is_closed())
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.driver.with(|client| client.server())
    }

    /// The local address of the socket.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.with(|client| client.local_addr())
    }

    /// Simulates a bad network from now on, or no longer.
    pub fn set_link_conditions(&self, conditions: Option<LinkConditions>) {
        self.driver.command(|client| client.set_link_conditions(conditions));
    }
}

impl fmt::Debug for AsyncChannelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|client| fmt::Debug::fmt(client, f))
    }
}
