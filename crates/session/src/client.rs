//! The async client.

use crate::{
    ClientEvent, ClientOptions, ConnectError, LinkConditions, NotAcknowledged, PolledClient, SetupError,
    driver_task::{DriverTask, PolledSession},
    local_link::Wake,
    socket_driver::DriveState,
};
use rallypoint_session_proto::{
    ChannelIndex, ClientEvent as ClientNotice, Connection, ConnectionStats, DisconnectReason, LoginError, MessageId,
    SendError,
};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::net::ToSocketAddrs;

/// A client of the session protocol. A task of the runtime drives it; its methods can be called from any task.
///
/// ```no_run
/// use rallypoint_session::{Client, ClientOptions, ONLY_CHANNEL};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect("play.example.org:45555", ClientOptions::new("alice", "tag")).await?;
/// client.send(ONLY_CHANNEL, b"hello").await?;
/// let mut buffer = Vec::new();
/// let (_, reply) = client.recv(&mut buffer).await?;
/// println!("received {} bytes", reply.len());
/// client.close().await?;
/// # Ok(()) }
/// ```
pub struct Client {
    driver: DriverTask<PolledClient>,
    send_timeout: Duration,
    /// The end of a session whose driver has panicked was reported.
    is_panic_reported: AtomicBool,
}

/// The condition that a caller of a client waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ClientInterest {
    /// The next event.
    Event,
    /// Room on a channel for a message of this length.
    Room(ChannelIndex, usize),
    /// The end of the client.
    Closed,
}

impl PolledSession for PolledClient {
    type Interest = ClientInterest;

    fn sockets(&mut self) -> &[Arc<UdpSocket>] {
        self.driver().sockets()
    }

    fn set_wake(&mut self, wake: Wake) {
        self.driver().set_wake(wake);
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.driver().drive(now)
    }

    fn is_ready(&mut self, interest: ClientInterest) -> bool {
        match interest {
            ClientInterest::Event => self.driver().machine().has_events() || self.is_closed(),
            ClientInterest::Room(channel, length) => self.driver().machine().has_room(channel, length),
            ClientInterest::Closed => self.is_closed(),
        }
    }
}

impl Client {
    /// Logs in, and waits until the server has accepted the login, and the channels if there are any. If a name has several
    /// addresses, each is tried until one answers. Must be called on a runtime.
    ///
    /// # Errors
    /// If an option is invalid, no socket can be bound, the name cannot be resolved, or the server refuses the login or does
    /// not answer.
    pub async fn connect(server: impl ToSocketAddrs, options: impl Into<ClientOptions>) -> Result<Self, ConnectError> {
        let options = options.into();
        let mut last = None;
        for addr in tokio::net::lookup_host(server).await.map_err(ConnectError::Resolve)? {
            match Self::connect_to(addr, options.clone()).await {
                Err(error @ ConnectError::Login(LoginError::TimedOut)) => last = Some(error),
                result => return result,
            }
        }
        Err(last.unwrap_or_else(|| ConnectError::Resolve(io::ErrorKind::NotFound.into())))
    }

    async fn connect_to(server: SocketAddr, options: ClientOptions) -> Result<Self, ConnectError> {
        let send_timeout = options.send_timeout;
        Self::start(PolledClient::connect_to(server, options)?, send_timeout).await
    }

    /// Starts the task of a client, and waits for the end of its login.
    pub(crate) async fn start(client: PolledClient, send_timeout: Duration) -> Result<Self, ConnectError> {
        let local = client.local_addr();
        let driver = DriverTask::start(client)
            .map_err(|error| SetupError::from(BindError::new(SocketKind::Udp, local, error)))?;
        let attempt = |client: &mut PolledClient| match client.next_event() {
            Some(ClientEvent::Connected) => Some(Ok(())),
            Some(ClientEvent::LoginFailed(error)) => Some(Err(error)),
            _ => None,
        };
        driver.wait_for(ClientInterest::Event, attempt).await??;
        Ok(Self { driver, send_timeout, is_panic_reported: AtomicBool::new(false) })
    }

