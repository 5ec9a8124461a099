//! The client side: a login, and then one connection.

use crate::{
    ClientConfig, ConfigError, Connection, Encryption, PublicKey, Reason, SendError, StaticKey,
    connection::{Channel, Notice, Protection, Side},
    crypto,
    entropy::Entropy,
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::{
    Control, Grant, KEY_FIELD, KeyOffer, Login, LoginSuccess, Name, REVISION, ServerDatagram, Text,
};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A login is repeated after this, then after half as much again each time, up to the second (S12).
const REPEAT_AFTER: Duration = Duration::from_millis(100);
const REPEAT_AT_LEAST: Duration = Duration::from_secs(1);

/// A bad login counts only if no success comes for so long (S19).
const BAD_LOGIN_WAITS: Duration = Duration::from_millis(250);

/// How long a client waits before it logs in again after its session was lost.
const RECONNECT_AFTER: Duration = Duration::from_millis(250);

/// So many events may wait to be polled.
const MOST_EVENTS: usize = 64;

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server let us in.
    Connected,
    /// There are messages to [`recv`](Client::recv).
    Readable,
    /// After [`SendError::WouldBlock`]: there is room again.
    Writable,
    /// A datagram says that the server ends the session. Nothing proves it: either [`Disconnected`](Self::Disconnected)
    /// follows, or it was forged and nothing does (S28).
    Closing,
    /// The session is over. With [`ClientConfig::reconnect`] another login follows, unless one side wanted the end.
    Disconnected(Reason),
    /// There is no session.
    LoginFailed(LoginError),
}

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server did not answer in time.
    #[error("no answer from the server")]
    NoAnswer,
    /// The server said no, for this reason. The text is the server's: make it harmless before it is shown.
    #[error("the server refuses: {0}")]
    Refused(String),
}

/// The client side of a session.
///
/// * Getters: [`connection`](Self::connection), [`is_connected`](Self::is_connected),
///   [`undelivered`](Self::undelivered), [`server`](Self::server).
/// * In: [`handle_datagram`](Machine::handle_datagram), [`handle_timeout`](Machine::handle_timeout).
/// * Commands: [`send`](Self::send), [`recv`](Self::recv), [`close`](Self::close).
/// * Out: after each call in and each command, drain [`poll_transmit`](Machine::poll_transmit), then
///   [`poll_event`](Machine::poll_event), and then ask [`poll_timeout`](Machine::poll_timeout) when to come back.
pub struct Client {
    config: ClientConfig,
    server: SocketAddr,
    entropy: Entropy,
    state: State,
    events: VecDeque<ClientEvent>,
    readable: bool,
    /// Its owner has had enough: it does not come back.
    is_leaving: bool,
    /// Messages of sessions that are over.
    undelivered: usize,
}

enum State {
    LoggingIn(Box<Attempt>),
    Connected(Box<Connection>),
    /// Waiting to log in again.
    Resting(Instant),
    Over,
}

/// A login that is being tried.
struct Attempt {
    datagram: Vec<u8>,
    key: LoginKey,
    gives_up_at: Instant,
    first_sent: Option<Instant>,
    /// How often it was sent.
    times: u32,
    next: Instant,
    wait: Duration,
    bad: Option<(Instant, String)>,
}

/// The key that belongs to a login.
enum LoginKey {
    Plain,
    Modern(StaticKey),
    #[cfg(feature = "rsa")]
    Rsa(Box<crypto::rsa::RsaKey>),
}

impl Client {
    /// Starts to log in. The seed has to be one that nobody can guess.
    ///
    /// # Errors
    /// If a field of the configuration is out of its range.
    pub fn new(now: Instant, server: SocketAddr, config: ClientConfig, seed: [u8; 32]) -> Result<Self, ConfigError> {
        config.validate()?;
        let mut client = Self {
            config,
            server,
            entropy: Entropy::new(seed),
            state: State::Over,
            events: VecDeque::new(),
            readable: false,
            is_leaving: false,
            undelivered: 0,
        };
        client.log_in(now);
        Ok(client)
    }

