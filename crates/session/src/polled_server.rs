//! A server for game loops: one call per frame, no thread, no runtime.

use crate::{
    FakeNetwork, ServerOptions, SetupError,
    polled_client::take,
    port::{self, Port, Turn},
    streams::Streams,
};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{ServerInfo, SessionReplies};
use rallypoint_session_proto::{
    Connection, ConnectionStats, Endpoint, EndpointStats, Event, PlayerId, QueryAnswers, Reason, SendError,
};
use rallypoint_udp::{UdpSocket, clock, entropy};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// What a server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A player is here.
    Joined {
        /// Who.
        player: PlayerId,
        /// The name, without control characters. Nothing proves it, and several players may have the same.
        username: String,
        /// The game that was asked for.
        game: String,
    },
    /// A message of this player came: it is in the buffer that was handed in.
    Message(PlayerId),
    /// After [`SendError::WouldBlock`]: there is room again.
    Writable(PlayerId),
    /// A datagram says that the player goes. Either [`Left`](Self::Left) follows, or it was forged and nothing does (S28).
    Closing(PlayerId),
    /// The player has another address (S31).
    Moved(PlayerId, SocketAddr),
    /// The player is gone.
    Left(PlayerId, Reason),
}

/// A server for game loops: call [`poll`](Self::poll) once per frame, and nothing happens in between.
///
/// ```
/// use rallypoint_session::{PolledServer, ServerEvent, ServerOptions};
/// use rallypoint_session_proto::EndpointConfig;
///
/// let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
/// options.listen = vec!["127.0.0.1:0".parse()?];
/// let mut server = PolledServer::bind(options)?;
/// let mut message = Vec::new();
/// # let mut frames = 0..3;
/// # while frames.next().is_some() {
/// // Once per frame:
/// server.poll();
/// while let Some(event) = server.next(&mut message) {
///     match event {
///         ServerEvent::Message(player) => server.send(player, &message)?,
///         ServerEvent::Joined { username, .. } => println!("hello {username:?}"),
///         _ => {}
///     }
/// }
/// server.flush();
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolledServer {
    port: Port<Endpoint>,
    /// Players with messages to be read, each once; they take turns.
    readers: VecDeque<PlayerId>,
    /// The longest message of a stream, if there are streams.
    longest: Option<usize>,
    /// By slot.
    streams: Vec<Option<Box<(PlayerId, Streams)>>>,
    /// Players whose streams have something to send, each once.
    unsent: Vec<PlayerId>,
    peeked: Option<ServerEvent>,
}

impl PolledServer {
    /// Opens the sockets, and is ready for players.
    ///
    /// # Errors
    /// If a setting is wrong, or a socket cannot be opened.
    pub fn bind(options: impl Into<ServerOptions>) -> Result<Self, SetupError> {
        let options = options.into();
        options.validate()?;
        let sockets = port::listen(&options.listen, options.receive_buffer)?;
        let endpoint = Endpoint::new(options.endpoint, entropy::bytes()?)?;
        Ok(Self {
            port: Port::new(endpoint, sockets, options.fake),
            readers: VecDeque::new(),
            longest: options.stream,
            streams: Vec::new(),
            unsent: Vec::new(),
            peeked: None,
        })
    }

    /// Receives what is there, lets the time pass that has passed, and sends what there is to send. Once per frame.
    pub fn poll(&mut self) {
        self.turn(clock::now());
    }

    /// Sends what [`send`](Self::send) took since [`poll`](Self::poll): at the end of a frame, so that it leaves now and not
    /// with the next.
    pub fn flush(&mut self) {
        let now = clock::now();
        self.flush_streams(now);
        self.port.transmit(now);
    }

    /// Waits until something has arrived or is to be done, but at most so long; for loops that have no frames.
    pub fn wait(&mut self, at_most: Duration) {
        self.port.wait(at_most);
    }

    /// The next thing that happened. If it is [`ServerEvent::Message`], the message is in `message`. Players with several
    /// messages take turns.
    pub fn next(&mut self, message: &mut Vec<u8>) -> Option<ServerEvent> {
        if self.has_event() && self.peeked.is_some() {
            return self.peeked.take();
        }
        while let Some(player) = self.readers.pop_front() {
            if self.recv(player, message) {
                self.readers.push_back(player);
                return Some(ServerEvent::Message(player));
            }
        }
        None
    }

    /// The next message of one player, if there is one. For a server that deals with its players one by one, and does not ask
    /// for [`next`](Self::next).
    pub fn recv(&mut self, player: PlayerId, message: &mut Vec<u8>) -> bool {
        let Some(longest) = self.longest else { return take(self.port.machine.machine.recv(player), message) };
        let Self { port, streams, .. } = self;
        let endpoint = &mut port.machine.machine;
        if endpoint.connection(player).is_none() {
            return false;
        }
        let streams = of_player(streams, player, longest);
        match streams.read(message, |reader| endpoint.recv(player).map(|part| reader.push(part))) {
            Ok(is_whole) => is_whole,
            Err(error) => {
                // What follows cannot be understood any more.
                endpoint.disconnect(clock::now(), player, &error.to_string());
                false
            }
        }
    }

