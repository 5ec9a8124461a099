//! The client side: a login, and then one connection.

mod backoff;
mod login;

use crate::{
    ClientConfig, ClientEvent, Connection, DisconnectReason, LoginError, SendError, SessionConfigError,
    connection::{ConnectionEvent, CopyBudget, ReceiveBuffer},
    reason,
    rng::SecretRng,
};
use backoff::Backoff;
use login::{LoginAttempt, MAX_LOGIN_RETRY, REFUSAL_DELAY};
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

/// The client side of a session.
///
/// * Getters: [`connection`](Self::connection), [`is_connected`](Self::is_connected), [`is_closed`](Self::is_closed),
///   [`undelivered`](Self::undelivered), [`session_count`](Self::session_count), [`server`](Self::server).
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
    /// Whether [`ClientEvent::Message`] waits to be polled.
    has_message_event: bool,
    /// The messages of each ended session whose [`ClientEvent::Disconnected`] waits to be polled (W51).
    unread: VecDeque<Option<ReceiveBuffer>>,
    /// Whether [`ClientEvent::Message`] was raised again for the oldest ended session.
    has_raised_unread: bool,
    copies: CopyBudget,
    poll_interval: Duration,
    receive_delay: Option<Duration>,
    /// The application has closed the client: it does not reconnect.
    is_closing: bool,
    /// Number of undelivered messages of earlier sessions.
    undelivered: usize,
    backoff: Backoff,
    /// When the current session, or the last one, started.
    connected_at: Instant,
    session_count: u64,
}

