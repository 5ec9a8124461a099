//! Logins, and the first message that turns one into a player (S12 to S20).

use super::{
    Data, Endpoint, Event, MOST_EVENTS, Seat,
    half_open::{HalfOpen, LoginKey},
};
use crate::{
    Connection, EncryptionPolicy, Reason,
    connection::{Channel, Outcome, Protection, Side},
    crypto::{self, PublicKey, Sender},
};
use rallypoint_limit::Lan;
#[cfg(feature = "rsa")]
use rallypoint_wire::session::KEY_FIELD;
use rallypoint_wire::session::{Grant, KeyOffer, Login, LoginSuccess, REVISION, SlotIndex, Uid};
use std::{net::SocketAddr, time::Instant};

/// The slots of those who have just left count, too, so that nobody can wear out all of them by coming and going.
const TOO_MANY: &str = "too many from your address are here, or were within the last 10 seconds";

/// Why a login is refused, in words for the player.
enum Refusal {
    Reason(String),
    /// Too much to do: no answer, the client tries again.
    Busy,
}

/// How an encrypted login is to be answered.
enum Suite {
    /// To this key, and whether the client wants this server and no other.
    Modern(PublicKey, bool),
    #[cfg(feature = "rsa")]
    Rsa(Box<[u8; KEY_FIELD]>),
}

impl Endpoint {
    pub(super) fn handle_login(&mut self, now: Instant, from: SocketAddr, bytes: &[u8], login: &Login<'_>) {
        let key = (from, crypto::sha256(bytes));
        // The same login from the same address gets the same answer (S12).
        if let Some(known) = self.half_open.by_login(&key) {
            known.answered_once = false;
            let answer = known.answer.clone();
            return self.grant(from, answer);
        }
        match self.look_at_login(now, key, bytes, login) {
            Ok(answer) => self.grant(from, answer),
            Err(Refusal::Busy) => {}
            Err(Refusal::Reason(reason)) => {
                self.stats.logins_refused += 1;
                self.strangers.refuse(now, from, bytes.len(), &reason);
            }
        }
    }

    fn grant(&mut self, to: SocketAddr, answer: Vec<u8>) {
        if self.strangers.grant(to, answer) {
            self.stats.logins_granted += 1;
        }
    }

    fn look_at_login(
        &mut self,
        now: Instant,
        key: LoginKey,
        bytes: &[u8],
        login: &Login<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let refuse = |reason: &str| Err(Refusal::Reason(reason.to_owned()));
        if login.revision != REVISION {
            return refuse(&format!("this server speaks revision {REVISION}"));
        }
        let (username, game) = login.check().map_err(|error| Refusal::Reason(error.to_string()))?;
        if !self.config.games.iter().any(|known| known == game) {
            return refuse("another game is played here");
        }
        match (self.config.encryption, login.key) {
            (EncryptionPolicy::Plain, Some(_)) => return refuse("this server does not encrypt"),
            (EncryptionPolicy::Encrypted, None) => return refuse("this server wants encryption"),
            _ => {}
        }
        let offer = login.key.map(KeyOffer::parse).transpose().map_err(|error| Refusal::Reason(error.to_string()))?;
        if self.events.len() >= MOST_EVENTS {
            return Err(Refusal::Busy);
        }
        if !self.slots.has_room_for(now, Lan::of(key.0.ip())) {
            return refuse(TOO_MANY);
        }
        let chance = self.entropy.u64();
        let half_open = &self.half_open;
        let Some(index) = self.slots.choose(now, |index| half_open.is_promised(index), chance) else {
            return refuse("this server is full");
        };
        let uid = self.fresh_uid();
        let rand = self.entropy.rand();
        let mut answer = Vec::new();
        let secret = match offer {
            None => {
                LoginSuccess { index, uid, grant: Grant::Plain(rand) }.emit(&mut answer);
                None
            }
            Some(offer) => {
                let suite = self.check_offer(offer)?;
                if !self.encrypted_logins.take(now, 0) {
                    return Err(Refusal::Busy);
                }
                let secret = self.entropy.secret();
                let field = match suite {
                    Suite::Modern(public, auth) => {
                        let ephemeral = self.entropy.key();
                        let sender = match &self.config.static_key {
                            Some(own) if auth => Sender::Auth(own),
                            _ => Sender::Base,
                        };
                        let info = crypto::info(bytes, index, uid);
                        crypto::grant(&sender, &public, &ephemeral, &info, &secret, rand)
                    }
                    #[cfg(feature = "rsa")]
                    Suite::Rsa(modulus) => crypto::rsa::grant(&modulus, &secret, rand, &mut self.entropy),
                };
                let Some(field) = field else { return refuse("public key is not valid") };
                LoginSuccess { index, uid, grant: Grant::Encrypted(&field) }.emit(&mut answer);
                Some(secret)
            }
        };
        self.half_open.insert(
            now,
            HalfOpen {
                key,
                index,
                uid,
                rand,
                secret,
                username: username.to_owned(),
                game: game.to_owned(),
                answer: answer.clone(),
                answered_at: now,
                answered_once: true,
            },
        );
        Ok(answer)
    }

