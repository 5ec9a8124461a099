//! The server with channels, for game loops: one call per frame, no thread, no runtime.

use crate::{
    ChannelMessage, ServerChannels, ServerOptions, SetupError,
    channel_options::check_stream,
    entropy_refresh::secret_bytes,
    server_methods::polled_server_methods,
    socket_driver::{self, DriveState, SocketDriver},
};
use rallypoint_session_proto::{
    ChannelIndex, ChannelServer, ChannelServerConfig, MessageId, PlayerId, SendError, ServerEvent,
};
use rallypoint_udp::clock;
use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A [`PolledServer`](crate::PolledServer) whose sessions have channels: call [`poll`](Self::poll) once per frame; nothing happens
/// in between.
///
/// ```
/// use rallypoint_session::{
///     Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable, EndpointConfig, PolledChannelServer, ServerEvent,
///     ServerOptions,
/// };
///
/// const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
/// let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 1_000)])?;
/// let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
/// options.listen = vec!["127.0.0.1:0".parse()?];
/// let mut server = PolledChannelServer::bind(options, table)?;
/// let mut message = ChannelMessage::default();
/// # let mut frames = 0..3;
/// # while frames.next().is_some() {
/// // Once per frame:
/// server.poll();
/// while let Some(event) = server.next_event(&mut message) {
///     if let ServerEvent::Message(_) = event {
///         // A player whose queue is full misses this message.
///         server.broadcast(CHAT, &*message.bytes, |_player, _error| {});
///     }
/// }
/// server.flush();
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolledChannelServer {
    driver: SocketDriver<ChannelServer>,
    /// Players with messages to read, each once; they are read in turn.
    readable: VecDeque<PlayerId>,
    /// Events that are polled already.
    events: VecDeque<ServerEvent>,
}

