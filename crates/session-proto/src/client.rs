//! The client side: a login, and then one connection.

mod backoff;
mod login;
mod messages;

use crate::{
    ClientConfig, ClientEvent, Connection, DisconnectReason, LoginError, SessionConfigError, SessionMachine,
    channels::{parse_hello, send_hello},
    connection::{ConnectionEvent, CopyBudget, Side},
    reason,
    rng::SecretRng,
    session::{Session, Unread},
};
use backoff::Backoff;
use login::{LoginAttempt, MAX_LOGIN_RETRY, REFUSAL_DELAY};
use messages::collect_receipts;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::{Control, ServerDatagram};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};
use zeroize::Zeroize;

/// Maximum number of events that wait to be polled.
const MAX_EVENTS: usize = 64;

/// Maximum number of ended sessions whose messages are kept until they are read.
const MAX_UNREAD_SESSIONS: usize = 2;

/// The client side of a session, which carries what [`ClientConfig::layer`] says.
///
/// * Getters: [`connection`](Self::connection), [`is_connected`](Self::is_connected), [`is_closed`](Self::is_closed),
///   [`is_delivered`](Self::is_delivered), [`undelivered`](Self::undelivered), [`server`](Self::server),
///   [`has_room`](Self::has_room).
/// * In: [`handle_datagram`](Machine::handle_datagram), [`handle_timeout`](Machine::handle_timeout).
/// * Commands: [`send`](Self::send), [`recv`](Self::recv), [`close`](Self::close).
/// * Out: after each call in and each command, drain [`poll_transmit`](Machine::poll_transmit), then
///   [`poll_event`](Machine::poll_event), and then ask [`poll_timeout`](Machine::poll_timeout) for the next deadline.
///
/// ```
/// use rallypoint_machine::Machine;
/// use rallypoint_session_proto::{Client, ClientConfig, ClientEvent, Encryption, LoginError};
/// use std::time::{Duration, Instant};
///
/// let now = Instant::now();
/// let server = "192.0.2.1:45555".parse()?;
/// let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("alice", "tag") };
/// let mut client = Client::new(now, server, config, [2; 32])?;
///
/// let mut out = Vec::new();
/// let transmit = client.poll_transmit(now, &mut out).ok_or("no login")?;
/// assert_eq!((transmit.to, &out[..]), (server, &b"\x03\x00alice\0tag"[..]));
///
/// // The login is repeated until the server answers or the time is up.
/// client.handle_timeout(now + Duration::from_secs(5));
/// assert_eq!(client.poll_event(), Some(ClientEvent::LoginFailed(LoginError::TimedOut)));
/// assert!(client.is_closed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Client {
    config: ClientConfig,
    server: SocketAddr,
    rng: SecretRng,
    state: State,
    events: VecDeque<ClientEvent>,
    /// Whether [`ClientEvent::Message`] and [`ClientEvent::Writable`] wait to be polled.
    has_message_event: bool,
    has_writable_event: bool,
    /// The messages of each ended session whose [`ClientEvent::Disconnected`] waits to be polled (W51).
    unread: VecDeque<Option<Unread>>,
    /// Whether [`ClientEvent::Message`] was raised again for the oldest ended session.
    has_raised_unread: bool,
    copies: CopyBudget,
    poll_interval: Duration,
    receive_delay: Option<Duration>,
    /// The application has closed the client: it does not reconnect.
    is_closing: bool,
    /// Number of undelivered messages of earlier sessions.
    undelivered: usize,
    /// An earlier session ended while messages were waiting to be sent.
    has_lost_messages: bool,
    backoff: Backoff,
    /// When the current session, or the last one, started.
    connected_at: Instant,
}

enum State {
    LoggingIn(Box<LoginAttempt>),
    Connected(Box<Connected>),
    /// The next login is tried at this time.
    WaitingToReconnect(Instant),
    Closed,
}

/// A session with the server.
struct Connected {
    connection: Connection,
    session: Session,
    /// Whether [`ClientEvent::Connected`] was raised.
    is_reported: bool,
}

