//! Logins of a client: their key, their repetition, and the success that answers them (S12, S19, S20).

use super::{Client, State};
use crate::{
    Cipher, Connection, Encryption, PublicKey, StaticKey,
    connection::{Codec, LoginRtt, Protection, Side},
    crypto,
};
use rallypoint_wire::session::{
    CookieReply, Grant, KEY_FIELD, KeyOffer, Login, LoginCookie, LoginSuccess, Name, REVISION, Text,
};
use std::time::{Duration, Instant};

/// Delay before a login is repeated the first time. It grows by half with each repetition, up to the maximum (S12).
const LOGIN_RETRY: Duration = Duration::from_millis(100);
pub(super) const MAX_LOGIN_RETRY: Duration = Duration::from_secs(1);

/// Time for which a refusal waits for a success that proves it to be forged (S19).
pub(super) const REFUSAL_DELAY: Duration = Duration::from_millis(250);

/// Position of the key field in a login with encryption.
const KEY_FIELD_AT: usize = 2;

/// Number of cookies that a login accepts: the first, and others if the address of the client or the key of the server changes.
const MAX_COOKIES: u32 = 4;

/// A login that waits for its answer.
pub(super) struct LoginAttempt {
    pub datagram: Vec<u8>,
    pub key: LoginKey,
    pub deadline: Instant,
    pub last_sent: Option<Instant>,
    /// Number of transmissions.
    pub transmissions: u32,
    pub retry_at: Instant,
    pub retry_delay: Duration,
    /// When a refusal becomes final, and its reason.
    pub refusal: Option<(Instant, String)>,
    /// Number of cookies that were accepted (W83).
    pub cookies: u32,
}

/// The client's key of one login.
pub(super) enum LoginKey {
    Plain,
    X25519(StaticKey),
    #[cfg(feature = "rsa")]
    Rsa(Box<RsaLoginKey>),
}

/// An RSA key of a login, which is replaced after a few fields that it does not open.
#[cfg(feature = "rsa")]
pub(super) struct RsaLoginKey {
    key: crypto::rsa::RsaKey,
    /// Number of fields that it did not open.
    failures: u32,
    /// Number of keys of this login so far, this one included.
    keys: u32,
}

impl Client {
    /// Starts a login.
    pub(super) fn log_in(&mut self, now: Instant) {
        let (key, field) = self.new_login_key();
        let username = Name::cut(&self.config.username);
        let game = Text::cut(&self.config.game);
        let mut datagram = Vec::new();
        Login { revision: REVISION, key: field.as_ref(), username, game }.emit(&mut datagram);
        self.state = State::LoggingIn(Box::new(LoginAttempt {
            datagram,
            key,
            deadline: now + self.config.login_timeout,
            last_sent: None,
            transmissions: 0,
            retry_at: now,
            retry_delay: LOGIN_RETRY,
            refusal: None,
            cookies: 0,
        }));
    }

    /// Counts a field that the key of an RSA login does not open. After a few of them the login starts over with a new key, and
    /// after a few keys no further field is opened: the login runs into its deadline.
    #[cfg(feature = "rsa")]
    fn handle_rsa_failure(&mut self, now: Instant) {
        let State::LoggingIn(attempt) = &mut self.state else { return };
        let deadline = attempt.deadline;
        let LoginKey::Rsa(rsa) = &mut attempt.key else { return };
        rsa.failures += 1;
        let keys = rsa.keys;
        if rsa.failures < crypto::rsa::MAX_FAILURES || keys >= crypto::rsa::MAX_KEYS {
            return;
        }
        self.log_in(now);
        if let State::LoggingIn(attempt) = &mut self.state
            && let LoginKey::Rsa(rsa) = &mut attempt.key
        {
            rsa.keys = keys + 1;
            attempt.deadline = deadline;
        }
    }

