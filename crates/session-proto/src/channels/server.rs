//! The server side of sessions with channels.

mod broadcast;
mod lifecycle;
mod memory;
mod queue_memory;

use super::{
    ChannelFault, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError, MessageId, TokenClaims, TokenError,
    TokenVerifier, message_store::OutgoingMessage, payload_source::PayloadSource, player_session::Layer,
    receiver::Next, send_channel::ENTRY, session::send_hello, session_table::SessionTable,
};
use crate::{
    Connection, Endpoint, EndpointConfig, EndpointStats, NewPlayer, PlayerId, PublicKey, QueryReplies, SendError,
    ServerEvent, SessionConfigError, SlotIndex,
};
use queue_memory::QueueMemory;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::{
    STREAM_SUFFIX,
    channels::{GAME_SUFFIX, MESSAGE_HEADER},
};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};
use zeroize::Zeroize;

/// Maximum number of players who have left and whose last messages are not read. Beyond it the oldest are dropped.
const MAX_ENDED: usize = SlotIndex::COUNT;

/// Number of events that wait to be polled, beyond which those that may be raised any number of times are dropped or wait.
const MAX_EVENTS: usize = 8 * SlotIndex::COUNT;

/// Settings of a [`ChannelServer`].
#[derive(Clone, Debug)]
pub struct ChannelServerConfig {
    /// Settings of the server. `ordered` has no effect: each channel has its own order.
    pub endpoint: EndpointConfig,
    /// The channels, the same as the clients'.
    pub channels: ChannelTable,
    /// Verifies the tokens of players. Without it none is needed. Tokens need [`EndpointConfig::static_key`].
    pub tokens: Option<TokenVerifier>,
    /// Whether [`ServerEvent::LoginRequest`] is raised for each player, and the application decides. Off by default: every
    /// player is accepted whose table and token are valid.
    pub decides_logins: bool,
    /// The channel of players whose game does not name the message layer (W115), and who therefore have no other: reliable and
    /// ordered, carried as a stream (S33), whether the game names that (W118) or not. None by default: such players are refused
    /// (S18).
    pub plain_channel: Option<ChannelIndex>,
}

/// A player who wants to join.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginRequest {
    /// The player, its name and game.
    pub new: NewPlayer,
    /// The claims of the player's token, if the server verifies tokens.
    pub token: Option<TokenClaims>,
}

/// An [`Endpoint`] whose sessions have channels (W110).
///
/// It has the calls of an [`Endpoint`], except that messages are sent and received on a channel, and that
/// [`ServerEvent::Connected`] is raised when the player's table, token and login are accepted.
pub struct ChannelServer {
    endpoint: Endpoint,
    table: ChannelTable,
    window: usize,
    tokens: Option<(TokenVerifier, PublicKey)>,
    decides_logins: bool,
    plain_channel: Option<ChannelIndex>,
    /// Bytes of unfinished and waiting messages of all players, and their maximum: half of [`EndpointConfig::memory`].
    memory: usize,
    max_memory: usize,
    /// Messages that wait to be sent.
    queues: QueueMemory,
    /// A message was read that a player expects a receipt or credit for.
    has_replies: bool,
    sessions: SessionTable,
    /// Players who have left and whose last messages are not read, the oldest first.
    ended: VecDeque<PlayerId>,
    events: VecDeque<ServerEvent>,
    faults: FaultCounters,
    now: Instant,
}

/// Number of sessions that ended because of a fault of the player.
#[derive(Clone, Copy, Debug, Default)]
struct FaultCounters {
    tables: u64,
    tokens: u64,
    others: u64,
}

impl ChannelServerConfig {
    /// The default settings of a server for one game, with these channels.
    #[must_use]
    pub fn new(game: &str, channels: ChannelTable) -> Self {
        Self {
            endpoint: EndpointConfig::for_game(game),
            channels,
            tokens: None,
            decides_logins: false,
            plain_channel: None,
        }
    }
}

