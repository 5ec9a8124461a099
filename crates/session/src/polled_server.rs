//! The server for game loops: one call per frame, no thread, no runtime.

use crate::{
    ServerOptions, SetupError,
    entropy_refresh::secret_bytes,
    player_streams::PlayerStreams,
    polled_client::copy_message,
    server_methods::polled_server_methods,
    socket_driver::{self, DriveState, SocketDriver},
};
use rallypoint_session_proto::{Connection, DisconnectReason, Endpoint, PlayerId, SendError, ServerEvent};
use rallypoint_udp::clock;
use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

/// A server for game loops: call [`poll`](Self::poll) once per frame; nothing happens in between.
///
/// ```
/// use rallypoint_session::{EndpointConfig, PolledServer, ServerEvent, ServerOptions};
///
/// let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
/// options.listen = vec!["127.0.0.1:0".parse()?];
/// let mut server = PolledServer::bind(options)?;
/// let mut message = Vec::new();
/// # let mut frames = 0..3;
/// # while frames.next().is_some() {
/// // Once per frame:
/// server.poll();
/// while let Some(event) = server.next_event(&mut message) {
///     match event {
///         ServerEvent::Connected(new) => println!("hello {:?}", new.username),
///         ServerEvent::Message(player) => {
///             // A player whose window is full misses this message, and holds up no other.
///             if let Err(error) = server.send(player, &message) {
///                 println!("{player:?}: {error}");
///             }
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
    /// Players with messages to read, each once; they are read in turn.
    readable: VecDeque<PlayerId>,
    /// Maximum length of a stream message, if streams are used.
    max_stream_message: Option<usize>,
    /// What ends the game of a login (W118).
    game_suffix: &'static str,
    streams: PlayerStreams,
    /// Players whose streams have something to send, each once.
    unflushed: Vec<PlayerId>,
    /// Events that are polled already.
    events: VecDeque<ServerEvent>,
}

impl PolledServer {
    /// Binds the sockets and accepts players from then on.
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub fn bind(options: impl Into<ServerOptions>) -> Result<Self, SetupError> {
        let mut options = options.into();
        options.validate()?;
        let game_suffix = options.game_suffix();
        options.endpoint.games.iter_mut().for_each(|game| game.push_str(game_suffix));
        let sockets = socket_driver::listen(&options.listen, options.receive_buffer)?;
        let endpoint = Endpoint::new(options.endpoint, *secret_bytes()?)?;
        Ok(Self {
            driver: SocketDriver::new(endpoint, sockets, options.link_conditions),
            readable: VecDeque::new(),
            max_stream_message: options.stream,
            game_suffix,
            streams: PlayerStreams::default(),
            unflushed: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// Sends the messages passed to [`send`](Self::send) since [`poll`](Self::poll). Call it at the end of a frame, so that
    /// they are sent now and not with the next frame.
    pub fn flush(&mut self) {
        let now = clock::now();
        self.flush_streams(now);
        self.driver.transmit(now);
    }

    /// Copies the next message of one player into `message`. Returns false if there is none. For a server that reads its
    /// players one by one and does not call [`next_event`](Self::next_event). Messages can be read after the end of a session
    /// as well, until [`ServerEvent::Disconnected`] is raised.
    pub fn recv(&mut self, player: PlayerId, message: &mut Vec<u8>) -> bool {
        let endpoint = self.driver.machine_mut();
        let Some(max) = self.max_stream_message else { return copy_message(endpoint.recv(player), message) };
        let is_live = endpoint.connection(player).is_some();
        if !is_live && !endpoint.is_readable(player) && !self.streams.contains(player) {
            return false;
        }
        let stream = self.streams.get_or_insert(player, is_live, max);
        match stream.read(message, |reader| endpoint.recv(player).map(|part| reader.push(part))) {
            Ok(true) => true,
            Ok(false) => {
                self.events.extend(self.streams.take_end(player).map(|why| ServerEvent::Disconnected(player, why)));
                false
            }
            Err(error) => {
                // The rest of the stream cannot be read.
                endpoint.disconnect(clock::now(), player, &error.to_string());
                self.events.extend(self.streams.take_end(player).map(|why| ServerEvent::Disconnected(player, why)));
                false
            }
        }
    }

    /// Sends a message to a player, reliably. It leaves with the next [`flush`](Self::flush) or [`poll`](Self::poll).
    ///
    /// # Errors
    /// If the message is too large or empty, the player does not exist, or the window is full: [`ServerEvent::Writable`]
    /// follows when there is room again.
    #[inline]
    pub fn send(&mut self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        // Most small messages only join others. If the session has just ended, that is like having been sent before its end.
        if self.streams.get_mut(player).is_some_and(|stream| stream.append(message)) {
            return Ok(());
        }
        self.send_now(player, message)
    }

    /// Sends a message that does not merely join others of its stream.
    fn send_now(&mut self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        let now = self.driver.last_driven();
        let endpoint = self.driver.machine_mut();
        let Some(max) = self.max_stream_message else { return endpoint.send(now, player, message) };
        let size = endpoint.connection(player).ok_or(SendError::UnknownPlayer)?.max_message();
        let stream = self.streams.get_or_insert(player, true, max);
        let was_flushed = stream.is_flushed();
        let sent = stream.write(message, size, |part| endpoint.send(now, player, part));
        if was_flushed && !stream.is_flushed() {
            self.unflushed.push(player);
        }
        sent
    }

    /// Ends a player's session: delivers the messages that are left, then sends a disconnect with this reason. Returns false
    /// if the player does not exist. [`ServerEvent::Disconnected`] follows.
    pub fn disconnect(&mut self, player: PlayerId, reason: &str) -> bool {
        let endpoint = self.driver.machine_mut();
        if let Some(stream) = self.streams.get_mut(player)
            && !stream.is_flushed()
            && endpoint.connection(player).is_some()
        {
            stream.close_reason = Some(reason.to_owned());
            return endpoint.begin_disconnect(clock::now(), player, reason);
        }
        endpoint.disconnect(clock::now(), player, reason)
    }

    /// Ends all sessions, as [`disconnect`](Self::disconnect) does one.
    pub fn disconnect_all(&mut self, reason: &str) {
        let players: Vec<PlayerId> = self.players().collect();
        for player in players {
            self.disconnect(player, reason);
        }
    }

    /// All players.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.endpoint().players()
    }

    /// Maximum length of a message to a player in bytes (S33).
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        let connection = self.connection(player)?;
        Some(self.max_stream_message.unwrap_or(connection.max_message()))
    }

    /// Messages are delivered for 2 s, and then three disconnects are sent (S28).
    pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(2_500);

    polled_server_methods!(Vec<u8>);
}

impl PolledServer {
    pub(crate) fn drive(&mut self, now: Instant) -> DriveState {
        self.flush_streams(now);
        self.driver.drive(now)
    }

