//! The sessions of players from the login to the end, as events of the endpoint report it.

use super::{ChannelServer, LoginRequest, MAX_ENDED, MAX_EVENTS};
use crate::{
    DisconnectReason, NewPlayer, PlayerId, ServerEvent,
    channels::{
        ChannelFault, TokenClaims, TokenError,
        plain_session::PlainSession,
        player_session::{Layer, PlayerSession},
        session::{ChannelSession, parse_hello},
    },
    connection::Side,
};
use rallypoint_machine::Machine;
use rallypoint_wire::session::{STREAM_SUFFIX, channels::GAME_SUFFIX};

impl ChannelServer {
    /// Turns the events of the endpoint into those of the channels.
    #[inline]
    pub(super) fn handle_events(&mut self) {
        while self.endpoint.has_events()
            && let Some(event) = self.endpoint.poll_event()
        {
            self.handle_event(event);
        }
    }

    /// The next event, if there is one.
    #[inline(never)]
    pub(super) fn next_event(&mut self) -> Option<ServerEvent> {
        // Most events need no queue: messages of a player who has joined.
        while self.events.is_empty() {
            match self.endpoint.poll_event()? {
                ServerEvent::Message(player) if self.is_open(player) => return Some(ServerEvent::Message(player)),
                event => self.handle_event(event),
            }
        }
        let event = self.events.pop_front()?;
        if let ServerEvent::Message(player) = event
            && let Some(own) = self.sessions.get_mut(player)
        {
            own.has_message_event = false;
        }
        Some(event)
    }

    /// Turns an event of the endpoint into those of the channels.
    #[inline(never)]
    fn handle_event(&mut self, event: ServerEvent) {
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

    fn start_session(&mut self, mut new: NewPlayer) {
        let player = new.player;
        let Some(connection) = self.endpoint.connection(player) else { return };
        let is_encrypted = connection.is_encrypted();
        let Some(game) = new.game.strip_suffix(GAME_SUFFIX) else { return self.start_plain_session(new) };
        new.game.truncate(game.len());
        let session = ChannelSession::new(self.now, &self.table, Side::Server, is_encrypted, self.window);
        self.sessions.insert(player, PlayerSession::new(Layer::Channels(Box::new(session)), new));
        self.wake(player);
    }

    /// A player without channels (W115).
    fn start_plain_session(&mut self, mut new: NewPlayer) {
        let Some(channel) = self.plain_channel else { return };
        if let Some(game) = new.game.strip_suffix(STREAM_SUFFIX) {
            new.game.truncate(game.len());
        }
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
            self.handle_hello(player);
        } else if own.layer.is_read() && !std::mem::replace(&mut own.has_message_event, true) {
            self.events.push_back(ServerEvent::Message(player));
        }
        self.drop_unread(player);
    }

    /// Drops the messages of a player who has left and whose messages are not read, because it was never accepted: otherwise the
    /// endpoint would not report the end of its session.
    fn drop_unread(&mut self, player: PlayerId) {
        let is_read = self.sessions.get(player).is_none_or(|own| own.layer.is_read());
        if !is_read && self.endpoint.connection(player).is_none() {
            while self.endpoint.recv(player).is_some() {}
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
        if let DisconnectReason::Channels(fault) = reason {
            self.faults.count(fault);
        }
        // A player who was never accepted has not joined, unless the application knows of the request.
        if own.new.is_some() && !(self.decides_logins && own.layer.is_known()) {
            self.remove_session(player);
            return;
        }
        // Messages of a session that this side ends are not read any more.
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
    pub(super) fn report_end(&mut self, player: PlayerId) {
        let is_read = |own: &PlayerSession| own.end.is_some() && !own.layer.is_readable();
        if self.sessions.get(player).is_some_and(is_read) {
            self.ended.retain(|ended| *ended != player);
            self.drop_ended(player);
        }
    }
}