impl ChannelServer {
    /// Creates a server without players. The seed must be unpredictable: all secrets are derived from it.
    ///
    /// # Errors
    /// If a field of the configuration is out of range, or tokens are to be verified without a static key.
    pub fn new(now: Instant, config: ChannelServerConfig, mut seed: [u8; 32]) -> Result<Self, SessionConfigError> {
        let ChannelServerConfig { mut endpoint, channels, tokens, decides_logins, plain_channel } = config;
        let has_mode = |channel| channels.get(channel).is_some_and(|known| known.mode == ChannelMode::ReliableOrdered);
        if let Some(channel) = plain_channel.filter(|channel| !has_mode(*channel)) {
            return Err(SessionConfigError::Channels(ChannelTableError::Plain(channel.get())));
        }
        let tokens = match (tokens, &endpoint.static_key) {
            (None, _) => None,
            (Some(verifier), Some(key)) => Some((verifier, key.public())),
            (Some(_), None) => return Err(SessionConfigError::Token(TokenError::NotPinned)),
        };
        let plain_games = endpoint.games.clone();
        endpoint.games.iter_mut().for_each(|game| game.push_str(GAME_SUFFIX));
        if plain_channel.is_some() {
            endpoint.games.extend(plain_games.iter().map(|game| format!("{game}{STREAM_SUFFIX}")));
            endpoint.games.extend(plain_games);
        }
        // The hello comes first: from then on, messages are delivered on arrival.
        endpoint.connection.ordered = true;
        let window = endpoint.connection.window;
        let max_memory = endpoint.memory / 2;
        let queues = QueueMemory::new(endpoint.memory, endpoint.max_players);
        let endpoint = Endpoint::new(endpoint, seed);
        seed.zeroize();
        Ok(Self {
            window,
            plain_channel,
            memory: 0,
            has_replies: false,
            max_memory,
            queues,
            endpoint: endpoint?,
            table: channels,
            tokens,
            decides_logins,
            sessions: SessionTable::default(),
            ended: VecDeque::new(),
            events: VecDeque::new(),
            faults: FaultCounters::default(),
            now,
        })
    }

