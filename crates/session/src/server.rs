//! The async server.

use crate::{
    Client, ClientOptions, ConnectError, DriverPanicked, LinkConditions, PolledServer, ServerEvent, ServerOptions,
    SetupError,
    driver_task::{DriverTask, PolledSession},
    local_link::Wake,
    polled_server::SHUTDOWN_TIMEOUT,
    socket_driver::DriveState,
};
use rallypoint_query_proto::ServerInfo;
use rallypoint_session_proto::{
    ChannelIndex, Connection, ConnectionStats, EndpointStats, MessageId, NewPlayer, PlayerId, SendError,
};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{
    any::Any,
    fmt,
    net::SocketAddr,
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
/// use rallypoint_session::{Client, ClientOptions, ONLY_CHANNEL, Server, ServerEvent};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("tag").listen("127.0.0.1:0".parse()?).bind().await?;
///
/// let client = Client::connect(server.local_addrs()[0], ClientOptions::new("alice", "tag")).await?;
/// client.send(ONLY_CHANNEL, b"hello").await?;
///
/// let mut buffer = Vec::new();
/// loop {
///     match server.next_event(&mut buffer).await? {
///         ServerEvent::Connected(new) => assert_eq!(new.username, "alice"),
///         ServerEvent::Message { player, channel, bytes } => match server.try_send(player, channel, bytes) {
///             Ok(_) => break,
///             // The player's window is full, or it has left: the others are served all the same.
///             Err(error) => println!("{player:?}: {error}"),
///         },
///         _ => {}
///     }
/// }
/// assert_eq!(client.recv(&mut buffer).await?, (ONLY_CHANNEL, &b"hello"[..]));
/// # Ok(()) }
/// ```
pub struct Server {
    driver: DriverTask<PolledServer>,
    send_timeout: Duration,
}

/// The condition that a caller of a server waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ServerInterest {
    /// The next event.
    Event,
    /// A message of this player, or the end of its session.
    Message(PlayerId),
    /// Room on a channel for a message of this length to this player, or the end of its session.
    Room(PlayerId, ChannelIndex, usize),
    /// The end of all sessions.
    Empty,
}

impl PolledSession for PolledServer {
    type Interest = ServerInterest;

    fn sockets(&mut self) -> &[Arc<UdpSocket>] {
        self.driver().sockets()
    }

    fn set_wake(&mut self, wake: Wake) {
        self.driver().set_wake(wake);
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.driver().drive(now)
    }

    fn is_ready(&mut self, interest: ServerInterest) -> bool {
        match interest {
            ServerInterest::Event => self.has_event(),
            ServerInterest::Message(player) => {
                let endpoint = self.driver().machine();
                endpoint.is_readable(player) || !endpoint.is_active(player)
            }
            ServerInterest::Room(player, channel, length) => self.driver().machine().has_room(player, channel, length),
            ServerInterest::Empty => !self.has_sessions(),
        }
    }
}

impl Server {
    /// The options of a server for this game, to be completed and bound.
    #[must_use]
    pub fn builder(game: &str) -> ServerOptions {
        ServerOptions::new(game)
    }

    /// Binds the sockets and accepts players from then on. Must be called on a runtime.
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub async fn bind(options: impl Into<ServerOptions>) -> Result<Self, SetupError> {
        let options = options.into();
        let send_timeout = options.send_timeout;
        let server = PolledServer::bind(options)?;
        // There is always a socket.
        let local = server.local_addrs().first().copied().unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let driver = DriverTask::start(server).map_err(|error| BindError::new(SocketKind::Udp, local, error))?;
        Ok(Self { driver, send_timeout })
    }

    /// A client in this process, as [`PolledServer::connect_local`] makes it.
    ///
    /// # Errors
    /// If an option is invalid, or the server refuses the login.
    pub async fn connect_local(&self, options: impl Into<ClientOptions>) -> Result<Client, ConnectError> {
        let options = options.into();
        let send_timeout = options.send_timeout;
        let client = self.driver.command(|server| server.connect_local(options))?;
        Client::start(client, send_timeout).await
    }