impl Client {
    /// Starts to log in. The seed must be unpredictable: all secrets are derived from it.
    ///
    /// # Errors
    /// If a field of the configuration is out of range.
    pub fn new(
        now: Instant,
        server: SocketAddr,
        config: ClientConfig,
        mut seed: [u8; 32],
    ) -> Result<Self, SessionConfigError> {
        let rng = SecretRng::new(seed);
        seed.zeroize();
        let config = config.below_layer();
        config.validate()?;
        let mut client = Self {
            config,
            server,
            rng,
            state: State::Closed,
            events: VecDeque::new(),
            has_message_event: false,
            has_writable_event: false,
            unread: VecDeque::new(),
            has_raised_unread: false,
            copies: CopyBudget::default(),
            poll_interval: Duration::ZERO,
            receive_delay: None,
            is_closing: false,
            undelivered: 0,
            has_lost_messages: false,
            backoff: Backoff::default(),
            connected_at: now,
        };
        client.log_in(now);
        Ok(client)
    }

    /// The connection, while there is one.
    #[must_use]
    #[inline]
    pub fn connection(&self) -> Option<&Connection> {
        self.connected().map(|own| &own.connection)
    }

    #[inline]
    fn connected(&self) -> Option<&Connected> {
        if let State::Connected(own) = &self.state { Some(own) } else { None }
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected().is_some_and(|own| own.session.is_open())
    }

    /// Whether the client is closed for good: when the pending events are polled, there will be no further ones.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Number of messages that the server has not acknowledged: those of this connection that are under way, and those of
    /// earlier ones that may never have arrived.
    #[must_use]
    pub fn undelivered(&self) -> usize {
        self.undelivered + self.connection().map_or(0, Connection::undelivered)
    }

    /// Whether the server has acknowledged every message, in this session and in earlier ones. Messages of channels that were
    /// replaced or have expired do not count.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        let is_sent = self.connected().is_none_or(|own| own.session.is_sent());
        is_sent && !self.has_lost_messages && self.undelivered() == 0
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Whether events may wait to be polled. A message may turn out to be incomplete.
    #[must_use]
    pub fn has_events(&self) -> bool {
        let is_end_held = matches!(self.events.front(), Some(ClientEvent::Disconnected(_)))
            && self.has_raised_unread
            && self.is_unread_readable();
        !self.events.is_empty() && !is_end_held
    }

    /// Ends the session: sends the messages that are left, then disconnects. A login is abandoned.
    pub fn close(&mut self, now: Instant) {
        self.end(|own| own.session.close(now, &mut own.connection, ""));
    }

    /// Ends the session at once: sends a disconnect, and does not deliver the messages that are left.
    pub fn leave(&mut self, now: Instant) {
        self.end(|own| own.connection.abort(now, DisconnectReason::Closed));
    }

    /// Ends the session, or abandons the login. The client does not log in again, whatever ends the session before.
    fn end(&mut self, end: impl FnOnce(&mut Connected)) {
        self.is_closing = true;
        match &mut self.state {
            State::Connected(own) => end(own),
            State::LoggingIn(_) | State::WaitingToReconnect(_) => self.state = State::Closed,
            State::Closed => {}
        }
    }

    #[cfg(test)]
    pub(crate) fn rng(&self) -> &SecretRng {
        &self.rng
    }

    fn handle_session_datagram(&mut self, now: Instant, length: usize, datagram: &ServerDatagram<'_>) {
        let State::Connected(own) = &mut self.state else { return };
        let connection = &mut own.connection;
        connection.count_received(length);
        match datagram {
            ServerDatagram::Data(data) => {
                connection.handle_data(now, data.number, data.payload.as_bytes(), None, usize::MAX);
            }
            ServerDatagram::EncryptedData(data) => {
                let input = data.seal_input(connection.index(), connection.uid());
                connection.handle_data(now, data.number, data.sealed.as_bytes(), Some(&input), usize::MAX);
            }
            ServerDatagram::Control(Control::Ack(numbers)) => {
                connection.set_receive_delay(self.receive_delay);
                connection.handle_ack(now, *numbers);
            }
            ServerDatagram::Control(Control::Resend(numbers)) => connection.handle_resend_request(now, *numbers),
            ServerDatagram::Control(Control::Keepalive) => connection.handle_keepalive(now),
            ServerDatagram::Control(Control::KeepaliveAck) => connection.handle_keepalive_ack(now),
            ServerDatagram::Disconnect(reason) => connection.handle_disconnect(now, &reason.to_str_lossy()),
            ServerDatagram::Info(_)
            | ServerDatagram::Team(_)
            | ServerDatagram::Player(_)
            | ServerDatagram::LoginSuccess(_)
            | ServerDatagram::BadLogin(_) => {}
        }
        self.collect_events(now);
    }