    /// Sends a message to a player, reliably. It leaves with the next [`flush`](Self::flush) or [`poll`](Self::poll).
    ///
    /// # Errors
    /// If it is too large or empty, there is no such player, or the window is full: [`ServerEvent::Writable`] tells when it
    /// is no longer.
    pub fn send(&mut self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        let now = clock::now();
        let Self { port, streams, unsent, .. } = self;
        let endpoint = &mut port.machine.machine;
        let Some(longest) = self.longest else { return endpoint.send(now, player, message) };
        let size = endpoint.connection(player).ok_or(SendError::UnknownPlayer)?.max_message();
        let streams = of_player(streams, player, longest);
        let had_nothing = streams.is_flushed();
        let taken = streams.write(message, size, |part| endpoint.send(now, player, part));
        if had_nothing && !streams.is_flushed() {
            unsent.push(player);
        }
        taken
    }

    /// Delivers what is left to a player, says goodbye for this reason, and ends the session. False if there is no such
    /// player. [`ServerEvent::Left`] follows.
    pub fn disconnect(&mut self, player: PlayerId, reason: &str) -> bool {
        let endpoint = &mut self.port.machine.machine;
        if let Some(Some(own)) = self.streams.get_mut(usize::from(player.index()))
            && own.0 == player
            && !own.1.is_flushed()
            && endpoint.connection(player).is_some()
        {
            own.1.closing = Some(reason.to_owned());
            return true;
        }
        endpoint.disconnect(clock::now(), player, reason)
    }

    /// All players.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.port.machine.machine.players()
    }

    /// How a player's connection is doing.
    #[must_use]
    pub fn stats(&self, player: PlayerId) -> Option<ConnectionStats> {
        self.connection(player).map(Connection::stats)
    }

    /// A player's connection: address, encryption, statistics.
    #[must_use]
    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        self.port.machine.machine.connection(player)
    }

    /// The longest message that can be sent to a player (S33).
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        let connection = self.connection(player)?;
        Some(self.longest.unwrap_or(connection.max_message()))
    }

    /// What the whole server has counted.
    #[must_use]
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.port.machine.machine.stats()
    }

    /// What queries are answered with, from now on.
    pub fn set_info(&mut self, info: &ServerInfo) {
        let SessionReplies { infos, players } = SessionReplies::new(info);
        self.port.machine.machine.set_answers(QueryAnswers::new(infos, players));
    }

    /// Where it listens: the real ports, also if any were asked for.
    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        self.port.local_addrs()
    }

    /// Makes the network as bad as this from now on, or as it is again.
    pub fn set_fake(&mut self, fake: Option<FakeNetwork>) {
        self.port.machine.set_fake(fake);
    }
}

/// For those who drive it.
impl PolledServer {
    pub(crate) fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.port.sockets()
    }

    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        self.flush_streams(now);
        self.port.turn(now)
    }

    /// Whether [`next`](Self::next) has something, or, of a stream, may have something.
    pub(crate) fn has_event(&mut self) -> bool {
        while self.peeked.is_none()
            && let Some(event) = self.port.machine.poll_event()
        {
            self.handle_event(event);
        }
        self.peeked.is_some() || !self.readers.is_empty()
    }

    /// The next thing that happened and is not a message.
    pub(crate) fn next_event(&mut self) -> Option<ServerEvent> {
        // Who asks for this asks for messages player by player.
        self.readers.clear();
        self.peeked.take()
    }

    /// Whether there is room for a message to this player, or none is ever going to be.
    pub(crate) fn is_settled(&self, player: PlayerId) -> bool {
        self.connection(player).is_none_or(Connection::is_writable)
    }

    fn handle_event(&mut self, event: Event) {
        self.peeked = Some(match event {
            Event::Readable(player) => {
                if !self.readers.contains(&player) {
                    self.readers.push_back(player);
                }
                return;
            }
            Event::Connected { player, username, game } => ServerEvent::Joined { player, username, game },
            Event::Writable(player) => ServerEvent::Writable(player),
            Event::Closing(player) => ServerEvent::Closing(player),
            Event::Moved(player, to) => ServerEvent::Moved(player, to),
            Event::Disconnected(player, reason) => {
                self.readers.retain(|reader| *reader != player);
                if let Some(slot) = self.streams.get_mut(usize::from(player.index()))
                    && slot.as_ref().is_some_and(|own| own.0 == player)
                {
                    *slot = None;
                }
                ServerEvent::Left(player, reason)
            }
            _ => return,
        });
    }

    /// Sends what waits in streams, as far as there is room.
    fn flush_streams(&mut self, now: Instant) {
        let Self { port, streams, unsent, .. } = self;
        let endpoint = &mut port.machine.machine;
        unsent.retain(|player| {
            let Some(Some(own)) = streams.get_mut(usize::from(player.index())) else { return false };
            let Some(size) = endpoint.connection(*player).map(Connection::max_message) else { return false };
            if own.0 != *player {
                return false;
            }
            let _ = own.1.flush(size, |part| endpoint.send(now, *player, part));
            if own.1.is_flushed()
                && let Some(reason) = own.1.closing.take()
            {
                endpoint.disconnect(now, *player, &reason);
            }
            !own.1.is_flushed()
        });
    }
}

/// The streams of a player; new ones if they were those of the slot's last player.
fn of_player(streams: &mut Vec<Option<Box<(PlayerId, Streams)>>>, player: PlayerId, longest: usize) -> &mut Streams {
    let slot = usize::from(player.index());
    if streams.len() <= slot {
        streams.resize_with(slot + 1, || None);
    }
    let own = streams[slot].take().filter(|own| own.0 == player);
    &mut streams[slot].insert(own.unwrap_or_else(|| Box::new((player, Streams::new(longest))))).1
}

impl fmt::Debug for PolledServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.port.machine.machine, f)
    }
}