    /// The next event. A message is copied into `buffer`, which the event borrows. Cancel safe: it can be used in a `select!`
    /// without losing an event.
    ///
    /// # Errors
    /// If the task that drives the server has panicked.
    pub async fn next_event<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<ServerEvent<'a>, DriverPanicked> {
        let attempt = |server: &mut PolledServer| {
            let next = server.take_event(buffer);
            self.wake_for_replies(server);
            next
        };
        let (notice, channel) = self.driver.wait_for(ServerInterest::Event, attempt).await?;
        Ok(ServerEvent::new(notice, channel, buffer))
    }

    /// The next player who has logged in. Other events are dropped: messages are read with [`recv`](Self::recv). For a server
    /// that does not decide on logins itself.
    ///
    /// # Errors
    /// If the task that drives the server has panicked.
    pub async fn accept(&self) -> Result<NewPlayer, DriverPanicked> {
        self.driver.wait_for(ServerInterest::Event, PolledServer::next_player).await
    }

    /// The next message of a player, copied into `buffer`, and its channel. `None` when the player's session has ended and all
    /// its messages are read.
    ///
    /// # Errors
    /// If the task that drives the server has panicked.
    pub async fn recv<'a>(
        &self,
        player: PlayerId,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<(ChannelIndex, &'a [u8])>, DriverPanicked> {
        let attempt = |server: &mut PolledServer| {
            let received = server.recv(player).map(|(channel, bytes)| {
                buffer.clear();
                buffer.extend_from_slice(bytes);
                channel
            });
            self.wake_for_replies(server);
            (received.is_some() || !server.driver().machine().is_active(player)).then_some(received)
        };
        let received = self.driver.wait_for(ServerInterest::Message(player), attempt).await?;
        Ok(received.map(|channel| (channel, &**buffer)))
    }

    /// Sends a message to a player on a channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) if the session has no others. Waits while
    /// there is no room, for [`send_timeout`](ServerOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or there was no room in time: then the message is not
    /// sent.
    pub async fn send(&self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let room = ServerInterest::Room(player, channel, message.len());
        self.driver.send(room, self.send_timeout, |server| server.send(player, channel, message)).await
    }

    /// Sends a message to a player on a channel, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if there is no room: [`ServerEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        self.driver.command(|server| server.send(player, channel, message))
    }

    /// Sends a message to all players, which share one copy of it. Returns the number of players that it is sent to: those whose
    /// queue is full miss it.
    pub fn broadcast(&self, channel: ChannelIndex, message: impl Into<Arc<[u8]>>) -> usize {
        self.driver.command(|server| server.broadcast(channel, message))
    }

    /// Sends a message to all players but this one, as [`broadcast`](Self::broadcast) does to all.
    pub fn broadcast_except(&self, except: PlayerId, channel: ChannelIndex, message: impl Into<Arc<[u8]>>) -> usize {
        self.driver.command(|server| server.broadcast_except(except, channel, message))
    }

    /// Sends a message to these players, as [`broadcast`](Self::broadcast) does to all.
    pub fn broadcast_to(
        &self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
    ) -> usize {
        self.driver.command(|server| server.broadcast_to(players, channel, message))
    }

    /// Sends a message to these players. `report` is called with each player and the ID of its message, which
    /// [`ServerEvent::Receipt`] names, or the reason why it is not sent; it must not call the server.
    pub fn broadcast_with(
        &self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        report: impl FnMut(PlayerId, Result<MessageId, SendError>),
    ) {
        self.driver.command(|server| server.broadcast_with(players, channel, message, report));
    }

    /// Accepts a player after [`ServerEvent::LoginRequest`]; [`disconnect`](Self::disconnect) refuses it, with a reason.
    /// Returns false if there is no such request.
    pub fn accept_login(&self, player: PlayerId) -> bool {
        self.driver.command(|server| server.accept_login(player))
    }

    /// Ends a player's session: sends the messages that are left, then a disconnect with this reason. Returns false if the
    /// player does not exist. [`ServerEvent::Disconnected`] follows.
    pub fn disconnect(&self, player: PlayerId, reason: &str) -> bool {
        self.driver.command(|server| server.disconnect(player, reason))
    }

    /// Ends all sessions, also of players who are not accepted yet, as [`disconnect`](Self::disconnect) does one.
    pub fn disconnect_all(&self, reason: &str) {
        self.driver.command(|server| server.disconnect_all(reason));
    }

    /// Disconnects all players with this reason, and waits until that is done, for a few seconds at most.
    pub async fn shutdown(self, reason: &str) {
        self.disconnect_all(reason);
        let is_empty = self.driver.wait_for(ServerInterest::Empty, |server| (!server.has_sessions()).then_some(()));
        // Queues are sent first; and a player may log in only now. So this may time out.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, is_empty).await;
        self.driver.stop().await;
    }

    /// All players who are accepted.
    #[must_use]
    pub fn players(&self) -> Vec<PlayerId> {
        self.driver.with(|server| server.players())
    }

    /// Whether a player has channels; if not on a server that has them, it has only
    /// [`EndpointConfig::plain_channel`](crate::EndpointConfig::plain_channel).
    #[must_use]
    pub fn has_channels(&self, player: PlayerId) -> bool {
        self.driver.with(|server| server.has_channels(player))
    }

    /// Maximum length of a message to a player in bytes (S33); with channels, whose table limits it, of a message that fits into
    /// a datagram.
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        self.driver.with(|server| server.max_message(player))
    }

    /// Attaches a value to a player: [`PolledServer::set_data`].
    pub fn set_data<T: Any + Send>(&self, player: PlayerId, value: T) -> bool {
        self.driver.with(|server| server.set_data(player, value))
    }

    /// Calls a function with the value that is attached to a player, if it is of this type. It must not call the server.
    pub fn with_data<T: Any, R>(&self, player: PlayerId, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.driver.with(|server| server.data_mut(player).map(change))
    }

    /// Current round-trip time, loss and throughput of a player's connection.
    #[must_use]
    pub fn stats(&self, player: PlayerId) -> Option<ConnectionStats> {
        self.with_connection(player, Connection::stats)
    }

    /// Calls a function with a player's connection, if there is one: address, encryption, statistics. It must not call the
    /// server.
    pub fn with_connection<R>(&self, player: PlayerId, read: impl FnOnce(&Connection) -> R) -> Option<R> {
        self.driver.with(|server| server.with_connection(player, read))
    }

    /// The current address of a player. A player can claim the address of another host, so use
    /// [`validated_addr`](Self::validated_addr) for anything with consequences for an address.
    #[must_use]
    pub fn peer_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.with_connection(player, Connection::peer)
    }

    /// The last validated address of a player: at first that of the login (S31).
    #[must_use]
    pub fn validated_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.with_connection(player, Connection::validated_peer)
    }

    /// Whether a player's messages are encrypted.
    #[must_use]
    pub fn is_encrypted(&self, player: PlayerId) -> Option<bool> {
        self.with_connection(player, Connection::is_encrypted)
    }

    /// Counters of the whole server.
    #[must_use]
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.driver.with(|server| server.endpoint_stats())
    }

    /// Sets the description that queries are answered with.
    pub fn set_info(&self, info: &ServerInfo) {
        self.driver.with(|server| server.set_info(info));
    }

    /// The addresses that the server listens on, with the actual ports.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.driver.with(|server| server.local_addrs())
    }

    /// Starts to simulate a bad network, or stops.
    pub fn set_link_conditions(&self, conditions: Option<LinkConditions>) {
        self.driver.command(|server| server.set_link_conditions(conditions));
    }

    /// Receipts and credits of messages that were read are sent now, and not with the next datagram.
    fn wake_for_replies(&self, server: &mut PolledServer) {
        if server.driver().machine_mut().take_has_replies() {
            self.driver.wake();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|server| fmt::Debug::fmt(server, f))
    }
}
