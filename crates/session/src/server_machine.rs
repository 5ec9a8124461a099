//! The state machine of a server, whatever its sessions carry.

use crate::{ONLY_CHANNEL, ServerOptions, SetupError, options::Layer, player_streams::PlayerStreams};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    ChannelIndex, ChannelServer, ChannelServerConfig, Connection, DisconnectReason, Endpoint, EndpointStats, MessageId,
    PlayerId, QueryReplies, SendError, ServerEvent,
};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// A server without sockets.
#[allow(clippy::large_enum_variant, reason = "there is one per server")]
pub(crate) enum ServerMachine {
    Plain(PlainServer),
    Channels(ChannelServer),
}

/// A server whose sessions carry messages, or a stream.
pub(crate) struct PlainServer {
    endpoint: Endpoint,
    /// Maximum length of a stream message, if streams are used.
    max_stream_message: Option<usize>,
    /// What ends the game of a login (W118).
    game_suffix: &'static str,
    streams: PlayerStreams,
    /// Players whose streams have something to send, each once.
    unflushed: Vec<PlayerId>,
    /// There may be room for the bytes that wait in streams.
    may_flush: bool,
    /// Events that are polled already.
    events: VecDeque<ServerEvent>,
}

impl ServerMachine {
    pub fn new(now: Instant, options: ServerOptions, seed: [u8; 32]) -> Result<Self, SetupError> {
        let tokens = options.token_verifier(now);
        let ServerOptions { mut endpoint, layer, plain_channel, decides_logins, .. } = options;
        if let Layer::Channels(channels) = layer {
            let config = ChannelServerConfig { endpoint, channels, tokens, decides_logins, plain_channel };
            return Ok(Self::Channels(ChannelServer::new(now, config, seed)?));
        }
        let game_suffix = layer.game_suffix();
        endpoint.games.iter_mut().for_each(|game| game.push_str(game_suffix));
        Ok(Self::Plain(PlainServer {
            endpoint: Endpoint::new(endpoint, seed)?,
            max_stream_message: layer.max_stream_message(),
            game_suffix,
            streams: PlayerStreams::default(),
            unflushed: Vec::new(),
            may_flush: false,
            events: VecDeque::new(),
        }))
    }

    pub fn stats(&self) -> EndpointStats {
        match self {
            Self::Plain(server) => server.endpoint.stats(),
            Self::Channels(server) => server.stats(),
        }
    }

    /// All players who are accepted.
    pub fn players(&self) -> Vec<PlayerId> {
        match self {
            Self::Plain(server) => server.endpoint.players().collect(),
            Self::Channels(server) => server.players().collect(),
        }
    }