    /// The connection, while there is one.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        if let State::Connected(connection) = &self.state { Some(connection) } else { None }
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection().is_some()
    }

    /// Whether it is all over: nothing will happen any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// How many messages the server has not acknowledged: those of this connection that are under way, and those of earlier
    /// ones that may never have arrived.
    #[must_use]
    pub fn undelivered(&self) -> usize {
        self.undelivered + self.connection().map_or(0, Connection::undelivered)
    }

    /// Where the server is.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Sends a message to the server, reliably.
    ///
    /// # Errors
    /// If it does not fit into a datagram, there is no connection, or the window is full.
    pub fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), SendError> {
        match &mut self.state {
            State::Connected(connection) => connection.send(now, message, usize::MAX),
            State::LoggingIn(_) | State::Resting(_) => Err(SendError::NotConnected),
            State::Over => Err(SendError::Closed),
        }
    }

    /// The next message. Its bytes stay until the next call.
    pub fn recv(&mut self) -> Option<&[u8]> {
        let State::Connected(connection) = &mut self.state else { return None };
        connection.make_room();
        connection.recv()
    }

    /// Delivers what is left, says goodbye, and ends the session; or gives up to log in.
    pub fn close(&mut self, now: Instant) {
        self.is_leaving = true;
        match &mut self.state {
            State::Connected(connection) => connection.close(now, ""),
            State::LoggingIn(_) | State::Resting(_) => self.state = State::Over,
            State::Over => {}
        }
    }

    fn log_in(&mut self, now: Instant) {
        let (key, field) = self.fresh_key();
        let (username, game) = (Name::cut(&self.config.username), Text::cut(&self.config.game));
        let mut datagram = Vec::new();
        Login { revision: REVISION, key: field.as_ref(), username, game }.emit(&mut datagram);
        self.state = State::LoggingIn(Box::new(Attempt {
            datagram,
            key,
            gives_up_at: now + self.config.login_timeout,
            first_sent: None,
            times: 0,
            next: now,
            wait: REPEAT_AFTER,
            bad: None,
        }));
    }

    /// A key for one login, and what the login says about it.
    fn fresh_key(&mut self) -> (LoginKey, Option<[u8; KEY_FIELD]>) {
        let pin = match &self.config.encryption {
            Encryption::Plain => return (LoginKey::Plain, None),
            Encryption::Encrypted => None,
            Encryption::Pinned(server) => Some(server.pin()),
            #[cfg(feature = "rsa")]
            Encryption::Rsa1024 => loop {
                if let Some(key) = crypto::rsa::RsaKey::new(&mut self.entropy) {
                    let field = *key.modulus();
                    return (LoginKey::Rsa(Box::new(key)), Some(field));
                }
            },
        };
        let key = self.entropy.key();
        let public = key.public();
        let field = match pin {
            Some(pin) => KeyOffer::Auth { public: public.as_bytes(), pin }.to_field(),
            None => KeyOffer::Base { public: public.as_bytes() }.to_field(),
        };
        (LoginKey::Modern(key), Some(field))
    }

    fn handle_success(&mut self, now: Instant, success: &LoginSuccess<'_>) {
        let State::LoggingIn(attempt) = &self.state else { return };
        // A client never falls back by itself (S20): a plain success for an encrypted login is not looked at.
        let protection = match (&attempt.key, success.grant) {
            (LoginKey::Plain, Grant::Plain(rand)) => Protection::Plain(rand),
            (LoginKey::Modern(key), Grant::Encrypted(field)) => {
                let pinned: Option<&PublicKey> = match &self.config.encryption {
                    Encryption::Pinned(server) => Some(server),
                    _ => None,
                };
                let info = crypto::info(&attempt.datagram, success.index, success.uid);
                let Some((secret, _)) = crypto::accept(pinned, key, field, &info) else { return };
                Protection::of_client(&secret)
            }
            #[cfg(feature = "rsa")]
            (LoginKey::Rsa(key), Grant::Encrypted(field)) => {
                let Some((secret, _)) = key.accept(field) else { return };
                Protection::of_client(&secret)
            }
            _ => return,
        };
        let rtt = attempt.first_sent.filter(|_| attempt.times == 1).map(|at| now.saturating_duration_since(at));
        let channel = Channel { side: Side::Client, index: success.index, uid: success.uid, protection };
        let mut connection = Connection::new(now, &self.config.connection, channel, self.server, rtt);
        connection.send_proof(now);
        self.state = State::Connected(Box::new(connection));
        self.tell(ClientEvent::Connected);
    }

    fn handle_session(&mut self, now: Instant, length: usize, datagram: &ServerDatagram<'_>) {
        let State::Connected(connection) = &mut self.state else { return };
        connection.count_received(length);
        match datagram {
            ServerDatagram::Data(data) => {
                connection.handle_data(now, data.number, data.payload.as_bytes(), None, usize::MAX);
            }
            ServerDatagram::EncryptedData(data) => {
                let input = data.seal_input(connection.index(), connection.uid());
                connection.handle_data(now, data.number, data.sealed.as_bytes(), Some(&input), usize::MAX);
            }
            ServerDatagram::Control(Control::Ack(numbers)) => connection.handle_ack(now, *numbers),
            ServerDatagram::Control(Control::Resend(numbers)) => connection.handle_resend(now, *numbers),
            ServerDatagram::Control(Control::Keepalive) => connection.handle_keepalive(now),
            ServerDatagram::Control(Control::KeepaliveAck) => connection.handle_keepalive_ack(now),
            ServerDatagram::Disconnect(reason) => connection.handle_disconnect(now, &reason.to_str_lossy()),
            ServerDatagram::Info(_)
            | ServerDatagram::Team(_)
            | ServerDatagram::Player(_)
            | ServerDatagram::LoginSuccess(_)
            | ServerDatagram::BadLogin(_) => {}
        }
        self.collect(now);
    }

    fn collect(&mut self, now: Instant) {
        while let State::Connected(connection) = &mut self.state
            && let Some(notice) = connection.poll_notice()
        {
            match notice {
                Notice::Readable if self.readable => {}
                Notice::Readable => {
                    self.readable = true;
                    self.events.push_back(ClientEvent::Readable);
                }
                Notice::Writable => self.tell(ClientEvent::Writable),
                Notice::Closing => self.tell(ClientEvent::Closing),
                Notice::Closed(reason) => self.end(now, reason),
            }
        }
    }

    fn end(&mut self, now: Instant, reason: Reason) {
        let unwanted = match &reason {
            Reason::ClosedByPeer(text) => text == "unknown session" || text == "slot taken",
            Reason::Closed => false,
            _ => true,
        };
        let again = self.config.reconnect && unwanted && !self.is_leaving;
        self.undelivered = self.undelivered();
        self.state = if again { State::Resting(now + RECONNECT_AFTER) } else { State::Over };
        self.events.push_back(ClientEvent::Disconnected(reason));
    }

    /// Events that may come any number of times are dropped when nobody polls.
    fn tell(&mut self, event: ClientEvent) {
        if self.events.len() < MOST_EVENTS {
            self.events.push_back(event);
        }
    }
}