    /// The next message, copied into `buffer`, and its channel. Other events are dropped. At the end of the session this fails,
    /// unless the client reconnects: then it waits for the next session.
    ///
    /// # Errors
    /// Why the session has ended.
    pub async fn recv<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<(ChannelIndex, &'a [u8]), DisconnectReason> {
        loop {
            match self.next(buffer).await {
                Some((ClientNotice::Message, channel)) => return Ok((channel, buffer)),
                Some((ClientNotice::Disconnected(reason), _)) if self.is_closed() => return Err(reason),
                Some(_) => {}
                None => return Err(DisconnectReason::Closed),
            }
        }
    }

    /// The next event; `None` once the client is closed for good. A message is copied into `buffer`, which the event borrows.
    /// Cancel safe: it can be used in a `select!` without losing an event.
    pub async fn next_event<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<ClientEvent<'a>> {
        let (notice, channel) = self.next(buffer).await?;
        Some(ClientEvent::new(notice, channel, buffer))
    }

    async fn next(&self, buffer: &mut Vec<u8>) -> Option<(ClientNotice, ChannelIndex)> {
        let attempt = |client: &mut PolledClient| {
            let next = client.take_event(buffer);
            // Receipts and credits of messages that were read are sent now, and not with the next datagram.
            if client.driver().machine().has_replies() {
                self.driver.wake();
            }
            match next {
                Some(next) => Some(Some(next)),
                None => client.is_closed().then_some(None),
            }
        };
        let Ok(next) = self.driver.wait_for(ClientInterest::Event, attempt).await else {
            let is_reported = self.is_panic_reported.swap(true, Ordering::Relaxed);
            let end = ClientNotice::Disconnected(DisconnectReason::DriverPanicked);
            return (!is_reported).then_some((end, ChannelIndex::default()));
        };
        next
    }

    /// Sends a message on a channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) if the session has no others. Waits while there is no
    /// room, for [`send_timeout`](ClientOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or there was no room in time: then the message is
    /// not sent.
    pub async fn send(&self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let room = ClientInterest::Room(channel, message.len());
        self.driver.send(room, self.send_timeout, |client| client.send(channel, message)).await
    }

    /// Sends a message on a channel, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if there is no room: [`ClientEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        self.driver.command(|client| client.send(channel, message))
    }

    /// Ends the session: delivers the messages that are left, disconnects, and waits until that is done, for a few seconds at
    /// most.
    ///
    /// # Errors
    /// If the server has not acknowledged everything that was sent, in this session or in an earlier one.
    pub async fn close(self) -> Result<(), NotAcknowledged> {
        self.driver.command(PolledClient::close);
        let closed = self.driver.wait_for(ClientInterest::Closed, |client| client.is_closed().then_some(())).await;
        let is_delivered = closed.is_ok() && self.is_delivered();
        self.driver.stop().await;
        if is_delivered { Ok(()) } else { Err(NotAcknowledged) }
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.driver.has_panicked() && self.driver.with(|client| client.is_connected())
    }

    /// Whether the client is closed for good: once the pending events are polled, no others follow.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.driver.has_panicked() || self.driver.with(|client| client.is_closed())
    }

    /// Whether the server has acknowledged every message that was sent, in this session and in earlier ones. In channels,
    /// messages that were replaced or have expired do not count.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.driver.with(|client| client.is_delivered())
    }

    /// Maximum length of a message in bytes, while there is a connection (S33); with channels, whose table limits it, of a
    /// message that fits into a datagram.
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        self.driver.with(|client| client.max_message())
    }

    /// Current round-trip time, loss and throughput of the connection, while there is one.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.with_connection(Connection::stats)
    }

    /// Calls a function with the connection, if there is one: address, encryption, statistics. It must not call the client.
    pub fn with_connection<R>(&self, read: impl FnOnce(&Connection) -> R) -> Option<R> {
        self.driver.with(|client| client.with_connection(read))
    }

    /// Whether messages are encrypted, while there is a connection.
    #[must_use]
    pub fn is_encrypted(&self) -> Option<bool> {
        self.with_connection(Connection::is_encrypted)
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

    /// Starts to simulate a bad network, or stops.
    pub fn set_link_conditions(&self, conditions: Option<LinkConditions>) {
        self.driver.command(|client| client.set_link_conditions(conditions));
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|client| fmt::Debug::fmt(client, f))
    }
}
