//! From the first message of a login to a player who has joined: the agreement on channels, the token, the application's decision.

use super::{Endpoint, slot_table::PlayerSlot};
use crate::{
    ChannelFault, Connection, DisconnectReason, LoginRequest, PlayerId, ServerEvent, TokenClaims, TokenError,
    channels::parse_hello, connection::Side, session::Session,
};
use rallypoint_wire::session::{STREAM_SUFFIX, SlotIndex};
use std::time::Instant;

impl Endpoint {
    /// Accepts a player after [`ServerEvent::LoginRequest`]; [`ServerEvent::Connected`] follows. Returns false if there is no
    /// such request.
    pub fn accept_login(&mut self, now: Instant, player: PlayerId) -> bool {
        let is_awaiting = |slot: &&mut PlayerSlot| slot.session.is_awaiting_decision();
        let Some(slot) = self.slots.of_mut(player).filter(is_awaiting) else { return false };
        if let Some(table) = self.config.layer.table() {
            slot.session.accept(now, &mut slot.connection, table);
        }
        self.events.extend(slot.new.take().map(ServerEvent::Connected));
        // Messages that arrived after the hello.
        slot.raise_message(&mut self.events);
        slot.update(player.index, &mut self.ready, &mut self.memory);
        true
    }

    /// The session of a player whose login names this game, which is cut to the name without the layer.
    pub(super) fn new_session(&self, now: Instant, game: &mut String, connection: &mut Connection) -> Option<Session> {
        let layer = &self.config.layer;
        if let Some(base) = game.strip_suffix(layer.game_suffix()) {
            game.truncate(base.len());
            return Some(Session::new(now, layer, Side::Server, connection, self.config.connection.window));
        }
        if let Some(base) = game.strip_suffix(STREAM_SUFFIX) {
            game.truncate(base.len());
        }
        Some(Session::with_one_channel(layer.table()?, self.config.plain_channel?))
    }

    /// A player has logged in. With channels, the agreement on the table comes first.
    pub(super) fn start_session(&mut self, now: Instant, index: SlotIndex) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let player = slot.player();
        if slot.session.is_open() {
            self.events.extend(slot.new.take().map(ServerEvent::Connected));
        } else if slot.session.is_awaiting_decision() {
            if self.tokens.is_some() {
                let missing = ChannelFault::Token(TokenError::Missing);
                return slot.session.abort(now, &mut slot.connection, missing);
            }
            self.decide(now, player, None);
        }
    }

    /// Reads a player's hello.
    pub(super) fn handle_hello(&mut self, now: Instant, index: SlotIndex) {
        let Self { slots, tokens, config, .. } = self;
        let Some(slot) = slots.get_mut(index) else { return };
        let (Some(new), Some(table), Some(payload)) = (&slot.new, config.layer.table(), slot.connection.recv()) else {
            return;
        };
        let checked = parse_hello(table, payload).and_then(|hello| match tokens {
            None => Ok(None),
            Some(_) if !new.is_pinned => Err(ChannelFault::Token(TokenError::NotPinned)),
            Some((verifier, server)) => {
                let claims = verifier.verify(now, server, &new.username, hello.token);
                claims.map(Some).map_err(ChannelFault::Token)
            }
        });
        match checked {
            Ok(token) => {
                slot.session.await_decision();
                let player = slot.player();
                self.decide(now, player, token);
            }
            Err(fault) => slot.session.abort(now, &mut slot.connection, fault),
        }
    }

    /// The player's login is in order: the application decides, or it is accepted at once.
    fn decide(&mut self, now: Instant, player: PlayerId, token: Option<TokenClaims>) {
        if !self.config.decides_logins {
            self.accept_login(now, player);
            return;
        }
        if let Some(slot) = self.slots.of_mut(player)
            && let Some(new) = slot.new.clone()
        {
            slot.is_requested = true;
            self.events.push_back(ServerEvent::LoginRequest(LoginRequest { new, token }));
        }
    }

    /// Counts a session that ended because of a fault of the player.
    pub(super) fn count_fault(&mut self, reason: &DisconnectReason) {
        let DisconnectReason::Channels(fault) = reason else { return };
        let counter = match fault {
            ChannelFault::NoHello | ChannelFault::Version(_) | ChannelFault::Table(_) => &mut self.stats.tables_refused,
            ChannelFault::Token(_) => &mut self.stats.tokens_refused,
            _ => &mut self.stats.channel_faults,
        };
        *counter += 1;
    }
}