impl PolledChannelServer {
    /// Binds the sockets and accepts players from then on.
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub fn bind(options: impl Into<ServerOptions>, channels: impl Into<ServerChannels>) -> Result<Self, SetupError> {
        let options = options.into();
        let channels = channels.into();
        check_stream(options.stream)?;
        options.validate()?;
        let sockets = socket_driver::listen(&options.listen, options.receive_buffer)?;
        let now = clock::now();
        let tokens = channels.verifier(now);
        let ServerChannels { table, decides_logins, plain_channel, .. } = channels;
        let config =
            ChannelServerConfig { endpoint: options.endpoint, channels: table, tokens, decides_logins, plain_channel };
        let server = ChannelServer::new(now, config, *secret_bytes()?)?;
        Ok(Self {
            driver: SocketDriver::new(server, sockets, options.link_conditions),
            readable: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// Sends the messages passed to [`send`](Self::send) since [`poll`](Self::poll), as far as the network admits them. Call it
    /// at the end of a frame, so that they are sent now and not with the next frame.
    pub fn flush(&mut self) {
        self.driver.transmit(clock::now());
    }

    /// Copies the next message of one player into `message`. Returns false if there is none. For a server that reads its
    /// players one by one and does not call [`next_event`](Self::next_event).
    pub fn recv(&mut self, player: PlayerId, message: &mut ChannelMessage) -> bool {
        let now = self.driver.last_driven();
        message.copy(self.driver.machine_mut().recv(now, player))
    }

    /// Sends a message to a player on a channel. It leaves with the next [`flush`](Self::flush) or [`poll`](Self::poll).
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or the queue of the channel is full:
    /// [`ServerEvent::Writable`] follows when there is room again.
    pub fn send(&mut self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let now = self.send_time(channel);
        self.driver.machine_mut().send(now, player, channel, message)
    }

    /// Sends a message to all players, which share one copy of it. `refused` is called with each player that it is not sent to,
    /// and the reason.
    pub fn broadcast(
        &mut self,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        refused: impl FnMut(PlayerId, SendError),
    ) {
        let players: Vec<PlayerId> = self.players().collect();
        self.broadcast_to(players, channel, message, refused);
    }

    /// Sends a message to these players, as [`broadcast`](Self::broadcast) does to all.
    pub fn broadcast_to(
        &mut self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        refused: impl FnMut(PlayerId, SendError),
    ) {
        let now = self.send_time(channel);
        self.driver.machine_mut().broadcast(now, players, channel, message, refused);
    }

    /// Sends a message to these players, as [`broadcast_to`](Self::broadcast_to) does. `report` is called with each player and
    /// the ID of its message, which [`ServerEvent::Receipt`] names, or the reason why it is not sent.
    pub fn broadcast_with(
        &mut self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        report: impl FnMut(PlayerId, Result<MessageId, SendError>),
    ) {
        let now = self.send_time(channel);
        self.driver.machine_mut().broadcast_with(now, players, channel, message, report);
    }

    /// Accepts a player after [`ServerEvent::LoginRequest`]; [`disconnect`](Self::disconnect) refuses it, with a reason.
    /// Returns false if there is no such request.
    pub fn accept_login(&mut self, player: PlayerId) -> bool {
        self.driver.machine_mut().accept_login(clock::now(), player)
    }

    /// Ends a player's session: sends the messages that are left, then a disconnect with this reason. Returns false if the
    /// player does not exist. [`ServerEvent::Disconnected`] follows.
    pub fn disconnect(&mut self, player: PlayerId, reason: &str) -> bool {
        self.driver.machine_mut().disconnect(clock::now(), player, reason)
    }

    /// Ends all sessions, also of players who are not accepted yet, as [`disconnect`](Self::disconnect) does one.
    pub fn disconnect_all(&mut self, reason: &str) {
        self.driver.machine_mut().disconnect_all(clock::now(), reason);
    }

    /// All players who are accepted.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.server().players()
    }

    /// Whether a player has channels; if not, it has only [`ServerChannels::plain_channel`].
    #[must_use]
    pub fn has_channels(&self, player: PlayerId) -> bool {
        self.server().has_channels(player)
    }

    /// The queues of the channels are sent first; then the session ends as one without channels does.
    pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

    polled_server_methods!(ChannelMessage);
}

impl PolledChannelServer {
    pub(crate) fn drive(&mut self, now: Instant) -> DriveState {
        self.driver.drive(now)
    }

    /// Whether [`next_event`](Self::next_event) may have something.
    pub(crate) fn has_event(&mut self) -> bool {
        while self.events.is_empty()
            && let Some(event) = self.driver.poll_event()
        {
            match event {
                // The messages are read in turn, after the other events.
                ServerEvent::Message(player) if self.readable.contains(&player) => {}
                ServerEvent::Message(player) => self.readable.push_back(player),
                event => self.events.push_back(event),
            }
        }
        !self.events.is_empty() || !self.readable.is_empty()
    }

    /// Whether there are players, accepted or not.
    pub(crate) fn has_sessions(&self) -> bool {
        self.server().has_sessions()
    }

    fn send_time(&self, channel: ChannelIndex) -> Instant {
        self.driver.send_time(self.server().is_expiring(channel))
    }

    fn server(&self) -> &ChannelServer {
        self.driver.machine()
    }
}

/// For the driver task.
#[cfg(feature = "async")]
impl PolledChannelServer {
    pub(crate) fn sockets(&self) -> &[Arc<rallypoint_udp::UdpSocket>] {
        self.driver.sockets()
    }

    /// Whether a player has a session, or messages of it that can be read after its end.
    pub(crate) fn is_active(&self, player: PlayerId) -> bool {
        self.server().is_active(player)
    }

    pub(crate) fn is_readable(&self, player: PlayerId) -> bool {
        self.server().is_readable(player)
    }

    /// Whether receipts or credits of messages that were read have to be sent. Reported once.
    pub(crate) fn take_has_replies(&mut self) -> bool {
        self.driver.machine_mut().take_has_replies()
    }

    pub(crate) fn has_room(&self, player: PlayerId, channel: ChannelIndex, length: usize) -> bool {
        self.server().has_room(player, channel, length)
    }
}

impl fmt::Debug for PolledChannelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.server(), f)
    }
}
