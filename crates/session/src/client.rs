//! The async client.

use crate::{
    ClientOptions, ConnectError, LinkConditions, NotAcknowledged, PolledClient, SetupError,
    driver_task::{DriverTask, PolledSession},
    socket_driver::DriveState,
};
use rallypoint_session_proto::{ClientEvent, ConnectionStats, DisconnectReason, LoginError, SendError};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::ToSocketAddrs;

/// A client of the session protocol. A task of the runtime drives it; its methods can be called from any task.
///
/// ```no_run
/// use rallypoint_session::{ClientConfig, SessionClient};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = SessionClient::connect("play.example.org:45555", ClientConfig::new("alice", "tag")).await?;
/// client.send(b"hello").await?;
/// let reply = client.recv().await?;
/// println!("received {} bytes", reply.len());
/// client.close().await?;
/// # Ok(()) }
/// ```
pub struct SessionClient {
    driver: DriverTask<PolledClient>,
    send_timeout: Duration,
}

/// What a caller waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ClientInterest {
    /// The next event.
    Event,
    /// Room in the send window.
    Room,
    /// The end of the client.
    Closed,
}

impl PolledSession for PolledClient {
    type Interest = ClientInterest;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: ClientInterest) -> bool {
        match interest {
            ClientInterest::Event => self.has_event() || self.is_closed(),
            ClientInterest::Room => self.is_writable_or_closed(),
            ClientInterest::Closed => self.is_closed(),
        }
    }
}

impl SessionClient {
    /// Logs in, and waits until the server has accepted the login. If a name has several addresses, each is tried until one
    /// answers. Must be called on a runtime.
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
        let client = PolledClient::connect_to(server, options)?;
        let local = client.local_addr();
        let driver = DriverTask::start(client)
            .map_err(|error| SetupError::from(BindError::new(SocketKind::Udp, local, error)))?;
        let attempt = |client: &mut PolledClient| match client.next_event(&mut Vec::new()) {
            Some(ClientEvent::Connected) => Some(Ok(())),
            Some(ClientEvent::LoginFailed(error)) => Some(Err(error)),
            _ => None,
        };
        driver.wait_for(ClientInterest::Event, attempt).await?;
        Ok(Self { driver, send_timeout })
    }

    /// The next message. Other events are dropped. At the end of the session this fails, unless the client reconnects: then
    /// it waits for the next session.
    ///
    /// # Errors
    /// Why the session has ended.
    pub async fn recv(&self) -> Result<Vec<u8>, DisconnectReason> {
        let mut message = Vec::new();
        self.recv_into(&mut message).await.map(|()| message)
    }

    /// The next message, as [`recv`](Self::recv), in a buffer that can be reused.
    ///
    /// # Errors
    /// Why the session has ended.
    pub async fn recv_into(&self, message: &mut Vec<u8>) -> Result<(), DisconnectReason> {
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
    /// `message`.
    pub async fn next_event(&self, message: &mut Vec<u8>) -> Option<ClientEvent> {
        let attempt = |client: &mut PolledClient| match client.next_event(message) {
            Some(event) => Some(Some(event)),
            None => client.is_closed().then_some(None),
        };
        self.driver.wait_for(ClientInterest::Event, attempt).await
    }

    /// Sends a message, reliably. Waits while the window is full, for [`send_timeout`](ClientOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If the message is too large or empty, there is no session, or there was no room in time: then the message is not sent.
    pub async fn send(&self, message: &[u8]) -> Result<(), SendError> {
        let attempt = |client: &mut PolledClient| match client.send(message) {
            Err(SendError::WouldBlock) => None,
            result => Some(result),
        };
        let sent = self.driver.wait_for(ClientInterest::Room, attempt);
        let sent = tokio::time::timeout(self.send_timeout, sent).await.unwrap_or(Err(SendError::TimedOut));
        self.driver.wake();
        sent
    }

    /// Sends a message, reliably, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the window is full: [`ClientEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, message: &[u8]) -> Result<(), SendError> {
        self.driver.command(|client| client.send(message))
    }

    /// Ends the session: delivers the messages that are left, disconnects, and waits until that is done, for little more than
    /// 2 s at most.
    ///
    /// # Errors
    /// If the server has not acknowledged everything that was sent, in this session or in an earlier one.
    pub async fn close(self) -> Result<(), NotAcknowledged> {
        self.driver.command(PolledClient::close);
        self.driver.wait_for(ClientInterest::Closed, |client| client.is_closed().then_some(())).await;
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

    /// Maximum length of a message in bytes, while there is a connection (S33).
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        self.driver.with(|client| client.max_message())
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

impl fmt::Debug for SessionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|client| fmt::Debug::fmt(client, f))
    }
}
