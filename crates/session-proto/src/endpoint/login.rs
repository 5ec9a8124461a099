//! Logins, and the first message that turns a login into a player (S12 to S20).

use super::{
    Endpoint, MAX_EVENTS,
    dispatch::Data,
    half_open::{HalfOpenLogin, LoginId},
    login_admission::LoginTrust,
    slot_table::PlayerSlot,
};
use crate::{
    Cipher, Connection, DisconnectReason, EncryptionPolicy, NewPlayer, PlayerId,
    connection::{Codec, DataDisposition, LoginRtt, Protection, Side},
    crypto::{self, HpkeMode, PublicKey, Secret},
    reason,
};
use rallypoint_limit::Lan;
#[cfg(feature = "rsa")]
use rallypoint_wire::session::KEY_FIELD;
use rallypoint_wire::session::{
    Grant, KeyOffer, Login, LoginCookie, LoginSuccess, REVISION, Rand, STREAM_SUFFIX, SlotIndex, Uid,
    channels::GAME_SUFFIX,
};
use std::{net::SocketAddr, time::Instant};

/// Why a login gets no success.
enum Refusal {
    /// The login is refused, with a reason for the player.
    Reason(String),
    /// The server is overloaded: there is no answer, and the client tries again.
    Overloaded,
    /// The server is overloaded: the client is to try again with this cookie (W83).
    Cookie(LoginCookie),
}

/// A login that this server can answer.
struct CheckedLogin<'a> {
    username: &'a str,
    game: &'a str,
    /// Set if it is encrypted.
    suite: Option<Suite>,
}

/// How an encrypted login is answered.
enum Suite {
    /// HPKE to this key. `is_pinned`: the client accepts only the holder of this server's static key.
    Hpke { public: PublicKey, is_pinned: bool },
    #[cfg(feature = "rsa")]
    Rsa(Box<[u8; KEY_FIELD]>),
}

impl Endpoint {
    pub(super) fn handle_login(&mut self, now: Instant, from: SocketAddr, bytes: &[u8], login: &Login<'_>) {
        let id = (from, crypto::sha256(bytes));
        // The same login from the same address gets the same answer (S12).
        if let Some(known) = self.half_open.by_login(&id) {
            known.is_answered_once = false;
            known.answered_at = now;
            let reply = known.reply.clone();
            return self.grant_login(from, reply);
        }
        match self.promise_slot(now, id, bytes, login) {
            Ok(reply) => self.grant_login(from, reply),
            Err(Refusal::Overloaded) => {}
            Err(Refusal::Cookie(cookie)) => {
                self.stats.logins_deferred += 1;
                self.stateless.send_cookie(from, &id.1, cookie);
            }
            Err(Refusal::Reason(reason)) => {
                self.stats.logins_refused += 1;
                self.stateless.refuse_login(now, from, bytes.len(), &reason);
            }
        }
    }

    fn grant_login(&mut self, to: SocketAddr, reply: Vec<u8>) {
        if self.stateless.push(to, reply) {
            self.stats.logins_granted += 1;
        }
    }

    /// Adds a login to the half-open ones and returns its answer, or the reason to refuse it.
    fn promise_slot(&mut self, now: Instant, id: LoginId, bytes: &[u8], login: &Login<'_>) -> Result<Vec<u8>, Refusal> {
        let CheckedLogin { username, game, suite } = self.check_login(login)?;
        if self.events.len() >= MAX_EVENTS {
            return Err(Refusal::Overloaded);
        }
        // The session that this address has ends when the new one proves itself (S13), so its slot can be promised.
        let own = self.addresses.owners.get(&id.0).copied();
        if !self.allocator.has_room_for(Lan::of(id.0.ip()), own) {
            return Err(Refusal::new(reason::TOO_MANY));
        }
        let trust = match &suite {
            Some(suite) => self.admit_encrypted(now, &id, suite, login.key.and_then(LoginCookie::of_login))?,
            None => LoginTrust::Unknown,
        };
        let is_pinned = matches!(suite, Some(Suite::Hpke { is_pinned: true, .. }));
        let ciphers = suite.as_ref().map_or(&[][..], |suite| self.ciphers(suite));
        let index = self.choose_slot(now, trust, own).ok_or_else(|| Refusal::new(reason::FULL))?;
        let uid = self.new_uid();
        let rand = self.rng.rand();
        let mut reply = Vec::new();
        let secret = match suite {
            None => {
                LoginSuccess { index, uid, grant: Grant::Plain(rand) }.emit(&mut reply);
                None
            }
            Some(suite) => Some(self.emit_encrypted_success(bytes, &suite, index, uid, rand, &mut reply)?),
        };
        self.half_open.insert(
            now,
            HalfOpenLogin {
                id,
                index,
                uid,
                rand,
                secret,
                ciphers,
                trust,
                is_pinned,
                username: username.to_owned(),
                game: game.to_owned(),
                reply: reply.clone(),
                answered_at: now,
                is_answered_once: true,
            },
        );
        Ok(reply)
    }