    /// Counters and current sizes.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            tables_refused: self.faults.tables,
            tokens_refused: self.faults.tokens,
            channel_faults: self.faults.others,
            ..self.endpoint.stats()
        }
    }

    /// All players who are accepted.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.endpoint.players().filter(|player| self.is_open(*player))
    }

    /// The connection of a player.
    #[must_use]
    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        self.endpoint.connection(player)
    }

    /// Whether a message of a player may be readable.
    #[must_use]
    pub fn is_readable(&self, player: PlayerId) -> bool {
        self.endpoint.is_readable(player) || self.sessions.get(player).is_some_and(|player| player.layer.is_readable())
    }

    /// Whether a player has a session, or messages that can be read after its end.
    #[must_use]
    pub fn is_active(&self, player: PlayerId) -> bool {
        self.sessions.get(player).is_some()
    }

    /// Whether receipts or credits have to be sent to a player whose messages were read since the last call.
    pub fn take_has_replies(&mut self) -> bool {
        std::mem::take(&mut self.has_replies)
    }

    /// Whether a channel to a player has room for a message of this length; also if there is no session to wait for.
    #[must_use]
    pub fn has_room(&self, player: PlayerId, channel: ChannelIndex, length: usize) -> bool {
        self.sessions.get(player).is_none_or(|player| {
            player.layer.has_room(channel, length) && self.queues.has_room(player.queued, length + ENTRY)
        })
    }

    /// Whether messages of a channel expire: then the time at which they are sent matters. The others may be sent with the time at
    /// which datagrams were last handled or polled.
    #[must_use]
    #[inline]
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        self.table.is_expiring(channel)
    }

    /// Sends a message to a player on a channel.
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or the queue of the channel is full, or the queues of all
    /// players (W124): then [`ServerEvent::Writable`] follows.
    pub fn send(
        &mut self,
        now: Instant,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, SendError> {
        let Self { endpoint, sessions, queues, .. } = self;
        let own = sessions.get_mut(player).ok_or(SendError::UnknownPlayer)?;
        let queued = own.queued;
        if let Layer::Channels(session) = &mut own.layer
            && session.may_send_directly(message.len())
            && let Some(Some(id)) = endpoint.send_with(player, |connection, allowance| {
                let may_wait = || queues.has_room(queued, message.len() + ENTRY);
                session.send_directly(now, connection, channel, message, allowance, may_wait)
            })
        {
            return Ok(id);
        }
        self.queue(now, player, channel, message)
    }

    /// [`send`](Self::send) in the general case.
    #[inline(never)]
    fn queue(
        &mut self,
        now: Instant,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, SendError> {
        self.now = now;
        let own = self.sessions.get_mut(player).ok_or(SendError::UnknownPlayer)?;
        let message = OutgoingMessage::Borrowed(message);
        if !self.queues.take(player, own, message) {
            return Err(SendError::WouldBlock);
        }
        let sent = own.layer.send(now, channel, message).inspect_err(|_| self.queues.count(own))?;
        if !std::mem::replace(&mut own.is_woken, true) {
            self.wake(player);
        }
        Ok(sent)
    }

    /// The next message of a player and its channel. Its bytes stay valid until the next call.
    pub fn recv(&mut self, now: Instant, player: PlayerId) -> Option<(ChannelIndex, &[u8])> {
        let Self { endpoint, sessions, .. } = self;
        let next = match &mut sessions.get_mut(player)?.layer {
            Layer::Channels(session) => endpoint.read_with(player, |connection| session.next(connection)),
            Layer::Plain(_) => None,
        };
        match next {
            Some(Next::Nothing) => None,
            Some(Next::Message(channel)) => {
                let connection = self.endpoint.connection(player)?;
                Some((channel, connection.last_received_from(MESSAGE_HEADER)))
            }
            next => self.finish_recv(now, player, next),
        }
    }

    /// [`recv`](Self::recv) in the general case. `next`: what the connection has, if there is one.
    #[inline(never)]
    fn finish_recv(&mut self, now: Instant, player: PlayerId, next: Option<Next>) -> Option<(ChannelIndex, &[u8])> {
        self.now = now;
        let Self { endpoint, sessions, .. } = self;
        let own = sessions.get_mut(player)?;
        let source = &mut PlayerPayloads { endpoint, player };
        let received = match (&mut own.layer, next) {
            (Layer::Channels(session), Some(next)) => session.finish_next(next, source),
            (layer, _) => layer.next_message(source),
        };
        self.has_replies |= own.layer.has_replies();
        // The peer's reports may allow more to be sent, and a report of this side may be due.
        if !own.layer.is_idle() {
            self.wake(player);
        }
        self.count_memory(player);
        match received {
            Ok(Some(channel)) => {
                let last = self.endpoint.last_received(player);
                return self.sessions.get(player).map(|own| (channel, own.layer.message(last)));
            }
            Ok(None) => {}
            Err(fault) => self.abort(player, fault),
        }
        self.handle_events();
        self.report_end(player);
        None
    }

    /// Accepts a player after [`ServerEvent::LoginRequest`]; [`ServerEvent::Connected`] follows. Returns false if there is no
    /// such request.
    pub fn accept_login(&mut self, now: Instant, player: PlayerId) -> bool {
        self.now = now;
        let Self { endpoint, sessions, table, events, .. } = self;
        let Some(own) = sessions.get_mut(player).filter(|own| own.layer.is_awaiting_decision()) else {
            return false;
        };
        let opened = endpoint.with_connection(now, player, |connection| match &mut own.layer {
            Layer::Channels(session) => {
                send_hello(now, connection, table, &[]);
                session.open(connection);
            }
            Layer::Plain(session) => session.open(),
        });
        // A player whose session has ended has not joined.
        if opened.is_none() {
            return false;
        }
        let Some(new) = own.new.take() else { return false };
        events.push_back(ServerEvent::Connected(new));
        // Messages that arrived after the hello.
        if !std::mem::replace(&mut own.has_message_event, true) {
            events.push_back(ServerEvent::Message(player));
        }
        true
    }

    /// Ends a player's session: sends the messages that wait, then a disconnect with this reason. That is also how a
    /// [`ServerEvent::LoginRequest`] is refused. Returns false if the player does not exist.
    pub fn disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        self.now = now;
        let Self { endpoint, sessions, .. } = self;
        let Some(own) = sessions.get_mut(player) else { return false };
        let closed = endpoint.with_connection(now, player, |connection| own.layer.close(now, connection, reason));
        self.handle_events();
        closed.is_some()
    }

    /// Ends all sessions, also of players who are not accepted yet, as [`disconnect`](Self::disconnect) does one.
    pub fn disconnect_all(&mut self, now: Instant, reason: &str) {
        let players: Vec<PlayerId> = self.endpoint.players().collect();
        for player in players {
            self.disconnect(now, player, reason);
        }
    }

    /// Whether there are players, accepted or not.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        self.endpoint.players().next().is_some()
    }

    /// Sets the interval at which the application reads datagrams: a wait of up to one interval does not indicate a queue on
    /// the path. Zero by default.
    pub fn set_poll_interval(&mut self, interval: Duration) {
        self.endpoint.set_poll_interval(interval);
    }

    /// Sets how long the datagrams that are handled next have waited to be read; see [`Endpoint::set_receive_delay`].
    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.endpoint.set_receive_delay(delay);
    }

    /// Mixes fresh entropy into the state from which secrets are drawn; see [`Endpoint::mix_entropy`].
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.endpoint.mix_entropy(entropy);
    }

    /// Determines the bytes per second of the statistics; see [`Endpoint::sample_throughput`].
    pub fn sample_throughput(&mut self, now: Instant) {
        self.endpoint.sample_throughput(now);
    }

    /// Sets the replies to queries.
    pub fn set_query_replies(&mut self, replies: QueryReplies) {
        self.endpoint.set_query_replies(replies);
    }

    fn is_open(&self, player: PlayerId) -> bool {
        self.sessions.get(player).is_some_and(|player| player.layer.is_open())
    }

    /// Whether a player has channels; if not, it has only [`ChannelServerConfig::plain_channel`].
    #[must_use]
    pub fn has_channels(&self, player: PlayerId) -> bool {
        self.sessions.get(player).is_some_and(|own| matches!(own.layer, Layer::Channels(_)))
    }

    /// Has the endpoint ask for messages to this player.
    fn wake(&mut self, player: PlayerId) {
        self.endpoint.send_with(player, |connection, _| connection.wake_source());
    }

    fn abort(&mut self, player: PlayerId, fault: ChannelFault) {
        let Self { endpoint, sessions, now, .. } = self;
        let Some(own) = sessions.get_mut(player) else { return };
        endpoint.with_connection(*now, player, |connection| own.layer.abort(*now, connection, fault));
        self.update_memory(player);
    }
}