enum State {
    LoggingIn(Box<LoginAttempt>),
    Connected(Box<Connection>),
    /// The next login is tried at this time.
    WaitingToReconnect(Instant),
    Closed,
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
        config.validate()?;
        let rng = SecretRng::new(seed);
        seed.zeroize();
        let mut client = Self {
            config,
            server,
            rng,
            state: State::Closed,
            events: VecDeque::new(),
            has_message_event: false,
            unread: VecDeque::new(),
            has_raised_unread: false,
            copies: CopyBudget::default(),
            poll_interval: Duration::ZERO,
            receive_delay: None,
            is_closing: false,
            undelivered: 0,
            backoff: Backoff::default(),
            connected_at: now,
            session_count: 0,
        };
        client.log_in(now);
        Ok(client)
    }

    /// The connection, while there is one.
    #[must_use]
    #[inline]
    pub fn connection(&self) -> Option<&Connection> {
        if let State::Connected(connection) = &self.state { Some(connection) } else { None }
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection().is_some()
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

    /// Number of sessions so far, the current one included: it changes when the client has logged in again, before the events
    /// that report it are polled.
    #[must_use]
    pub fn session_count(&self) -> u64 {
        self.session_count
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Sends a message to the server, reliably.
    ///
    /// # Errors
    /// If the message does not fit into a datagram, there is no connection, or the window is full.
    pub fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), SendError> {
        match &mut self.state {
            State::Connected(connection) => connection.send(now, message, usize::MAX),
            State::LoggingIn(_) | State::WaitingToReconnect(_) => Err(SendError::NotConnected),
            State::Closed => Err(SendError::Closed),
        }
    }

    /// The next message. Its bytes stay valid until the next call. After the end of a session, the messages that are left can
    /// still be read; [`ClientEvent::Disconnected`] follows the last one, and then the next session.
    pub fn recv(&mut self) -> Option<&[u8]> {
        if let Some(unread) = self.unread.front_mut() {
            return unread.as_mut()?.read();
        }
        let State::Connected(connection) = &mut self.state else { return None };
        connection.reopen_window();
        connection.recv()
    }

    /// The message that [`recv`](Self::recv) returned last.
    pub(crate) fn last_received(&self) -> &[u8] {
        match (self.unread.front(), &self.state) {
            (Some(unread), _) => unread.as_ref().map_or(&[], ReceiveBuffer::last_read),
            (None, State::Connected(connection)) => connection.last_received(),
            (None, _) => &[],
        }
    }

    /// Whether the next message may be one of an earlier session.
    #[inline]
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Ends the session: delivers the messages that are left, then sends a disconnect. A login is abandoned.
    pub fn close(&mut self, now: Instant) {
        self.is_closing = true;
        match &mut self.state {
            State::Connected(connection) => connection.close(now, ""),
            State::LoggingIn(_) | State::WaitingToReconnect(_) => self.state = State::Closed,
            State::Closed => {}
        }
    }

    /// Prepares [`close`](Self::close) for a caller that still has messages to hand over, and calls it after the last one. The
    /// session ends 2 s from now at the latest (S28), and the client does not log in again, whatever ends the session before.
    pub fn begin_close(&mut self, now: Instant) {
        self.is_closing = true;
        match &mut self.state {
            State::Connected(connection) => connection.begin_close(now, ""),
            State::LoggingIn(_) | State::WaitingToReconnect(_) => self.state = State::Closed,
            State::Closed => {}
        }
    }

    /// Ends the session at once: sends a disconnect, and does not deliver the messages that are left.
    pub fn leave(&mut self, now: Instant) {
        self.is_closing = true;
        match &mut self.state {
            State::Connected(connection) => connection.abort(now, DisconnectReason::Closed),
            State::LoggingIn(_) | State::WaitingToReconnect(_) => self.state = State::Closed,
            State::Closed => {}
        }
    }

    /// Sets the interval at which the application reads datagrams, as a game loop does: a wait of up to one interval does not
    /// indicate a queue on the path. Zero by default: every datagram is read when it arrives.
    pub fn set_poll_interval(&mut self, interval: Duration) {
        self.poll_interval = interval;
        if let State::Connected(connection) = &mut self.state {
            connection.set_poll_interval(interval);
        }
    }

    /// Sets how long the datagrams that are handled next have waited to be read, so that the round-trip time in the statistics is
    /// that of the path (W82). `None`, the default, if that is not known: then half the interval of
    /// [`set_poll_interval`](Self::set_poll_interval) is assumed.
    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.receive_delay = delay;
    }

    /// Mixes fresh entropy into the state from which secrets are drawn: a copy of an earlier state does not reveal what is
    /// drawn from then on (W66). `rallypoint-session` calls it now and then.
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.rng.mix(entropy);
    }

    /// Determines the bytes per second of the statistics, from what was sent and received since the last call. It is called about
    /// once per second.
    pub fn sample_throughput(&mut self, now: Instant) {
        if let State::Connected(connection) = &mut self.state {
            connection.sample_throughput(now);
        }
    }

    #[cfg(test)]
    pub(crate) fn rng(&self) -> &SecretRng {
        &self.rng
    }

    /// [`poll_transmit`](Machine::poll_transmit), with a function that may hand messages over to the connection before.
    #[inline(always)]
    pub(crate) fn poll_transmit_with(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Connection),
    ) -> Option<Transmit> {
        match &mut self.state {
            State::LoggingIn(attempt) if now >= attempt.retry_at => {
                attempt.last_sent = Some(now);
                attempt.transmissions += 1;
                attempt.retry_at = now + attempt.retry_delay;
                attempt.retry_delay = (attempt.retry_delay * 3 / 2).min(MAX_LOGIN_RETRY);
                out.extend_from_slice(&attempt.datagram);
                Some(Transmit::one(self.server, attempt.datagram.len()))
            }
            State::Connected(connection) => {
                if connection.has_source_work() {
                    fill(connection);
                }
                let transmit = connection.poll_transmit(now, &mut self.copies, out);
                if transmit.is_none() {
                    self.collect_events(now);
                }
                transmit
            }
            _ => None,
        }
    }

    /// Whether events wait to be polled.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Polls [`ClientEvent::Message`], if that is the next event.
    #[inline]
    pub(crate) fn take_message_event(&mut self) -> bool {
        let is_next =
            self.has_message_event && self.events.pop_front_if(|event| *event == ClientEvent::Message).is_some();
        self.has_message_event &= !is_next;
        is_next
    }

    #[inline]
    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        if let State::Connected(connection) = &mut self.state { Some(connection) } else { None }
    }

    fn handle_session_datagram(&mut self, now: Instant, length: usize, datagram: &ServerDatagram<'_>) {
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

    /// Turns the events of the connection into events of the client.
    fn collect_events(&mut self, now: Instant) {
        while let State::Connected(connection) = &mut self.state
            && let Some(event) = connection.poll_event()
        {
            match event {
                ConnectionEvent::Readable if self.has_message_event => {}
                ConnectionEvent::Readable => {
                    self.has_message_event = true;
                    self.events.push_back(ClientEvent::Message);
                }
                ConnectionEvent::Writable => self.push_event(ClientEvent::Writable),
                ConnectionEvent::Closing => self.push_event(ClientEvent::Closing),
                // A server does not move.
                ConnectionEvent::AddressUnconfirmed => {}
                ConnectionEvent::Closed(reason) => self.end_session(now, reason),
            }
        }
    }

    fn end_session(&mut self, now: Instant, reason: DisconnectReason) {
        let is_unwanted = match &reason {
            DisconnectReason::ClosedByPeer(text) => reason::is_transient(text),
            DisconnectReason::Closed | DisconnectReason::Channels(_) => false,
            _ => true,
        };
        self.undelivered = self.undelivered();
        self.backoff.on_session_end(now.saturating_duration_since(self.connected_at));
        let State::Connected(connection) = std::mem::replace(&mut self.state, State::Closed) else { return };
        // The messages of the next session have an event of their own.
        self.has_message_event = false;
        if is_unwanted && !self.is_closing {
            self.retry_login(now);
        }
        // This happens only if events are not polled at all.
        if self.events.len() >= MAX_EVENTS {
            return;
        }
        // Messages of sessions long ago are dropped: the application evidently does not read them.
        let dropped = self.unread.len().saturating_sub(MAX_UNREAD_SESSIONS - 1);
        self.unread.iter_mut().take(dropped).for_each(|unread| *unread = None);
        let is_ours = matches!(reason, DisconnectReason::Closed | DisconnectReason::Channels(_));
        let is_unread = !is_ours && connection.is_readable();
        self.unread.push_back(is_unread.then(|| connection.into_unread()));
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
            State::Connected(connection) => {
                connection.handle_timeout(now);
                self.collect_events(now);
            }
            State::WaitingToReconnect(until) if now >= *until => self.log_in(now),
            State::WaitingToReconnect(_) | State::Closed => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit_with(now, out, |_| {})
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        // The end of a session is reported when its messages are read.
        if matches!(self.events.front(), Some(ClientEvent::Disconnected(_))) {
            if self.unread.front().is_some_and(|unread| unread.as_ref().is_some_and(ReceiveBuffer::is_readable)) {
                let is_raised = std::mem::replace(&mut self.has_raised_unread, true);
                return (!is_raised).then_some(ClientEvent::Message);
            }
            self.unread.pop_front();
            self.has_raised_unread = false;
        }
        let event = self.events.pop_front()?;
        if event == ClientEvent::Message {
            self.has_message_event = false;
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::LoggingIn(attempt) => {
                let refusal = attempt.refusal.as_ref().map(|(at, _)| *at);
                [Some(attempt.retry_at), Some(attempt.deadline), refusal].into_iter().flatten().min()
            }
            State::Connected(connection) => connection.poll_timeout(),
            State::WaitingToReconnect(until) => Some(*until),
            State::Closed => None,
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
