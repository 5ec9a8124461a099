//! The async server.

use crate::{
    PolledServer, ServerOptions, SetupError,
    driver_task::{DriverTask, PolledSession},
    server_methods::async_server_methods,
    server_task::{self, ServerInterest},
    socket_driver::DriveState,
};
use rallypoint_session_proto::{Connection, NewPlayer, PlayerId, SendError, ServerEvent};
use rallypoint_udp::UdpSocket;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A server of the session protocol.
///
/// A task of the runtime drives it; its methods can be called from any task. Either one loop calls
/// [`next_event`](Self::next_event) and replies with [`try_send`](Self::try_send), or every player has a task of its own, with
/// [`accept`](Self::accept), [`recv`](Self::recv) and [`send`](Self::send). One loop that waits in `send` would let a player
/// who reads nothing hold up all others.
///
/// ```
/// use rallypoint_session::{ClientConfig, EndpointConfig, ServerEvent, ServerOptions, SessionClient, SessionServer};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
/// options.listen = vec!["127.0.0.1:0".parse()?];
/// let server = SessionServer::bind(options).await?;
///
/// let client = SessionClient::connect(server.local_addrs()[0], ClientConfig::new("alice", "tag")).await?;
/// client.send(b"hello").await?;
///
/// let mut message = Vec::new();
/// loop {
///     match server.next_event(&mut message).await {
///         ServerEvent::Connected(new) => assert_eq!(new.username, "alice"),
///         ServerEvent::Message(player) => match server.try_send(player, &message) {
///             Ok(()) => break,
///             // The player's window is full, or it has left: the others are served all the same.
///             Err(error) => println!("{player:?}: {error}"),
///         },
///         _ => {}
///     }
/// }
/// assert_eq!(client.recv().await?, b"hello");
/// # Ok(()) }
/// ```
pub struct SessionServer {
    driver: DriverTask<PolledServer>,
    send_timeout: Duration,
}

impl PolledSession for PolledServer {
    type Interest = ServerInterest<()>;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: ServerInterest<()>) -> bool {
        match interest {
            ServerInterest::Event => self.has_event(),
            ServerInterest::Message(player) => self.connection(player).is_none_or(Connection::is_readable),
            ServerInterest::Room(player, ()) => self.is_writable_or_closed(player),
            ServerInterest::Empty => !self.has_sessions(),
        }
    }
}

impl SessionServer {
    /// Binds the sockets and accepts players from then on. Must be called on a runtime.
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub async fn bind(options: impl Into<ServerOptions>) -> Result<Self, SetupError> {
        let options = options.into();
        let send_timeout = options.send_timeout;
        let server = PolledServer::bind(options)?;
        let local = server.local_addrs().next();
        let driver = server_task::start(server, local)?;
        Ok(Self { driver, send_timeout })
    }

    /// The next event. With [`ServerEvent::Message`], the message is copied into `message`. Cancel safe: it can be used in a
    /// `select!` without losing an event.
    pub async fn next_event(&self, message: &mut Vec<u8>) -> ServerEvent {
        self.driver.wait_for(ServerInterest::Event, |server| server.next_event(message)).await
    }

    /// The next player who logs in. Other events are dropped: messages are read with [`recv`](Self::recv).
    pub async fn accept(&self) -> NewPlayer {
        self.driver.wait_for(ServerInterest::Event, PolledServer::next_player).await
    }

    /// Copies the next message of a player into `message`. Returns false when the player's session has ended and all its
    /// messages are read.
    pub async fn recv(&self, player: PlayerId, message: &mut Vec<u8>) -> bool {
        let attempt = |server: &mut PolledServer| {
            let received = server.recv(player, message);
            (received || !server.is_active(player)).then_some(received)
        };
        self.driver.wait_for(ServerInterest::Message(player), attempt).await
    }

    /// Sends a message to a player, reliably. Waits while the window is full, for
    /// [`send_timeout`](ServerOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If the message is too large or empty, the player does not exist any more, or there was no room in time: then the
    /// message is not sent.
    pub async fn send(&self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        self.driver
            .send(ServerInterest::Room(player, ()), self.send_timeout, |server| server.send(player, message))
            .await
    }

    /// Sends a message to a player, reliably, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the window is full: [`ServerEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        self.driver.command(|server| server.send(player, message))
    }

    /// Ends a player's session: delivers the messages that are left, then sends a disconnect with this reason. Returns false
    /// if the player does not exist. [`ServerEvent::Disconnected`] follows.
    pub fn disconnect(&self, player: PlayerId, reason: &str) -> bool {
        self.driver.command(|server| server.disconnect(player, reason))
    }

    /// All players.
    #[must_use]
    pub fn players(&self) -> Vec<PlayerId> {
        self.driver.with(|server| server.players().collect())
    }

    /// Maximum length of a message to a player in bytes (S33).
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        self.driver.with(|server| server.max_message(player))
    }

    const SHUTDOWN_TIMEOUT: Duration = PolledServer::SHUTDOWN_TIMEOUT;

    async_server_methods!();
}

impl fmt::Debug for SessionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|server| fmt::Debug::fmt(server, f))
    }
}