impl Machine for Client {
    type Event = ClientEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        if from != self.server {
            return;
        }
        let Ok(datagram) = ServerDatagram::parse(bytes) else { return };
        match (&mut self.state, &datagram) {
            (State::LoggingIn(_), ServerDatagram::LoginSuccess(success)) => self.handle_success(now, success),
            (State::LoggingIn(attempt), ServerDatagram::BadLogin(reason)) if attempt.bad.is_none() => {
                attempt.bad = Some((now + BAD_LOGIN_WAITS, reason.to_str_lossy().into_owned()));
            }
            (State::Connected(_), _) => self.handle_session(now, bytes.len(), &datagram),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::LoggingIn(attempt) => {
                let failed = match attempt.bad.take_if(|(at, _)| now >= *at) {
                    Some((_, reason)) => Some(LoginError::Refused(reason)),
                    None if now >= attempt.gives_up_at => Some(LoginError::NoAnswer),
                    None => None,
                };
                if let Some(error) = failed {
                    let again = self.config.reconnect && error == LoginError::NoAnswer;
                    self.state = if again { State::Resting(now + RECONNECT_AFTER) } else { State::Over };
                    self.tell(ClientEvent::LoginFailed(error));
                }
            }
            State::Connected(connection) => {
                connection.handle_timeout(now);
                self.collect(now);
            }
            State::Resting(until) if now >= *until => self.log_in(now),
            State::Resting(_) | State::Over => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match &mut self.state {
            State::LoggingIn(attempt) if now >= attempt.next => {
                attempt.first_sent.get_or_insert(now);
                attempt.times += 1;
                attempt.next = now + attempt.wait;
                attempt.wait = (attempt.wait * 3 / 2).min(REPEAT_AT_LEAST);
                out.extend_from_slice(&attempt.datagram);
                Some(Transmit::one(self.server, attempt.datagram.len()))
            }
            State::Connected(connection) => {
                let transmit = connection.poll_transmit(now, out);
                if transmit.is_none() {
                    self.collect(now);
                }
                transmit
            }
            _ => None,
        }
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.events.pop_front()?;
        if event == ClientEvent::Readable {
            self.readable = false;
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::LoggingIn(attempt) => {
                let bad = attempt.bad.as_ref().map(|(at, _)| *at);
                [Some(attempt.next), Some(attempt.gives_up_at), bad].into_iter().flatten().min()
            }
            State::Connected(connection) => connection.poll_timeout(),
            State::Resting(until) => Some(*until),
            State::Over => None,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::LoggingIn(_) => "logging in",
            State::Connected(_) => "connected",
            State::Resting(_) => "resting",
            State::Over => "over",
        };
        f.debug_struct("Client").field("server", &self.server).field("state", &state).finish_non_exhaustive()
    }
}
