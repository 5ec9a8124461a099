//! The async client.

use crate::{
    ClientOptions, ConnectError, PolledClient,
    client_methods::async_client_methods,
    client_task::{self, ClientInterest},
    driver_task::{DriverTask, PolledSession},
    socket_driver::DriveState,
};
use rallypoint_session_proto::{ClientEvent, DisconnectReason, SendError};
use rallypoint_udp::UdpSocket;
use std::{
    fmt,
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

impl PolledSession for PolledClient {
    type Interest = ClientInterest<()>;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: ClientInterest<()>) -> bool {
        match interest {
            ClientInterest::Event => self.has_event() || self.is_closed(),
            ClientInterest::Room(()) => self.is_writable_or_closed(),
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
        client_task::connect_any(server, |addr| Self::connect_to(addr, options.clone())).await
    }

    async fn connect_to(server: SocketAddr, options: ClientOptions) -> Result<Self, ConnectError> {
        let send_timeout = options.send_timeout;
        let client = PolledClient::connect_to(server, options)?;
        let local = client.local_addr();
        let driver = client_task::log_in(client, local, |client| client.next_event(&mut Vec::new())).await?;
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
            let event = self.next_event(message).await;
            if let Some(result) = client_task::recv_result(event, || self.is_closed()) {
                return result;
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
        self.driver.send(ClientInterest::Room(()), self.send_timeout, |client| client.send(message)).await
    }

    /// Sends a message, reliably, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the window is full: [`ClientEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, message: &[u8]) -> Result<(), SendError> {
        self.driver.command(|client| client.send(message))
    }

    /// Maximum length of a message in bytes, while there is a connection (S33).
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        self.driver.with(|client| client.max_message())
    }

    async_client_methods!();
}

impl fmt::Debug for SessionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|client| fmt::Debug::fmt(client, f))
    }
}