    /// Starts the session over a new connection. With channels, the agreement on the table comes first.
    fn start_session(&mut self, now: Instant, mut connection: Connection) {
        let layer = &self.config.layer;
        let session = Session::new(now, layer, Side::Client, &mut connection, self.config.connection.window);
        if let Some(table) = layer.table() {
            let token = self.config.token.as_ref().map_or(&[][..], |token| token.as_bytes());
            send_hello(now, &mut connection, table, token);
        }
        let is_reported = session.is_open();
        self.state = State::Connected(Box::new(Connected { connection, session, is_reported }));
        self.connected_at = now;
        if is_reported {
            self.push_event(ClientEvent::Connected);
        }
    }

    /// Turns the events of the connection into events of the client.
    fn collect_events(&mut self, now: Instant) {
        while let State::Connected(own) = &mut self.state
            && let Some(event) = own.connection.poll_event()
        {
            match event {
                ConnectionEvent::Readable if own.session.is_read() => self.raise_message(),
                ConnectionEvent::Readable if own.session.is_awaiting_hello() => self.handle_hello(now),
                ConnectionEvent::Readable => {}
                // A queue above the connection has room or not.
                ConnectionEvent::Writable if !own.session.is_plain() => {}
                ConnectionEvent::Writable => self.raise_writable(),
                ConnectionEvent::Closing if !own.is_reported => {}
                ConnectionEvent::Closing => self.push_event(ClientEvent::Closing),
                // A server does not move.
                ConnectionEvent::AddressUnconfirmed => {}
                ConnectionEvent::Closed(reason) => self.end_session(now, reason),
            }
        }
    }

    /// Reads the server's hello.
    fn handle_hello(&mut self, now: Instant) {
        let State::Connected(own) = &mut self.state else { return };
        let Connected { connection, session, is_reported } = &mut **own;
        let (Some(table), Some(payload)) = (self.config.layer.table(), connection.recv()) else { return };
        match parse_hello(table, payload).map(|_| ()) {
            Ok(()) => {
                session.open(connection);
                *is_reported = true;
                self.push_event(ClientEvent::Connected);
                self.raise_message();
            }
            Err(fault) => session.abort(now, connection, fault),
        }
    }

    fn is_unread_readable(&self) -> bool {
        self.unread.front().is_some_and(|unread| unread.as_ref().is_some_and(Unread::is_readable))
    }

    fn end_session(&mut self, now: Instant, reason: DisconnectReason) {
        let is_unwanted = match &reason {
            DisconnectReason::ClosedByPeer(text) => reason::is_transient(text),
            DisconnectReason::Closed | DisconnectReason::Channels(_) => false,
            _ => true,
        };
        self.undelivered = self.undelivered();
        self.backoff.on_session_end(now.saturating_duration_since(self.connected_at));
        let State::Connected(own) = std::mem::replace(&mut self.state, State::Closed) else { return };
        let Connected { connection, session, is_reported } = *own;
        self.has_lost_messages |= !session.is_sent();
        // The messages of the next session have an event of their own.
        self.has_message_event = false;
        if is_unwanted && !self.is_closing {
            self.retry_login(now);
        }
        // This happens only if events are not polled at all.
        if self.events.len() >= MAX_EVENTS {
            return;
        }
        if !is_reported && !self.is_closing {
            // The server has never accepted the login.
            self.events.push_back(ClientEvent::LoginFailed(match reason {
                DisconnectReason::ClosedByPeer(text) => LoginError::Refused(text),
                DisconnectReason::Channels(fault) => LoginError::Channels(fault),
                _ => LoginError::TimedOut,
            }));
            return;
        }
        // Messages of sessions long ago are dropped: the application evidently does not read them.
        let dropped = self.unread.len().saturating_sub(MAX_UNREAD_SESSIONS - 1);
        self.unread.iter_mut().take(dropped).for_each(|unread| *unread = None);
        self.unread.push_back(Unread::new(connection, session, &reason));
        self.events.push_back(ClientEvent::Disconnected(reason));
    }

    /// Logs in again after a while, if the client reconnects. Otherwise it stays closed.
    fn retry_login(&mut self, now: Instant) {
        if self.config.reconnect {
            let delay = self.backoff.next_delay(self.rng.u64());
            self.state = State::WaitingToReconnect(now + delay);
        }
    }

