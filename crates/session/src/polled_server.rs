//! The server for game loops: one call per frame, no thread, no runtime.

use crate::{
    ClientOptions, PolledClient, ServerEvent, ServerOptions, SetupError,
    entropy_refresh::secret_bytes,
    local_link::LocalLink,
    player_data::PlayerData,
    socket_driver::{self, SocketDriver},
};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{ServerInfo, SessionReplies};
use rallypoint_session_proto::{
    ChannelIndex, Connection, ConnectionStats, Endpoint, EndpointStats, MessageId, PlayerId, QueryReplies, SendError,
    ServerEvent as ServerNotice,
};
use rallypoint_udp::clock;
use std::{
    any::Any,
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Messages are delivered first: those of sessions without channels within 2 s, and then three disconnects are sent (S28); the
/// queues of channels may take longer.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A server for game loops: call [`poll`](Self::poll) once per frame; nothing happens in between.
///
/// ```
/// use rallypoint_session::{Channel, ChannelIndex, ChannelMode, ChannelTable, PolledServer, ServerEvent, ServerOptions};
///
/// const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
/// let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 1_000)])?;
/// let options = ServerOptions::new("tag").listen("127.0.0.1:0".parse()?).channels(table);
/// let mut server = PolledServer::bind(options)?;
/// # let mut frames = 0..3;
/// # while frames.next().is_some() {
/// // Once per frame:
/// server.poll();
/// while let Some(event) = server.next_event() {
///     match event {
///         ServerEvent::Connected(new) => println!("hello {:?}", new.username),
///         ServerEvent::Message { player, bytes, .. } => {
///             let line = bytes.to_vec();
///             // A player whose queue is full misses this message, and holds up no other.
///             server.broadcast_except(player, CHAT, line);
///         }
///         _ => {}
///     }
/// }
/// server.flush();
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolledServer {
    driver: SocketDriver<Endpoint>,
    /// The message that was handed out last.
    buffer: Vec<u8>,
    data: PlayerData,
    /// Number of clients in this process so far.
    local_clients: u16,
}

impl PolledServer {
    /// Binds the sockets and accepts players from then on.
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub fn bind(options: impl Into<ServerOptions>) -> Result<Self, SetupError> {
        let options = options.into();
        options.validate()?;
        let listen: &[SocketAddr] = if options.local_only { &[] } else { &options.listen };
        let sockets = socket_driver::listen(listen, options.receive_buffer)?;
        let endpoint = Endpoint::new(options.endpoint, *secret_bytes()?)?;
        Ok(Self {
            driver: SocketDriver::new(endpoint, sockets, options.link_conditions),
            buffer: Vec::new(),
            data: PlayerData::default(),
            local_clients: 0,
        })
    }

    /// A client in this process, for a player of the program that hosts the game, and for single player
    /// ([`ServerOptions::local_only`]): without a socket, with the same API. It logs in as every client does, and may do without
    /// encryption.
    ///
    /// ```
    /// use rallypoint_session::{ClientOptions, Encryption, ServerOptions};
    ///
    /// let mut server = ServerOptions::new("tag").local_only().bind_polled()?;
    /// let mut client = server.connect_local(ClientOptions::new("alice", "tag").encryption(Encryption::Plain))?;
    /// while !client.is_connected() {
    ///     client.poll();
    ///     server.poll();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If an option is invalid.
    pub fn connect_local(&mut self, options: impl Into<ClientOptions>) -> Result<PolledClient, SetupError> {
        self.local_clients = self.local_clients.wrapping_add(1);
        let (link, link_of_client) = LocalLink::pair(self.local_clients);
        let client = PolledClient::connect_link(link_of_client, options.into())?;
        self.driver.add_link(link);
        Ok(client)
    }

    /// Receives datagrams, handles expired timers, and sends what is due. Call it once per frame.
    pub fn poll(&mut self) {
        let now = self.driver.begin_frame();
        self.driver.drive(now);
    }

    /// Sends the messages passed to [`send`](Self::send) since [`poll`](Self::poll), as far as the network admits them. Call it
    /// at the end of a frame, so that they are sent now and not with the next frame.
    pub fn flush(&mut self) {
        self.driver.transmit(clock::now());
    }

    /// Waits until a datagram arrives, a timer expires, or `timeout` has passed. For loops without frames.
    pub fn wait(&mut self, timeout: Duration) {
        self.driver.wait(timeout);
    }

    /// The next event. A message is lent until the next call. Players with several messages take turns.
    pub fn next_event(&mut self) -> Option<ServerEvent<'_>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let next = self.take_event(&mut buffer);
        self.buffer = buffer;
        let (notice, channel) = next?;
        Some(ServerEvent::new(notice, channel, &self.buffer))
    }

    /// The next message of one player, and its channel. It is lent until the next call. For a server that reads its players one
    /// by one and does not call [`next_event`](Self::next_event). Messages can be read after the end of a session as well, until
    /// [`ServerEvent::Disconnected`] is raised.
    pub fn recv(&mut self, player: PlayerId) -> Option<(ChannelIndex, &[u8])> {
        self.driver.machine_mut().recv(player)
    }

    /// Sends a message to a player on a channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) if the session has no others. It leaves
    /// with the next [`flush`](Self::flush) or [`poll`](Self::poll). The ID is for receipts, which only channels can have.
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or there is no room: [`ServerEvent::Writable`] follows
    /// when there is room again.
    #[inline]
    pub fn send(&mut self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let now = self.send_time(channel);
        self.driver.machine_mut().send(now, player, channel, message)
    }

    /// Sends a message to all players, which share one copy of it. Returns the number of players that it is sent to: those whose
    /// queue is full miss it.
    pub fn broadcast(&mut self, channel: ChannelIndex, message: impl Into<Arc<[u8]>>) -> usize {
        self.broadcast_to(self.players(), channel, message)
    }

    /// Sends a message to all players but this one, as [`broadcast`](Self::broadcast) does to all.
    pub fn broadcast_except(
        &mut self,
        except: PlayerId,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
    ) -> usize {
        let players = self.players().into_iter().filter(|player| *player != except);
        self.broadcast_to(players, channel, message)
    }

    /// Sends a message to these players, as [`broadcast`](Self::broadcast) does to all.
    pub fn broadcast_to(
        &mut self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
    ) -> usize {
        let mut sent = 0;
        self.broadcast_with(players, channel, message, |_, result| sent += usize::from(result.is_ok()));
        sent
    }

    /// Sends a message to these players. `report` is called with each player and the ID of its message, which
    /// [`ServerEvent::Receipt`] names, or the reason why it is not sent.
    pub fn broadcast_with(
        &mut self,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        report: impl FnMut(PlayerId, Result<MessageId, SendError>),
    ) {
        let now = self.send_time(channel);
        self.driver.machine_mut().broadcast(now, players, channel, message, report);
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

    /// Disconnects all players with this reason, and returns when that is done, after a few seconds at most. For the end of a
    /// program: a game loop that goes on calls [`disconnect_all`](Self::disconnect_all), and then [`poll`](Self::poll).
    pub fn shutdown(mut self, reason: &str) {
        self.disconnect_all(reason);
        let deadline = clock::now() + SHUTDOWN_TIMEOUT;
        loop {
            self.poll();
            // Events are read and dropped: unread ones would keep the sessions of players who have left.
            while self.driver.machine_mut().poll_event().is_some() {}
            let left = deadline.saturating_duration_since(clock::now());
            // Queues are sent first; and a player may log in only now. So this may time out.
            if !self.has_sessions() || left.is_zero() {
                return;
            }
            self.wait(left);
        }
    }

    /// All players who are accepted.
    #[must_use]
    pub fn players(&self) -> Vec<PlayerId> {
        self.machine().players().collect()
    }

    /// Whether a player has channels; if not on a server that has them, it has only
    /// [`EndpointConfig::plain_channel`](crate::EndpointConfig::plain_channel).
    #[must_use]
    pub fn has_channels(&self, player: PlayerId) -> bool {
        self.machine().has_channels(player)
    }

    /// Maximum length of a message to a player in bytes (S33); with channels, whose table limits it, of a message that fits into
    /// a datagram.
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        self.machine().max_message(player)
    }

    /// Attaches a value to a player, in place of the previous one. It is dropped by the call of [`next_event`](Self::next_event)
    /// after the one that raised the end of the player's session. Returns false if the player has no session.
    pub fn set_data<T: Any + Send>(&mut self, player: PlayerId, value: T) -> bool {
        let machine = self.driver.machine();
        let is_live = |player| machine.connection(player).is_some();
        if is_live(player) {
            self.data.set(player, Box::new(value), is_live);
        }
        is_live(player)
    }

    /// The value that is attached to a player, if it is of this type.
    #[must_use]
    pub fn data<T: Any>(&self, player: PlayerId) -> Option<&T> {
        self.data.get(player)
    }

    /// The value that is attached to a player, if it is of this type.
    pub fn data_mut<T: Any>(&mut self, player: PlayerId) -> Option<&mut T> {
        self.data.get_mut(player)
    }

    /// Current round-trip time, loss and throughput of a player's connection.
    #[must_use]
    pub fn stats(&self, player: PlayerId) -> Option<ConnectionStats> {
        self.connection(player).map(Connection::stats)
    }

    /// A player's connection: address, encryption, statistics.
    #[must_use]
    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        self.machine().connection(player)
    }

    /// Calls a function with a player's connection, if there is one. The async server has the same call.
    pub fn with_connection<R>(&self, player: PlayerId, read: impl FnOnce(&Connection) -> R) -> Option<R> {
        self.connection(player).map(read)
    }

    /// The current address of a player. A player can claim the address of another host, so use
    /// [`validated_addr`](Self::validated_addr) for anything with consequences for an address.
    #[must_use]
    pub fn peer_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.connection(player).map(Connection::peer)
    }

    /// The last validated address of a player: at first that of the login (S31).
    #[must_use]
    pub fn validated_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.connection(player).map(Connection::validated_peer)
    }

    /// Whether a player's messages are encrypted.
    #[must_use]
    pub fn is_encrypted(&self, player: PlayerId) -> Option<bool> {
        self.connection(player).map(Connection::is_encrypted)
    }

    /// Counters of the whole server.
    #[must_use]
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.machine().stats()
    }

    /// Sets the description that queries are answered with.
    pub fn set_info(&mut self, info: &ServerInfo) {
        let SessionReplies { infos, players } = SessionReplies::new(info);
        self.driver.machine_mut().set_query_replies(QueryReplies::new(infos, players));
    }

    /// The addresses that the server listens on, with the actual ports.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.driver.local_addrs().collect()
    }

    /// Starts to simulate a bad network, or stops.
    pub fn set_link_conditions(&mut self, conditions: Option<crate::LinkConditions>) {
        self.driver.set_link_conditions(conditions);
    }

    /// Takes the next event; a message is copied into `buffer`, and was received on this channel.
    pub(crate) fn take_event(&mut self, buffer: &mut Vec<u8>) -> Option<(ServerNotice, ChannelIndex)> {
        self.data.on_next();
        let next = self.driver.machine_mut().next_event(buffer)?;
        if let ServerNotice::Disconnected(player, _) = next.0 {
            self.data.on_end(player);
        }
        Some(next)
    }

    /// Whether [`next_event`](Self::next_event) may have something: a message may turn out to be incomplete.
    #[cfg(feature = "async")]
    pub(crate) fn has_event(&self) -> bool {
        self.machine().has_events()
    }

    /// Whether there are players, accepted or not.
    pub(crate) fn has_sessions(&self) -> bool {
        self.machine().has_sessions()
    }

    /// The time of a message: only for one that expires it has to be exact.
    #[inline]
    fn send_time(&self, channel: ChannelIndex) -> Instant {
        self.driver.send_time(self.machine().is_expiring(channel))
    }

    fn machine(&self) -> &Endpoint {
        self.driver.machine()
    }
}

/// For the driver task.
#[cfg(feature = "async")]
impl PolledServer {
    pub(crate) fn driver(&mut self) -> &mut SocketDriver<Endpoint> {
        &mut self.driver
    }

    /// The next player who has logged in. Other events are dropped, for callers that read messages player by player.
    pub(crate) fn next_player(&mut self) -> Option<crate::NewPlayer> {
        loop {
            match self.driver.machine_mut().poll_event()? {
                ServerNotice::Connected(new) => return Some(new),
                ServerNotice::Disconnected(player, _) => self.data.on_end(player),
                _ => {}
            }
        }
    }
}

impl fmt::Debug for PolledServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.machine(), f)
    }
}