    /// Whether [`next_event`](Self::next_event) has something. With streams it may turn out to be an incomplete message.
    pub(crate) fn has_event(&mut self) -> bool {
        while self.events.is_empty()
            && let Some(event) = self.driver.poll_event()
        {
            self.handle_event(event);
        }
        !self.events.is_empty() || !self.readable.is_empty()
    }

    /// Whether there are players.
    pub(crate) fn has_sessions(&self) -> bool {
        self.players().next().is_some()
    }

    fn endpoint(&self) -> &Endpoint {
        self.driver.machine()
    }

    fn handle_event(&mut self, event: ServerEvent) {
        match event {
            // The messages are read in turn, after the other events.
            ServerEvent::Message(player) => self.mark_readable(player),
            ServerEvent::Connected(mut new) => {
                if let Some(game) = new.game.strip_suffix(self.game_suffix) {
                    new.game.truncate(game.len());
                }
                self.events.push_back(ServerEvent::Connected(new));
            }
            // Complete messages of a stream come before its end, unless this side has ended it.
            ServerEvent::Disconnected(player, why)
                if why != DisconnectReason::Closed && self.streams.contains(player) =>
            {
                let dropped = self.streams.end(player, why);
                self.events.extend(dropped.map(|(player, why)| ServerEvent::Disconnected(player, why)));
                self.mark_readable(player);
            }
            ServerEvent::Disconnected(player, _) => {
                self.readable.retain(|readable| *readable != player);
                self.streams.remove(player);
                self.events.push_back(event);
            }
            _ => self.events.push_back(event),
        }
    }

    fn mark_readable(&mut self, player: PlayerId) {
        if !self.readable.contains(&player) {
            self.readable.push_back(player);
        }
    }

    /// Sends the bytes that wait in streams, as far as there is room.
    fn flush_streams(&mut self, now: Instant) {
        let Self { driver, streams, unflushed, .. } = self;
        let endpoint = driver.machine_mut();
        unflushed.retain(|player| {
            let Some(stream) = streams.get_mut(*player) else { return false };
            let Some(size) = endpoint.connection(*player).map(Connection::max_message) else { return false };
            // The bytes that do not fit stay in the stream.
            let _ = stream.flush(size, |part| endpoint.send(now, *player, part));
            if stream.is_flushed()
                && let Some(reason) = stream.close_reason.take()
            {
                endpoint.disconnect(now, *player, &reason);
            }
            !stream.is_flushed()
        });
    }
}

/// For the driver task.
#[cfg(feature = "async")]
impl PolledServer {
    pub(crate) fn sockets(&self) -> &[std::sync::Arc<rallypoint_udp::UdpSocket>] {
        self.driver.sockets()
    }

    /// Whether a player has a session, or datagrams of it that can be read after its end.
    pub(crate) fn is_active(&self, player: PlayerId) -> bool {
        let endpoint = self.endpoint();
        endpoint.connection(player).is_some() || endpoint.is_readable(player)
    }

    /// Whether there is room for a message to this player, or no connection to wait for.
    pub(crate) fn is_writable_or_closed(&self, player: PlayerId) -> bool {
        self.connection(player).is_none_or(Connection::is_writable)
    }
}

impl fmt::Debug for PolledServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.endpoint(), f)
    }
}