    /// Checks what a login requests, without regard to the state of the server.
    fn check_login<'a>(&self, login: &Login<'a>) -> Result<CheckedLogin<'a>, Refusal> {
        if login.revision != REVISION {
            return Err(Refusal::new(format!("this server supports revision {REVISION}")));
        }
        let (username, game) = login.check().map_err(|error| Refusal::new(error.to_string()))?;
        if !self.config.games.iter().any(|known| known == game) {
            return Err(Refusal::new(game_refusal(&self.config.games, game)));
        }
        match (self.config.encryption, login.key) {
            (EncryptionPolicy::Plain, Some(_)) => return Err(Refusal::new("this server does not support encryption")),
            (EncryptionPolicy::Encrypted, None) => return Err(Refusal::new("this server requires encryption")),
            _ => {}
        }
        let offer = login.key.map(KeyOffer::parse).transpose().map_err(|error| Refusal::new(error.to_string()))?;
        let suite = offer.map(|offer| self.check_offer(offer)).transpose()?;
        Ok(CheckedLogin { username, game, suite })
    }

    /// Chooses the slot that a login is promised. `own`: the slot that its address has already.
    fn choose_slot(&mut self, now: Instant, trust: LoginTrust, own: Option<SlotIndex>) -> Option<SlotIndex> {
        let half_open = &self.half_open;
        // Promises to others are disregarded only if there is no slot without any.
        let unpromised =
            self.allocator.choose_unpromised(now, |index| half_open.is_promised(index, LoginTrust::Unknown));
        let is_promised = |index| half_open.is_promised(index, trust);
        let last_promise = |index| half_open.last_promise(index);
        unpromised.or_else(|| self.allocator.choose(now, is_promised, own, last_promise))
    }

    /// Charges an encrypted login to the budget (W65), or answers it with a cookie (W83).
    fn admit_encrypted(
        &mut self,
        now: Instant,
        id: &LoginId,
        suite: &Suite,
        cookie: Option<LoginCookie>,
    ) -> Result<LoginTrust, Refusal> {
        self.admission.admit(now, id, cookie).map_err(|overloaded| match suite {
            Suite::Hpke { .. } if !overloaded.has_cookie => {
                Refusal::Cookie(self.admission.cookie(now, id.0.ip(), &mut self.rng))
            }
            // The key field of RSA has no room for a cookie.
            _ => Refusal::Overloaded,
        })
    }

    /// Appends the success of an encrypted login, and returns the secret that it seals.
    fn emit_encrypted_success(
        &mut self,
        login: &[u8],
        suite: &Suite,
        index: SlotIndex,
        uid: Uid,
        rand: Rand,
        out: &mut Vec<u8>,
    ) -> Result<Secret, Refusal> {
        let secret = self.rng.secret();
        let field = match suite {
            Suite::Hpke { public, is_pinned } => {
                let ephemeral = self.rng.key();
                let mode = match &self.config.static_key {
                    Some(own) if *is_pinned => HpkeMode::Auth(own),
                    _ => HpkeMode::Base,
                };
                let info = crypto::hpke_info(login, index, uid);
                let offers_aes = self.ciphers(suite).contains(&Cipher::Aes256Gcm);
                let rand = if offers_aes { crypto::aes_offer(&secret) } else { rand };
                crypto::seal_grant(&mode, public, &ephemeral, &info, &secret, rand)
            }
            #[cfg(feature = "rsa")]
            Suite::Rsa(modulus) => crypto::rsa::seal_grant(modulus, &secret, rand, &mut self.rng),
        };
        let field = field.ok_or_else(|| Refusal::new("the public key is invalid"))?;
        LoginSuccess { index, uid, grant: Grant::Encrypted(&field) }.emit(out);
        Ok(secret)
    }

    /// The ciphers from which a client can choose. The one of S30 needs no offer; the other has one only in HPKE (W84).
    fn ciphers(&self, suite: &Suite) -> &'static [Cipher] {
        match suite {
            Suite::Hpke { .. } if self.config.connection.aes_256_gcm => &[Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305],
            _ => &[Cipher::ChaCha20Poly1305],
        }
    }

    fn check_offer(&self, offer: KeyOffer<'_>) -> Result<Suite, Refusal> {
        match offer {
            KeyOffer::Base { public } => Ok(Suite::Hpke { public: PublicKey::new(*public), is_pinned: false }),
            KeyOffer::Auth { public, pin } => match &self.config.static_key {
                Some(own) if own.public().pin() == pin => {
                    Ok(Suite::Hpke { public: PublicKey::new(*public), is_pinned: true })
                }
                _ => Err(Refusal::new("this server has another key")),
            },
            #[cfg(feature = "rsa")]
            KeyOffer::Rsa { modulus } if self.config.rsa_1024 => Ok(Suite::Rsa(Box::new(*modulus))),
            KeyOffer::Rsa { .. } => Err(Refusal::new("RSA-1024 logins are disabled")),
        }
    }

    /// A UID that no half-open login has.
    fn new_uid(&mut self) -> Uid {
        loop {
            let uid = self.rng.uid();
            if !self.half_open.contains(uid) {
                return uid;
            }
        }
    }

    /// Handles data of no player: it may be the first message after a login (S14).
    pub(super) fn handle_first_data(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        // It must come from the address of the login: otherwise a client could place a session at an address that it only
        // claims to have.
        let is_match = |login: &&HalfOpenLogin| login.index == data.index && login.id.0 == from;
        let Some(login) = self.half_open.by_uid(data.uid).filter(is_match) else {
            return self.handle_unknown_session(now, from, length, data);
        };
        let protection = match (&login.secret, &data.seal_input) {
            (None, _) => Some(Protection::Plain(login.rand)),
            // The cipher with which the client has sealed its first message is that of the session (W84).
            (Some(secret), Some(input)) => crypto::opening_cipher(login.ciphers, secret, input, data.bytes)
                .map(|cipher| Protection::for_server(cipher, secret)),
            (Some(_), None) => None,
        };
        let Some(protection) = protection.filter(|protection| data.has_right_rand(protection)) else {
            self.stats.strays += 1;
            return;
        };
        let at_least = now.saturating_duration_since(login.answered_at);
        let rtt = LoginRtt { at_least, is_exact: login.is_answered_once };
        let codec = Codec { side: Side::Server, index: data.index, uid: data.uid, protection };
        let mut connection = Connection::new(now, &self.config.connection, codec, from, rtt);
        let disposition =
            connection.handle_data(now, data.number, data.bytes, data.seal_input.as_ref(), self.memory.allowance());
        if matches!(disposition, DataDisposition::Unproven | DataDisposition::Duplicate) {
            self.stats.strays += 1;
            return;
        }
        let own = self.addresses.owners.get(&from).copied();
        let has_room = self.allocator.has_room_for(Lan::of(from.ip()), own);
        let is_available = self.allocator.is_free(data.index) || own == Some(data.index);
        if !has_room || !is_available {
            // The slot was promised to another login as well, which was faster: the client has to log in again.
            self.half_open.remove(data.uid);
            let text = if has_room { reason::SLOT_TAKEN } else { reason::TOO_MANY };
            return self.stateless.disconnect(from, length, text);
        }
        connection.count_received(length);
        connection.seed_optimistic_ack_detection(self.rng.u64());
        connection.set_poll_interval(self.poll_interval);
        self.add_player(now, from, connection, data.uid);
    }

    fn add_player(&mut self, now: Instant, from: SocketAddr, mut connection: Connection, uid: Uid) {
        let Some(login) = self.half_open.remove(uid) else { return };
        let HalfOpenLogin { index, username, mut game, is_pinned, .. } = login;
        let Some(session) = self.new_session(now, &mut game, &mut connection) else { return };
        // The client at this address has restarted (S13).
        if let Some(old) = self.addresses.owners.remove(&from) {
            self.withdraw_claim(old);
            if let Some(claimant) = self.take_contest(old) {
                self.reject_claim(claimant);
            }
            if let Some(slot) = self.slots.get_mut(old) {
                slot.connection.end(DisconnectReason::Replaced);
            }
            self.collect_events(now, old);
        }
        let player = PlayerId { index, uid };
        let new = NewPlayer { player, username, game, is_pinned };
        self.allocator.take(index, Lan::of(from.ip()));
        self.admission.on_proven(from.ip());
        self.addresses.owners.insert(from, index);
        self.slots.insert(index, PlayerSlot::new(connection, session, new));
        self.start_session(now, index);
        self.update_slot(index);
        self.collect_events(now, index);
    }
}

/// Why a login for a game that is not in the list is refused: a peer that lacks only what is above the session learns so.
fn game_refusal(games: &[String], game: &str) -> &'static str {
    match games.iter().find(|known| base_game(known) == base_game(game)) {
        None => "this server runs another game",
        Some(known) if known.ends_with(GAME_SUFFIX) => "this server requires channels",
        Some(known) if known.ends_with(STREAM_SUFFIX) => "this server requires a stream",
        Some(_) if game.ends_with(GAME_SUFFIX) => "this server has no channels",
        Some(_) => "this server has no stream",
    }
}

/// A game without what names the layer above the session.
fn base_game(game: &str) -> &str {
    game.strip_suffix(GAME_SUFFIX).or_else(|| game.strip_suffix(STREAM_SUFFIX)).unwrap_or(game)
}

impl Refusal {
    fn new(reason: impl Into<String>) -> Self {
        Self::Reason(reason.into())
    }
}
