//! The async server with channels.

use crate::{
    ChannelMessage, PolledChannelServer, ServerChannels, ServerOptions, SetupError,
    driver_task::{DriverTask, PolledSession},
    server_methods::async_server_methods,
    server_task::{self, ServerInterest},
    socket_driver::DriveState,
};
use rallypoint_session_proto::{ChannelIndex, MessageId, NewPlayer, PlayerId, SendError, ServerEvent};
use rallypoint_udp::UdpSocket;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A [`SessionServer`](crate::SessionServer) whose sessions have channels.
///
/// A task of the runtime drives it; its methods can be called from any task. Either one loop calls
/// [`next_event`](Self::next_event) and replies with [`try_send`](Self::try_send), or every player has a task of its own, with
/// [`accept`](Self::accept), [`recv`](Self::recv) and [`send`](Self::send).
///
/// ```
/// use rallypoint_session::{
///     AsyncChannelClient, AsyncChannelServer, Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable, ClientConfig,
///     EndpointConfig, ServerEvent, ServerOptions,
/// };
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
/// let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 1_000)])?;
/// let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
/// options.listen = vec!["127.0.0.1:0".parse()?];
/// let server = AsyncChannelServer::bind(options, table.clone()).await?;
///
/// let addr = server.local_addrs()[0];
/// let client = AsyncChannelClient::connect(addr, ClientConfig::new("alice", "tag"), table).await?;
/// client.send(CHAT, b"hello").await?;
///
/// let mut message = ChannelMessage::default();
/// while !matches!(server.next_event(&mut message).await, ServerEvent::Message(_)) {}
/// server.broadcast(CHAT, &*message.bytes, |player, error| println!("{player:?}: {error}"));
/// client.recv(&mut message).await?;
/// assert_eq!((message.channel, &*message.bytes), (CHAT, &b"hello"[..]));
/// # Ok(()) }
/// ```
pub struct AsyncChannelServer {
    driver: DriverTask<PolledChannelServer>,
    send_timeout: Duration,
}

impl PolledSession for PolledChannelServer {
    /// Room is that of a channel for a message of this length.
    type Interest = ServerInterest<(ChannelIndex, usize)>;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn drive(&mut self, now: Instant) -> DriveState {
        self.drive(now)
    }

    fn is_ready(&mut self, interest: Self::Interest) -> bool {
        match interest {
            ServerInterest::Event => self.has_event(),
            ServerInterest::Message(player) => self.is_readable(player) || !self.is_active(player),
            ServerInterest::Room(player, (channel, length)) => self.has_room(player, channel, length),
            ServerInterest::Empty => !self.has_sessions(),
        }
    }
}

impl AsyncChannelServer {
    /// Binds the sockets and accepts players from then on. Must be called on a runtime.
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub async fn bind(
        options: impl Into<ServerOptions>,
        channels: impl Into<ServerChannels>,
    ) -> Result<Self, SetupError> {
        let options = options.into();
        let send_timeout = options.send_timeout;
        let server = PolledChannelServer::bind(options, channels)?;
        let local = server.local_addrs().next();
        let driver = server_task::start(server, local)?;
        Ok(Self { driver, send_timeout })
    }

    /// The next event. With [`ServerEvent::Message`], the message is copied into `message`. Cancel safe: it can be used in a
    /// `select!` without losing an event.
    pub async fn next_event(&self, message: &mut ChannelMessage) -> ServerEvent {
        let attempt = |server: &mut PolledChannelServer| {
            let event = server.next_event(message);
            self.wake_for_replies(server);
            event
        };
        self.driver.wait_for(ServerInterest::Event, attempt).await
    }

    /// The next player who is accepted. Other events are dropped: messages are read with [`recv`](Self::recv). For a server
    /// that does not decide on logins itself.
    pub async fn accept(&self) -> NewPlayer {
        self.driver.wait_for(ServerInterest::Event, PolledChannelServer::next_player).await
    }

    /// Copies the next message of a player into `message`. Returns false when the player's session has ended and all its
    /// messages are read.
    pub async fn recv(&self, player: PlayerId, message: &mut ChannelMessage) -> bool {
        let attempt = |server: &mut PolledChannelServer| {
            let received = server.recv(player, message);
            self.wake_for_replies(server);
            (received || !server.is_active(player)).then_some(received)
        };
        self.driver.wait_for(ServerInterest::Message(player), attempt).await
    }

    /// Sends a message to a player on a channel. Waits while the queue of the channel is full, for
    /// [`send_timeout`](ServerOptions::send_timeout) at most.
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or there was no room in time: then the message is not
    /// sent.
    pub async fn send(&self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let room = ServerInterest::Room(player, (channel, message.len()));
        self.driver.send(room, self.send_timeout, |server| server.send(player, channel, message)).await
    }

    /// Sends a message to a player on a channel, or fails at once if there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the queue is full: [`ServerEvent::Writable`] follows when there is room again.
    pub fn try_send(&self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        self.driver.command(|server| server.send(player, channel, message))
    }

    /// Sends a message to all players, which share one copy of it. `refused` is called with each player that it is not sent to,
    /// and the reason; it must not call the server.
    pub fn broadcast(
        &self,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        refused: impl FnMut(PlayerId, SendError),
    ) {
        self.driver.command(|server| server.broadcast(channel, message, refused));
    }

    /// Sends a message to these players, as [`broadcast`](Self::broadcast) does to all.
    pub fn broadcast_to(
        &self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        refused: impl FnMut(PlayerId, SendError),
    ) {
        self.driver.command(|server| server.broadcast_to(players, channel, message, refused));
    }

    /// Sends a message to these players, as [`broadcast_to`](Self::broadcast_to) does. `report` is called with each player and
    /// the ID of its message, which [`ServerEvent::Receipt`] names, or the reason why it is not sent; it must not call the
    /// server.
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

    /// All players who are accepted.
    #[must_use]
    pub fn players(&self) -> Vec<PlayerId> {
        self.driver.with(|server| server.players().collect())
    }

    /// Whether a player has channels; if not, it has only [`ServerChannels::plain_channel`].
    #[must_use]
    pub fn has_channels(&self, player: PlayerId) -> bool {
        self.driver.with(|server| server.has_channels(player))
    }

    const SHUTDOWN_TIMEOUT: Duration = PolledChannelServer::SHUTDOWN_TIMEOUT;

    async_server_methods!();

    /// Receipts and credits of messages that were read are sent now, and not with the next datagram.
    fn wake_for_replies(&self, server: &mut PolledChannelServer) {
        if server.take_has_replies() {
            self.driver.wake();
        }
    }
}

impl fmt::Debug for AsyncChannelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.with(|server| fmt::Debug::fmt(server, f))
    }
}