    /// Whether there are players, accepted or not.
    pub fn has_sessions(&self) -> bool {
        match self {
            Self::Plain(server) => server.endpoint.players().next().is_some(),
            Self::Channels(server) => server.has_sessions(),
        }
    }

    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        match self {
            Self::Plain(server) => server.endpoint.connection(player),
            Self::Channels(server) => server.connection(player),
        }
    }

    /// Whether a player has a session, or messages of it that can be read after its end.
    #[cfg(feature = "async")]
    pub fn is_active(&self, player: PlayerId) -> bool {
        match self {
            Self::Plain(server) => server.endpoint.connection(player).is_some() || server.endpoint.is_readable(player),
            Self::Channels(server) => server.is_active(player),
        }
    }

    /// Whether a message of a player may be readable, or its session has ended.
    #[cfg(feature = "async")]
    pub fn is_readable_or_ended(&self, player: PlayerId) -> bool {
        match self {
            Self::Plain(server) => server.endpoint.connection(player).is_none_or(Connection::is_readable),
            Self::Channels(server) => server.is_readable(player) || !server.is_active(player),
        }
    }

    /// Whether there is room for a message of this length, or no session to wait for.
    #[cfg(feature = "async")]
    pub fn has_room(&self, player: PlayerId, channel: ChannelIndex, length: usize) -> bool {
        match self {
            Self::Plain(server) => server.endpoint.connection(player).is_none_or(Connection::is_writable),
            Self::Channels(server) => server.has_room(player, channel, length),
        }
    }

    /// Maximum length of a message; with channels, of one that fits into a datagram.
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        let in_datagram = self.connection(player)?.max_message();
        let Self::Plain(server) = self else { return Some(in_datagram) };
        Some(server.max_stream_message.unwrap_or(in_datagram))
    }

    pub fn has_channels(&self, player: PlayerId) -> bool {
        matches!(self, Self::Channels(server) if server.has_channels(player))
    }

    /// Whether receipts or credits of messages that were read have to be sent. Reported once.
    #[cfg(feature = "async")]
    pub fn take_has_replies(&mut self) -> bool {
        if let Self::Channels(server) = self { server.take_has_replies() } else { false }
    }

    /// Whether messages of a channel expire, so that the time at which they are sent matters.
    #[inline]
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        matches!(self, Self::Channels(server) if server.is_expiring(channel))
    }

    #[inline]
    pub fn send(
        &mut self,
        now: Instant,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, SendError> {
        match self {
            Self::Plain(server) => server.send(now, player, channel, message),
            Self::Channels(server) => server.send(now, player, channel, message),
        }
    }

    pub fn broadcast_with(
        &mut self,
        now: Instant,
        players: impl IntoIterator<Item = PlayerId>,
        channel: ChannelIndex,
        message: Arc<[u8]>,
        mut report: impl FnMut(PlayerId, Result<MessageId, SendError>),
    ) {
        match self {
            Self::Plain(server) => {
                for player in players {
                    report(player, server.send(now, player, channel, &message));
                }
            }
            Self::Channels(server) => server.broadcast_with(now, players, channel, message, report),
        }
    }

    /// Copies the next message of a player into `message`. Returns its channel.
    pub fn recv(&mut self, now: Instant, player: PlayerId, message: &mut Vec<u8>) -> Option<ChannelIndex> {
        match self {
            Self::Plain(server) => server.recv(now, player, message),
            Self::Channels(server) => copy_message(server.recv(now, player), message),
        }
    }

    pub fn accept_login(&mut self, now: Instant, player: PlayerId) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Channels(server) => server.accept_login(now, player),
        }
    }

    pub fn disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        match self {
            Self::Plain(server) => server.disconnect(now, player, reason),
            Self::Channels(server) => server.disconnect(now, player, reason),
        }
    }

    pub fn disconnect_all(&mut self, now: Instant, reason: &str) {
        match self {
            Self::Plain(server) => {
                let players: Vec<PlayerId> = server.endpoint.players().collect();
                for player in players {
                    server.disconnect(now, player, reason);
                }
            }
            Self::Channels(server) => server.disconnect_all(now, reason),
        }
    }

    pub fn set_query_replies(&mut self, replies: QueryReplies) {
        match self {
            Self::Plain(server) => server.endpoint.set_query_replies(replies),
            Self::Channels(server) => server.set_query_replies(replies),
        }
    }

    pub fn set_poll_interval(&mut self, interval: Duration) {
        match self {
            Self::Plain(server) => server.endpoint.set_poll_interval(interval),
            Self::Channels(server) => server.set_poll_interval(interval),
        }
    }

    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        match self {
            Self::Plain(server) => server.endpoint.set_receive_delay(delay),
            Self::Channels(server) => server.set_receive_delay(delay),
        }
    }

    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        match self {
            Self::Plain(server) => server.endpoint.mix_entropy(entropy),
            Self::Channels(server) => server.mix_entropy(entropy),
        }
    }

    pub fn sample_throughput(&mut self, now: Instant) {
        match self {
            Self::Plain(server) => server.endpoint.sample_throughput(now),
            Self::Channels(server) => server.sample_throughput(now),
        }
    }
}

