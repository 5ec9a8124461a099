//! The server side of sessions with channels.

use super::{
    ChannelFault, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError, MessageId, TokenClaims, TokenError,
    TokenVerifier,
    message_store::OutgoingMessage,
    plain_session::PlainSession,
    player_session::{Layer, PlayerSession},
    receiver::PayloadSource,
    sender::FillLimits,
    session::{ChannelSession, parse_hello, send_hello},
    session_table::SessionTable,
};
use crate::{
    Connection, DisconnectReason, Endpoint, EndpointConfig, EndpointStats, NewPlayer, PlayerId, PublicKey,
    QueryReplies, SendError, ServerEvent, SessionConfigError, SlotIndex, connection::Side,
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::channels::GAME_SUFFIX;
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

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
    /// ordered, carried as a stream (S33). None by default: such players are refused (S18).
    pub plain_channel: Option<ChannelIndex>,
}

/// A player who wants to join.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginRequest {
    /// The player, its name and game.
    pub new: NewPlayer,
    /// What the player's token says, if the server verifies tokens.
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
    poll_interval: Duration,
    /// Events may have been raised since they were handled: once for many datagrams.
    has_input: bool,
    sessions: SessionTable,
    /// Players who have left and whose last messages are not read, the oldest first.
    ended: VecDeque<PlayerId>,
    events: VecDeque<ServerEvent>,
    now: Instant,
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
    pub fn new(now: Instant, config: ChannelServerConfig, seed: [u8; 32]) -> Result<Self, SessionConfigError> {
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
        endpoint.games.extend(plain_games.into_iter().filter(|_| plain_channel.is_some()));
        // The hello comes first: from then on, messages are delivered on arrival.
        endpoint.connection.ordered = true;
        Ok(Self {
            window: endpoint.connection.window,
            plain_channel,
            memory: 0,
            poll_interval: Duration::ZERO,
            has_input: false,
            max_memory: endpoint.memory / 2,
            endpoint: Endpoint::new(endpoint, seed)?,
            table: channels,
            tokens,
            decides_logins,
            sessions: SessionTable::default(),
            ended: VecDeque::new(),
            events: VecDeque::new(),
            now,
        })
    }

    /// Counters and current sizes.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        self.endpoint.stats()
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

    /// Whether a player has to be told about messages that were read.
    #[must_use]
    pub fn has_replies(&self, player: PlayerId) -> bool {
        self.sessions.get(player).is_some_and(|player| player.layer.has_replies())
    }

    /// Whether a channel to a player has room for a message of this length; also if there is no session to wait for.
    #[must_use]
    pub fn has_room(&self, player: PlayerId, channel: ChannelIndex, length: usize) -> bool {
        self.sessions.get(player).is_none_or(|player| player.layer.has_room(channel, length))
    }

    /// Whether messages of a channel expire: then the time at which they are sent matters. The others may be sent with the time at
    /// which datagrams were last handled or polled.
    #[must_use]
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        self.table.is_expiring(channel)
    }

    /// Sends a message to a player on a channel.
    ///
    /// # Errors
    /// If there is no such player or channel, the message is too large, or the queue of the channel is full: then
    /// [`ServerEvent::Writable`] follows.
    pub fn send(
        &mut self,
        now: Instant,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, SendError> {
        self.now = now;
        let own = self.sessions.get_mut(player).ok_or(SendError::UnknownPlayer)?;
        if let Layer::Channels(session) = &mut own.layer
            && session.may_send_directly(message.len())
            && let Some(Some(id)) = self.endpoint.send_with(player, |connection, allowance| {
                session.send_directly(now, connection, channel, message, allowance)
            })
        {
            return Ok(id);
        }
        let sent = own.layer.send(now, channel, OutgoingMessage::Borrowed(message))?;
        if !std::mem::replace(&mut own.is_woken, true) {
            self.wake(now, player);
        }
        Ok(sent)
    }

    /// Sends a message to several players; its bytes are kept once. `refused` is called for each player that it cannot be sent to.
    pub fn broadcast(
        &mut self,
        now: Instant,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: impl Into<Arc<[u8]>>,
        mut refused: impl FnMut(PlayerId, SendError),
    ) {
        self.now = now;
        let message = message.into();
        for player in players {
            let Some(own) = self.sessions.get_mut(player) else {
                refused(player, SendError::UnknownPlayer);
                continue;
            };
            match own.layer.send(now, channel, OutgoingMessage::Shared(&message)) {
                Ok(_) if std::mem::replace(&mut own.is_woken, true) => {}
                Ok(_) => self.wake(now, player),
                Err(error) => refused(player, error),
            }
        }
    }

    /// The next message of a player and its channel. Its bytes stay valid until the next call.
    pub fn recv(&mut self, now: Instant, player: PlayerId) -> Option<(ChannelIndex, &[u8])> {
        self.now = now;
        let Self { endpoint, sessions, .. } = self;
        let own = sessions.get_mut(player)?;
        let received = own.layer.next_message(&mut PlayerPayloads { endpoint, player });
        self.count_memory(player);
        match received {
            Ok(Some(channel)) => {
                let last = self.endpoint.last_received(player);
                return self.sessions.get(player).map(|own| (channel, own.layer.message(last)));
            }
            Ok(None) => {}
            Err(fault) => self.abort(player, fault),
        }
        // What the peer reports may allow more to be sent, and it may have to be told something.
        self.wake(now, player);
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
        let Some(new) = own.new.take().filter(|_| opened.is_some()) else { return false };
        events.push_back(ServerEvent::Connected(new));
        // What arrived after the hello.
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
        self.poll_interval = interval;
        self.endpoint.set_poll_interval(interval);
    }

    /// Mixes fresh entropy into the state from which secrets are drawn; see [`Endpoint::mix_entropy`].
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.endpoint.mix_entropy(entropy);
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

    /// Counts the unfinished messages of a player. If those of all players take too much memory, the sessions end of those who
    /// have the most (W116).
    fn count_memory(&mut self, player: PlayerId) {
        if !self.update_memory(player) {
            return;
        }
        while self.memory > self.max_memory {
            // Messages of players who have left come first.
            if let Some(oldest) = self.ended.pop_front() {
                self.drop_ended(oldest);
                continue;
            }
            let largest = self.sessions.iter().max_by_key(|(_, own)| own.memory).map(|(player, _)| player);
            let Some(largest) = largest else { break };
            self.abort(largest, ChannelFault::Memory);
            // A session that ended without the application: its connection is gone, and the end is about to be reported.
            if self.sessions.get(largest).is_some_and(|own| own.memory > 0)
                && self.remove_session(largest).is_some_and(|own| own.new.is_none())
            {
                let reason = DisconnectReason::Channels(ChannelFault::Memory);
                self.events.push_back(ServerEvent::Disconnected(largest, reason));
            }
        }
        self.endpoint.set_reserved(self.memory);
    }

    /// Returns whether anything has changed.
    fn update_memory(&mut self, player: PlayerId) -> bool {
        let Some(own) = self.sessions.get_mut(player) else { return false };
        let before = std::mem::replace(&mut own.memory, own.layer.memory());
        self.memory = self.memory - before + own.memory;
        own.memory != before
    }

    fn remove_session(&mut self, player: PlayerId) -> Option<PlayerSession> {
        let own = self.sessions.remove(player)?;
        self.memory -= own.memory;
        self.endpoint.set_reserved(self.memory);
        Some(own)
    }

    /// Drops the messages of a player who has left, and reports the end of its session.
    fn drop_ended(&mut self, player: PlayerId) {
        if let Some(reason) = self.remove_session(player).and_then(|own| own.end) {
            self.events.push_back(ServerEvent::Disconnected(player, reason));
        }
    }

    /// Has the endpoint ask for messages to this player.
    fn wake(&mut self, now: Instant, player: PlayerId) {
        self.endpoint.with_connection(now, player, |_| {});
    }

    fn abort(&mut self, player: PlayerId, fault: ChannelFault) {
        let Self { endpoint, sessions, now, .. } = self;
        let Some(own) = sessions.get_mut(player) else { return };
        endpoint.with_connection(*now, player, |connection| own.layer.abort(*now, connection, fault));
        self.update_memory(player);
    }

    /// Turns the events of the endpoint into those of the channels.
    fn handle_events(&mut self) {
        self.has_input = false;
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ServerEvent::Connected(new) => self.start_session(new),
                ServerEvent::Message(player) => self.handle_readable(player),
                ServerEvent::Disconnected(player, reason) => self.end_session(player, reason),
                // The queues of the channels have room, or not.
                ServerEvent::Writable(_) => {}
                // Events that may be raised any number of times are dropped if none is polled.
                ServerEvent::Closing(player) | ServerEvent::Moved(player, _)
                    if !self.is_open(player) || self.events.len() >= MAX_EVENTS => {}
                event => self.events.push_back(event),
            }
        }
    }

    fn start_session(&mut self, mut new: NewPlayer) {
        let player = new.player;
        let Some(connection) = self.endpoint.connection(player) else { return };
        let is_encrypted = connection.is_encrypted();
        let Some(game) = new.game.strip_suffix(GAME_SUFFIX) else { return self.start_plain_session(new) };
        new.game.truncate(game.len());
        let session = ChannelSession::new(self.now, &self.table, Side::Server, is_encrypted, self.window);
        self.sessions.insert(player, PlayerSession::new(Layer::Channels(Box::new(session)), new));
        self.wake(self.now, player);
    }

    /// A player without channels (W115).
    fn start_plain_session(&mut self, new: NewPlayer) {
        let Some(channel) = self.plain_channel else { return };
        let player = new.player;
        let session = PlainSession::new(&self.table, channel);
        self.sessions.insert(player, PlayerSession::new(Layer::Plain(Box::new(session)), new.clone()));
        if self.tokens.is_some() {
            return self.abort(player, ChannelFault::Token(TokenError::Missing));
        }
        self.decide(new, None);
    }

    /// The player's login is in order: the application decides, or it is accepted at once.
    fn decide(&mut self, new: NewPlayer, token: Option<TokenClaims>) {
        let player = new.player;
        if self.decides_logins {
            self.events.push_back(ServerEvent::LoginRequest(LoginRequest { new, token }));
        } else {
            self.accept_login(self.now, player);
        }
    }

    fn handle_readable(&mut self, player: PlayerId) {
        let Some(own) = self.sessions.get_mut(player) else { return };
        if own.layer.is_awaiting_hello() {
            return self.handle_hello(player);
        }
        if !own.layer.is_awaiting_decision() && !std::mem::replace(&mut own.has_message_event, true) {
            self.events.push_back(ServerEvent::Message(player));
        }
    }

    /// Reads a player's hello.
    fn handle_hello(&mut self, player: PlayerId) {
        let Self { endpoint, sessions, table, tokens, now, .. } = self;
        let Some(own) = sessions.get_mut(player) else { return };
        let (Some(new), Some(payload)) = (&own.new, endpoint.recv(player)) else { return };
        let checked = parse_hello(table, payload).and_then(|hello| match tokens {
            None => Ok(None),
            Some(_) if !new.is_pinned => Err(ChannelFault::Token(TokenError::NotPinned)),
            Some((verifier, server)) => {
                let claims = verifier.verify(*now, server, &new.username, hello.token);
                claims.map(Some).map_err(ChannelFault::Token)
            }
        });
        let token = match checked {
            Ok(token) => token,
            Err(fault) => return self.abort(player, fault),
        };
        let new = new.clone();
        if let Layer::Channels(session) = &mut own.layer {
            session.await_decision();
        }
        self.decide(new, token);
    }

    fn end_session(&mut self, player: PlayerId, reason: DisconnectReason) {
        let Some(own) = self.sessions.get_mut(player) else { return };
        // A player who was never accepted has not joined, unless the application knows of the request.
        if own.new.is_some() && !(self.decides_logins && own.layer.is_known()) {
            self.remove_session(player);
            return;
        }
        // What this side ends is not read any more.
        let is_ours = matches!(reason, DisconnectReason::Closed | DisconnectReason::Channels(_));
        let is_unread = own.layer.is_readable() && !is_ours;
        if !is_unread {
            self.remove_session(player);
            self.events.push_back(ServerEvent::Disconnected(player, reason));
            return;
        }
        own.end = Some(reason);
        if !std::mem::replace(&mut own.has_message_event, true) {
            self.events.push_back(ServerEvent::Message(player));
        }
        self.ended.push_back(player);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.drop_ended(oldest);
        }
    }

    /// Reports the end of a session whose last message is read.
    fn report_end(&mut self, player: PlayerId) {
        let is_read = |own: &PlayerSession| own.end.is_some() && !own.layer.is_readable();
        if self.sessions.get(player).is_some_and(is_read) {
            self.ended.retain(|ended| *ended != player);
            self.drop_ended(player);
        }
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
}

impl Machine for ChannelServer {
    type Event = ServerEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.now = now;
        self.endpoint.handle_datagram(now, from, bytes);
        self.has_input = true;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.endpoint.handle_timeout(now);
        self.has_input = true;
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        if self.has_input {
            self.handle_events();
        }
        let Self { endpoint, sessions, events, poll_interval, .. } = self;
        let poll_interval = *poll_interval;
        let transmit = endpoint.poll_transmit_with(now, out, |player, connection, allowance| {
            if let Some(own) = sessions.get_mut(player) {
                own.is_woken = false;
                own.layer.fill(now, connection, FillLimits { allowance, poll_interval });
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
        self.handle_events();
        transmit
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.handle_events();
        let event = self.events.pop_front()?;
        if let ServerEvent::Message(player) = event
            && let Some(own) = self.sessions.get_mut(player)
        {
            own.has_message_event = false;
        }
        Some(event)
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