    /// A key for one login, and the key field of that login.
    fn new_login_key(&mut self) -> (LoginKey, Option<[u8; KEY_FIELD]>) {
        let pin = match &self.config.encryption {
            Encryption::Plain => return (LoginKey::Plain, None),
            Encryption::Encrypted => None,
            Encryption::Pinned(server) => Some(server.pin()),
            #[cfg(feature = "rsa")]
            Encryption::Rsa1024 => loop {
                if let Some(key) = crypto::rsa::RsaKey::new(&mut self.rng) {
                    let field = *key.modulus();
                    return (LoginKey::Rsa(Box::new(RsaLoginKey { key, failures: 0, keys: 1 })), Some(field));
                }
            },
        };
        let key = self.rng.key();
        let public = key.public();
        let field = match pin {
            Some(pin) => KeyOffer::Auth { public: public.as_bytes(), pin }.to_field(),
            None => KeyOffer::Base { public: public.as_bytes() }.to_field(),
        };
        (LoginKey::X25519(key), Some(field))
    }

    /// The server is overloaded, and answers a login with a cookie: the login is repeated with it at once, and then like every
    /// other. Only the receiver of the login knows its hash, so a third party cannot send a false cookie.
    fn handle_cookie(&mut self, now: Instant, reply: &CookieReply) {
        let State::LoggingIn(attempt) = &mut self.state else { return };
        let is_ours = crypto::sha256(&attempt.datagram).starts_with(&reply.login);
        let Some(field) = attempt.datagram.get_mut(KEY_FIELD_AT..).and_then(|rest| rest.first_chunk_mut()) else {
            return;
        };
        if !is_ours || attempt.cookies >= MAX_COOKIES || LoginCookie::of_login(field) == Some(reply.cookie) {
            return;
        }
        reply.cookie.add_to_login(field);
        attempt.cookies += 1;
        // Only this login is answered from now on.
        attempt.transmissions = 0;
        attempt.retry_at = now;
        attempt.retry_delay = LOGIN_RETRY;
    }

    pub(super) fn handle_login_success(&mut self, now: Instant, success: &LoginSuccess<'_>) {
        let State::LoggingIn(attempt) = &self.state else { return };
        // A client never falls back to plain by itself (S20): a plain success for an encrypted login is ignored.
        let protection = match (&attempt.key, success.grant) {
            (LoginKey::Plain, Grant::Plain(rand)) => Protection::Plain(rand),
            (LoginKey::X25519(key), Grant::Encrypted(field)) => {
                let pinned: Option<&PublicKey> = match &self.config.encryption {
                    Encryption::Pinned(server) => Some(server),
                    _ => None,
                };
                if let Some(reply) = CookieReply::parse(field) {
                    return self.handle_cookie(now, &reply);
                }
                let info = crypto::hpke_info(&attempt.datagram, success.index, success.uid);
                let Some((secret, rand)) = crypto::open_grant(pinned, key, field, &info) else { return };
                let has_aes = self.config.connection.aes_256_gcm && rand == crypto::aes_offer(&secret);
                let cipher = if has_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
                Protection::for_client(cipher, &secret)
            }
            #[cfg(feature = "rsa")]
            (LoginKey::Rsa(rsa), Grant::Encrypted(field)) => {
                if rsa.failures >= crypto::rsa::MAX_FAILURES {
                    return;
                }
                let Some((secret, _)) = rsa.key.open_grant(field, &mut self.rng) else {
                    return self.handle_rsa_failure(now);
                };
                Protection::for_client(Cipher::ChaCha20Poly1305, &secret)
            }
            _ => return,
        };
        let at_least = attempt.last_sent.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let rtt = LoginRtt { at_least, is_exact: attempt.transmissions == 1 };
        let codec = Codec { side: Side::Client, index: success.index, uid: success.uid, protection };
        let mut connection = Connection::new(now, &self.config.connection, codec, self.server, rtt);
        connection.seed_optimistic_ack_detection(self.rng.u64());
        connection.set_poll_interval(self.poll_interval);
        connection.send_login_proof(now);
        self.start_session(now, connection);
    }
}
