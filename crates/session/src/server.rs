//! The async server.

use crate::{
    LinkConditions, PolledServer, ServerOptions, SetupError,
    driver_task::{DriverTask, PolledSession},
    socket_driver::DriveState,
};
use rallypoint_query_proto::ServerInfo;
use rallypoint_session_proto::{
    Connection, ConnectionStats, EndpointStats, NewPlayer, PlayerId, SendError, ServerEvent,
};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum duration of a shutdown: messages are delivered for 2 s, and then three disconnects are sent (S28).
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(2_500);

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

/// What a caller waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ServerInterest {
    /// The next event.
    Event,
    /// A message of this player, or the end of its session.
    Message(PlayerId),
    /// Room in the send window of this player, or the end of its session.
    Room(PlayerId),
    /// The end of all sessions.
    Empty,
}

impl PolledSession for PolledServer {
    type Interest = ServerInterest;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: ServerInterest) -> bool {
        match interest {
            ServerInterest::Event => self.has_event(),
            ServerInterest::Message(player) => self.connection(player).is_none_or(Connection::is_readable),
            ServerInterest::Room(player) => self.is_writable_or_closed(player),
            ServerInterest::Empty => self.players().next().is_none(),
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
        // There is always a socket.
        let addr = server.local_addrs().next().unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let driver = DriverTask::start(server).map_err(|error| BindError::new(SocketKind::Udp, addr, error))?;
        Ok(Self { driver, send_timeout })
    }

    /// The next event. With [`ServerEvent::Message`], the message is copied into `message`. Cancel safe: it can be used in a
    /// `select!` without losing an event.
    pub async fn next_event(&self, message: &mut Vec<u8>) -> ServerEvent {
        self.driver.wait_for(ServerInterest::Event, |server| server.next_event(message)).await
    }

    /// The next player who logs in. Other events are dropped: messages are read with [`recv`](Self::recv).
    pub async fn accept(&self) -> NewPlayer {
        let attempt = |server: &mut PolledServer| {
            while server.has_event() {
                if let Some(ServerEvent::Connected(new)) = server.next_event_without_messages() {
                    return Some(new);
                }
            }
            None
        };
        self.driver.wait_for(ServerInterest::Event, attempt).await
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
        let attempt = |server: &mut PolledServer| match server.send(player, message) {
            Err(SendError::WouldBlock) => None,
            result => Some(result),
        };
        let sent = self.driver.wait_for(ServerInterest::Room(player), attempt);
        let sent = tokio::time::timeout(self.send_timeout, sent).await.unwrap_or(Err(SendError::TimedOut));
        self.driver.wake();
        sent
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

    /// Disconnects all players with this reason, and waits until that is done, for little more than 2 s at most.
    pub async fn shutdown(self, reason: &str) {
        self.driver.command(|server| {
            let players: Vec<_> = server.players().collect();
            for player in players {
                server.disconnect(player, reason);
            }
        });
        let is_empty =
            self.driver.wait_for(ServerInterest::Empty, |server| server.players().next().is_none().then_some(()));
        // A player may log in only now, so this may time out.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, is_empty).await;
        self.driver.stop().await;
    }

    /// All players.
    #[must_use]
    pub fn players(&self) -> Vec<PlayerId> {
        self.driver.with(|server| server.players().collect())
    }

    /// Current round-trip time, loss and throughput of a player's connection.
    #[must_use]
    pub fn stats(&self, player: PlayerId) -> Option<ConnectionStats> {
        self.driver.with(|server| server.stats(player))
    }

    /// The current address of a player. A player can claim the address of another host, so use
    /// [`validated_addr`](Self::validated_addr) for anything with consequences for an address.
    #[must_use]
    pub fn peer_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.driver.with(|server| Some(server.connection(player)?.peer()))
    }

    /// The last validated address of a player, which is at least that of the login (S31).
    #[must_use]
    pub fn validated_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.driver.with(|server| Some(server.connection(player)?.validated_peer()))
    }

    /// Whether a player's messages are encrypted.
    #[must_use]
    pub fn is_encrypted(&self, player: PlayerId) -> Option<bool> {
        self.driver.with(|server| Some(server.connection(player)?.is_encrypted()))
    }

    /// Maximum length of a message to a player in bytes (S33).
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        self.driver.with(|server| server.max_message(player))
    }

    /// Counters of the whole server.
    #[must_use]
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.driver.with(|server| server.endpoint_stats())
    }

    /// Sets what queries are answered with.
    pub fn set_info(&self, info: &ServerInfo) {
        self.driver.with(|server| server.set_info(info));
    }

    /// The addresses that the server listens on, with the actual ports.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.driver.with(|server| server.local_addrs().collect())
    }

    /// Simulates a bad network from now on, or no longer.
    pub fn set_link_conditions(&self, conditions: Option<LinkConditions>) {
        self.driver.command(|server| server.set_link_conditions(conditions));
    }
}

impl fmt::Debug for SessionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|server| fmt::Debug::fmt(server, f))
    }
}