    fn check_offer(&self, offer: KeyOffer<'_>) -> Result<Suite, Refusal> {
        let refuse = |reason: &str| Err(Refusal::Reason(reason.to_owned()));
        match offer {
            KeyOffer::Base { public } => Ok(Suite::Modern(PublicKey::new(*public), false)),
            KeyOffer::Auth { public, pin } => match &self.config.static_key {
                Some(own) if own.public().pin() == pin => Ok(Suite::Modern(PublicKey::new(*public), true)),
                _ => refuse("this server has another key"),
            },
            #[cfg(feature = "rsa")]
            KeyOffer::Rsa { modulus } if self.config.rsa_1024 => Ok(Suite::Rsa(Box::new(*modulus))),
            KeyOffer::Rsa { .. } => refuse("RSA-1024 is obsolete and off"),
        }
    }

    /// A UID that no session and no login has.
    fn fresh_uid(&mut self) -> Uid {
        loop {
            let uid = self.entropy.uid();
            if !self.half_open.knows(uid) {
                return uid;
            }
        }
    }

    /// Data for no player: it may be the first of one (S14).
    pub(super) fn handle_first_data(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        // From another address than the login it would seat whoever it likes at an address that it only claims to have.
        let is_of = |login: &&HalfOpen| login.index == data.index && login.key.0 == from;
        let Some(login) = self.half_open.by_uid(data.uid).filter(is_of) else {
            return self.handle_unknown(now, from, length, data);
        };
        let protection = login.secret.as_ref().map_or(Protection::Plain(login.rand), Protection::of_server);
        if !data.is_proved_for(&protection) {
            self.stats.strays += 1;
            return;
        }
        let rtt = login.answered_once.then(|| now.saturating_duration_since(login.answered_at));
        let channel = Channel { side: Side::Server, index: data.index, uid: data.uid, protection };
        let mut connection = Connection::new(now, &self.config.connection, channel, from, rtt);
        let outcome = connection.handle_data(now, data.number, data.bytes, data.input.as_ref(), self.allowance());
        if outcome == Outcome::Foreign {
            self.stats.strays += 1;
            return;
        }
        let has_room = self.slots.has_room_for(now, Lan::of(from.ip()));
        if !has_room || !self.slots.is_free(now, data.index) {
            // Somebody else was promised the same slot and was faster: the client has to log in again.
            self.half_open.remove(data.uid);
            return self.strangers.send_away(from, length, if has_room { "slot taken" } else { TOO_MANY });
        }
        connection.count_received(length);
        self.seat_player(now, from, connection, data.uid);
    }

    fn seat_player(&mut self, now: Instant, from: SocketAddr, connection: Connection, uid: Uid) {
        let Some(login) = self.half_open.remove(uid) else { return };
        let index: SlotIndex = login.index;
        // Whoever had a session at this address has started anew (S13).
        if let Some(old) = self.by_address.remove(&from) {
            if let Some(Some(seat)) = self.seats.get_mut(usize::from(old)) {
                seat.connection.end(Reason::Replaced);
            }
            self.collect(now, old);
        }
        let seat = Seat { connection, is_ready: false, readable: false, writable: false, memory: 0 };
        let player = seat.player();
        self.slots.take(index, Lan::of(from.ip()));
        self.taken += 1;
        self.by_address.insert(from, index);
        if let Some(place) = self.seats.get_mut(usize::from(index)) {
            *place = Some(Box::new(seat));
        }
        self.events.push_back(Event::Connected { player, username: login.username, game: login.game });
        self.touch(index);
        self.collect(now, index);
    }
}