    /// Queues an event that may be raised any number of times: it is dropped if events are not polled.
    fn push_event(&mut self, event: ClientEvent) {
        if self.events.len() < MAX_EVENTS {
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
            (State::LoggingIn(_), ServerDatagram::LoginSuccess(success)) => self.handle_login_success(now, success),
            (State::LoggingIn(attempt), ServerDatagram::BadLogin(reason)) if attempt.refusal.is_none() => {
                attempt.refusal = Some((now + REFUSAL_DELAY, reason.to_str_lossy().into_owned()));
            }
            (State::Connected(_), _) => self.handle_session_datagram(now, bytes.len(), &datagram),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::LoggingIn(attempt) => {
                let failure = match attempt.refusal.take_if(|(at, _)| now >= *at) {
                    Some((_, reason)) => Some(LoginError::Refused(reason)),
                    None if now >= attempt.deadline => Some(LoginError::TimedOut),
                    None => None,
                };
                if let Some(error) = failure {
                    self.state = State::Closed;
                    if error.is_transient() {
                        self.retry_login(now);
                    }
                    self.push_event(ClientEvent::LoginFailed(error));
                }
            }
            State::Connected(own) => {
                own.connection.handle_timeout(now);
                self.collect_events(now);
            }
            State::WaitingToReconnect(until) if now >= *until => self.log_in(now),
            State::WaitingToReconnect(_) | State::Closed => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match &mut self.state {
            State::LoggingIn(attempt) if now >= attempt.retry_at => {
                attempt.last_sent = Some(now);
                attempt.transmissions += 1;
                attempt.retry_at = now + attempt.retry_delay;
                attempt.retry_delay = (attempt.retry_delay * 3 / 2).min(MAX_LOGIN_RETRY);
                out.extend_from_slice(&attempt.datagram);
                Some(Transmit::one(self.server, attempt.datagram.len()))
            }
            State::Connected(own) => {
                let Connected { connection, session, .. } = &mut **own;
                if connection.has_source_work() {
                    session.fill(now, connection, usize::MAX);
                }
                let transmit = connection.poll_transmit(now, &mut self.copies, out);
                if transmit.is_none() {
                    if session.take_writable() {
                        self.raise_writable();
                    }
                    self.collect_events(now);
                }
                transmit
            }
            _ => None,
        }
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        // The end of a session is reported when its messages are read.
        if matches!(self.events.front(), Some(ClientEvent::Disconnected(_))) {
            if self.is_unread_readable() {
                let is_raised = std::mem::replace(&mut self.has_raised_unread, true);
                return (!is_raised).then_some(ClientEvent::Message);
            }
            self.unread.pop_front();
            self.has_raised_unread = false;
        }
        let event = self.events.pop_front()?;
        match event {
            ClientEvent::Message => self.has_message_event = false,
            ClientEvent::Writable => self.has_writable_event = false,
            // Room for those that wait at the session.
            ClientEvent::Receipt(_) => {
                if let State::Connected(own) = &mut self.state {
                    collect_receipts(&mut own.session, &mut self.events);
                }
            }
            _ => {}
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::LoggingIn(attempt) => {
                let refusal = attempt.refusal.as_ref().map(|(at, _)| *at);
                [Some(attempt.retry_at), Some(attempt.deadline), refusal].into_iter().flatten().min()
            }
            State::Connected(own) => own.connection.poll_timeout(),
            State::WaitingToReconnect(until) => Some(*until),
            State::Closed => None,
        }
    }
}

impl SessionMachine for Client {
    fn set_poll_interval(&mut self, interval: Duration) {
        self.poll_interval = interval;
        if let State::Connected(own) = &mut self.state {
            own.connection.set_poll_interval(interval);
        }
    }

    fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.receive_delay = delay;
    }

    fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.rng.mix(entropy);
    }

    fn sample_throughput(&mut self, now: Instant) {
        if let State::Connected(own) = &mut self.state {
            own.connection.sample_throughput(now);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::LoggingIn(_) => "logging in",
            State::Connected(_) => "connected",
            State::WaitingToReconnect(_) => "waiting to reconnect",
            State::Closed => "closed",
        };
        f.debug_struct("Client").field("server", &self.server).field("state", &state).finish_non_exhaustive()
    }
}