impl PlainServer {
    #[inline]
    fn send(
        &mut self,
        now: Instant,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, SendError> {
        if channel != ONLY_CHANNEL {
            return Err(SendError::NoChannel);
        }
        // Most small messages only join others. If the session has just ended, that is like having been sent before its end.
        if self.streams.get_mut(player).is_some_and(|stream| stream.append(message)) {
            return Ok(MessageId::without_receipt(channel));
        }
        self.send_now(now, player, message).map(|()| MessageId::without_receipt(channel))
    }

    /// Sends a message that does not merely join others of its stream.
    fn send_now(&mut self, now: Instant, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        let Self { endpoint, .. } = self;
        let Some(max) = self.max_stream_message else { return endpoint.send(now, player, message) };
        let size = endpoint.connection(player).ok_or(SendError::UnknownPlayer)?.max_message();
        let stream = self.streams.get_or_insert(player, true, max);
        let was_flushed = stream.is_flushed();
        let sent = stream.write(message, size, |part| endpoint.send(now, player, part));
        if was_flushed && !stream.is_flushed() {
            self.unflushed.push(player);
        }
        self.may_flush = true;
        sent
    }

    fn recv(&mut self, now: Instant, player: PlayerId, message: &mut Vec<u8>) -> Option<ChannelIndex> {
        let Self { endpoint, streams, events, .. } = self;
        let Some(max) = self.max_stream_message else {
            return copy_message(endpoint.recv(player).map(|bytes| (ONLY_CHANNEL, bytes)), message);
        };
        let is_live = endpoint.connection(player).is_some();
        if !is_live && !endpoint.is_readable(player) && !streams.contains(player) {
            return None;
        }
        let stream = streams.get_or_insert(player, is_live, max);
        match stream.read(message, |reader| endpoint.recv(player).map(|part| reader.push(part))) {
            Ok(true) => return Some(ONLY_CHANNEL),
            Ok(false) => {}
            // The rest of the stream cannot be read.
            Err(error) => {
                endpoint.disconnect(now, player, &error.to_string());
            }
        }
        events.extend(streams.take_end(player).map(|why| ServerEvent::Disconnected(player, why)));
        None
    }

    fn disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        if let Some(stream) = self.streams.get_mut(player)
            && !stream.is_flushed()
            && self.endpoint.connection(player).is_some()
        {
            stream.close_reason = Some(reason.to_owned());
            self.may_flush = true;
            return self.endpoint.begin_disconnect(now, player, reason);
        }
        self.endpoint.disconnect(now, player, reason)
    }

    fn handle_event(&mut self, event: ServerEvent) {
        match event {
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
                self.events.push_back(ServerEvent::Message(player));
            }
            ServerEvent::Disconnected(player, _) => {
                self.streams.remove(player);
                self.events.push_back(event);
            }
            _ => self.events.push_back(event),
        }
    }

    /// Sends the bytes that wait in streams, as far as there is room.
    fn flush_streams(&mut self, now: Instant) {
        if !std::mem::take(&mut self.may_flush) {
            return;
        }
        let Self { endpoint, streams, unflushed, .. } = self;
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

impl Machine for ServerMachine {
    type Event = ServerEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        match self {
            Self::Plain(server) => {
                server.may_flush = true;
                server.endpoint.handle_datagram(now, from, bytes);
            }
            Self::Channels(server) => server.handle_datagram(now, from, bytes),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Plain(server) => {
                server.may_flush = true;
                server.endpoint.handle_timeout(now);
            }
            Self::Channels(server) => server.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Plain(server) => {
                server.flush_streams(now);
                server.endpoint.poll_transmit(now, out)
            }
            Self::Channels(server) => server.poll_transmit(now, out),
        }
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        match self {
            Self::Plain(server) => {
                while server.events.is_empty()
                    && let Some(event) = server.endpoint.poll_event()
                {
                    server.handle_event(event);
                }
                server.events.pop_front()
            }
            Self::Channels(server) => server.poll_event(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Plain(server) => server.endpoint.poll_timeout(),
            Self::Channels(server) => server.poll_timeout(),
        }
    }
}

impl fmt::Debug for ServerMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(server) => fmt::Debug::fmt(&server.endpoint, f),
            Self::Channels(server) => fmt::Debug::fmt(server, f),
        }
    }
}

/// Copies a received message into `message`. Returns its channel.
#[inline]
pub(crate) fn copy_message(received: Option<(ChannelIndex, &[u8])>, message: &mut Vec<u8>) -> Option<ChannelIndex> {
    let (channel, bytes) = received?;
    message.clear();
    message.extend_from_slice(bytes);
    Some(channel)
}