impl FaultCounters {
    fn count(&mut self, fault: ChannelFault) {
        let counter = match fault {
            ChannelFault::NoHello | ChannelFault::Version(_) | ChannelFault::Table(_) => &mut self.tables,
            ChannelFault::Token(_) => &mut self.tokens,
            _ => &mut self.others,
        };
        *counter += 1;
    }
}

/// The payloads of a player.
struct PlayerPayloads<'a> {
    endpoint: &'a mut Endpoint,
    player: PlayerId,
}

impl PayloadSource for PlayerPayloads<'_> {
    fn next_payload(&mut self) -> Option<&[u8]> {
        self.endpoint.recv(self.player)
    }

    fn last_payload(&self) -> &[u8] {
        self.endpoint.last_received(self.player)
    }
}

impl Machine for ChannelServer {
    type Event = ServerEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.now = now;
        self.endpoint.handle_datagram(now, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        self.handle_events();
        self.endpoint.set_reserved(self.memory + self.queues.total());
        let Self { endpoint, sessions, events, queues, .. } = self;
        let transmit = endpoint.poll_transmit_with(now, out, |player, connection, allowance| {
            if let Some(own) = sessions.get_mut(player) {
                own.is_woken = false;
                own.layer.fill(now, connection, allowance);
                queues.count(own);
                if own.layer.take_writable() {
                    events.push_back(ServerEvent::Writable(player));
                }
                while events.len() < MAX_EVENTS
                    && let Some(id) = own.layer.poll_receipt()
                {
                    events.push_back(ServerEvent::Receipt(player, id));
                }
            }
        });
        if transmit.is_none() {
            self.handle_events();
            self.report_queue_memory();
        }
        transmit
    }

    #[inline]
    fn poll_event(&mut self) -> Option<ServerEvent> {
        if self.events.is_empty() && !self.endpoint.has_events() { None } else { self.next_event() }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}

impl fmt::Debug for ChannelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelServer").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
