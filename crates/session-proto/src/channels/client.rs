//! The client side of sessions with channels.

use super::{
    ChannelFault, ChannelIndex, ChannelTable, ConnectToken, MessageId, TokenError,
    message_store::OutgoingMessage,
    payload_source::PayloadSource,
    receiver::Next,
    session::{ChannelSession, parse_hello, send_hello},
};
use crate::{
    Client, ClientConfig, ClientEvent, Connection, DisconnectReason, Encryption, LoginError, SendError,
    SessionConfigError, connection::Side,
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::channels::{GAME_SUFFIX, MESSAGE_HEADER};
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};
use zeroize::Zeroize;

/// Maximum number of events that wait to be polled.
const MAX_EVENTS: usize = 64;

/// Settings of a [`ChannelClient`].
#[derive(Clone, Debug)]
pub struct ChannelClientConfig {
    /// Settings of the session. `ordered` has no effect: each channel has its own order.
    pub client: ClientConfig,
    /// The channels, the same as the server's.
    pub channels: ChannelTable,
    /// The token of the game's account service, if the server requires one. It needs [`Encryption::Pinned`].
    pub token: Option<ConnectToken>,
}

/// A [`Client`] whose session has channels (W110).
///
/// It has the calls of a [`Client`], except that messages are sent and received on a channel, and that
/// [`ClientEvent::Connected`] is raised when the server has accepted the table of channels and the player.
pub struct ChannelClient {
    client: Client,
    table: ChannelTable,
    token: Vec<u8>,
    window: usize,
    session: Option<ChannelSession>,
    /// The end of a session whose last messages are not read.
    end: Option<DisconnectReason>,
    events: VecDeque<ClientEvent>,
    has_message_event: bool,
    /// Whether [`ClientEvent::Connected`] was raised for the session.
    is_reported: bool,
    is_closing: bool,
    /// A session ended while reliable messages were waiting to be sent.
    has_lost_messages: bool,
    /// Events may have been raised since they were handled, which is done once for many datagrams; or messages of a session that
    /// has ended are left.
    has_input: bool,
    now: Instant,
}

impl ChannelClientConfig {
    /// The default settings of a client with this name, for this game, with these channels.
    #[must_use]
    pub fn new(username: &str, game: &str, channels: ChannelTable) -> Self {
        Self { client: ClientConfig::new(username, game), channels, token: None }
    }
}

impl ChannelClient {
    /// Starts to log in. The seed must be unpredictable: all secrets are derived from it.
    ///
    /// # Errors
    /// If a field of the configuration is out of range, or a token would be sent to a server that is not verified.
    pub fn new(
        now: Instant,
        server: SocketAddr,
        config: ChannelClientConfig,
        mut seed: [u8; 32],
    ) -> Result<Self, SessionConfigError> {
        let ChannelClientConfig { mut client, channels, token } = config;
        if token.is_some() && !matches!(client.encryption, Encryption::Pinned(_)) {
            return Err(SessionConfigError::Token(TokenError::NotPinned));
        }
        client.game.push_str(GAME_SUFFIX);
        // The hello comes first: from then on, messages are delivered on arrival.
        client.connection.ordered = true;
        let window = client.connection.window;
        let client = Client::new(now, server, client, seed);
        seed.zeroize();
        Ok(Self {
            window,
            client: client?,
            table: channels,
            token: token.map(|token| token.as_bytes().to_vec()).unwrap_or_default(),
            session: None,
            end: None,
            events: VecDeque::new(),
            has_message_event: false,
            is_reported: false,
            is_closing: false,
            has_lost_messages: false,
            has_input: false,
            now,
        })
    }

    /// The connection, while there is one.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.client.connection()
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.is_connected() && self.session.as_ref().is_some_and(ChannelSession::is_open)
    }

    /// Whether the client is closed for good: when the pending events are polled, there will be no further ones.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.client.server()
    }

    /// Whether a channel has room for a message of this length; also if there is no session to wait for.
    #[must_use]
    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        self.session.as_ref().is_none_or(|session| session.has_room(channel, length))
    }

    /// Whether receipts or credits for messages that were read have to be sent.
    #[must_use]
    pub fn has_replies(&self) -> bool {
        self.session.as_ref().is_some_and(ChannelSession::has_replies)
    }

    /// Whether the server has acknowledged every message, in this session and in earlier ones. Messages that were replaced or
    /// have expired do not count.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        let is_sent = self.session.as_ref().is_none_or(ChannelSession::is_sent);
        is_sent && !self.has_lost_messages && self.client.undelivered() == 0
    }

    /// Whether messages of a channel expire: then the time at which they are sent matters. The others may be sent with the time at
    /// which datagrams were last handled or polled.
    #[must_use]
    #[inline]
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        self.table.is_expiring(channel)
    }

    /// Sends a message on a channel.
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or the queue of the channel is full: then
    /// [`ClientEvent::Writable`] follows.
    pub fn send(&mut self, now: Instant, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        if self.has_input {
            self.now = now;
            self.handle_events();
        }
        if let Some(session) = &mut self.session
            && session.may_send_directly(message.len())
            && let Some(connection) = self.client.connection_mut()
            && let Some(id) = session.send_directly(now, connection, channel, message, usize::MAX, || true)
        {
            return Ok(id);
        }
        self.queue(now, channel, message)
    }

    /// [`send`](Self::send) in the general case.
    #[inline(never)]
    fn queue(&mut self, now: Instant, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        if let (Some(session), Some(connection)) = (&mut self.session, self.client.connection_mut()) {
            connection.wake_source();
            return session.send(now, channel, OutgoingMessage::Borrowed(message));
        }
        Err(if self.client.is_closed() { SendError::Closed } else { SendError::NotConnected })
    }

    /// The next message and its channel. Its bytes stay valid until the next call.
    pub fn recv(&mut self, now: Instant) -> Option<(ChannelIndex, &[u8])> {
        if self.has_input {
            return self.recv_earlier(now);
        }
        let connection = self.client.connection_mut()?;
        let session = self.session.as_mut()?;
        connection.reopen_window();
        match session.next(connection) {
            Next::Nothing => None,
            Next::Message(channel) => Some((channel, connection.last_received_from(MESSAGE_HEADER))),
            next => session.finish_recv(now, next, connection, &mut self.has_input),
        }
    }

    /// [`recv`](Self::recv) when events have to be handled before, or messages of an earlier session are left.
    #[cold]
    fn recv_earlier(&mut self, now: Instant) -> Option<(ChannelIndex, &[u8])> {
        self.now = now;
        self.handle_input();
        let session = self.session.as_mut()?;
        let received = session.next_message(&mut self.client);
        if let Some(connection) = self.client.connection_mut()
            && !session.is_idle()
        {
            connection.wake_source();
        }
        match received {
            Ok(Some(channel)) => {
                let last = self.client.last_received();
                return self.session.as_ref().map(|session| (channel, session.message(last)));
            }
            Ok(None) => {}
            Err(fault) => self.abort(now, fault),
        }
        self.handle_events();
        None
    }

    /// Ends the session: sends the messages that wait, then disconnects. A login is abandoned.
    pub fn close(&mut self, now: Instant) {
        self.now = now;
        self.handle_input();
        self.has_input = true;
        self.is_closing = true;
        if let (Some(session), Some(connection)) = (&mut self.session, self.client.connection_mut())
            && session.is_open()
        {
            session.close(now, connection, "");
            // Also if the session is lost before its queues are sent, the client does not log in again.
            self.client.begin_close(now);
        } else {
            self.client.close(now);
        }
    }

    /// Sets the interval at which the application reads datagrams: a wait of up to one interval does not indicate a queue on
    /// the path. Zero by default.
    pub fn set_poll_interval(&mut self, interval: Duration) {
        self.client.set_poll_interval(interval);
    }

    /// Sets how long the datagrams that are handled next have waited to be read; see [`Client::set_receive_delay`].
    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.client.set_receive_delay(delay);
    }

    /// Mixes fresh entropy into the state from which secrets are drawn; see [`Client::mix_entropy`].
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.client.mix_entropy(entropy);
    }

    /// Determines the bytes per second of the statistics; see [`Client::sample_throughput`].
    pub fn sample_throughput(&mut self, now: Instant) {
        self.client.sample_throughput(now);
    }

    /// Ends the session at once; see [`Client::leave`].
    pub fn leave(&mut self, now: Instant) {
        self.is_closing = true;
        self.has_input = true;
        self.client.leave(now);
    }

    fn abort(&mut self, now: Instant, fault: ChannelFault) {
        if let (Some(session), Some(connection)) = (&mut self.session, self.client.connection_mut()) {
            session.abort(now, connection, fault);
        }
    }

    /// Handles the events of datagrams and timers since the last call: those of an old session before anything new.
    #[inline]
    fn handle_input(&mut self) {
        self.has_input &= self.client.has_events() || self.client.has_unread() || self.end.is_some();
        if self.has_input {
            self.handle_events();
        }
    }

    /// Turns the events of the client into those of the channels.
    fn handle_events(&mut self) {
        self.has_input = false;
        while self.end.is_none()
            && let Some(event) = self.client.poll_event()
        {
            match event {
                ClientEvent::Connected => self.start_session(),
                ClientEvent::Message if self.is_awaiting_hello() => self.handle_hello(),
                ClientEvent::Message => self.raise_message(),
                ClientEvent::Disconnected(reason) => self.end_session(reason),
                // The queues of the channels have room, or not.
                ClientEvent::Writable => {}
                ClientEvent::Closing if !self.is_reported => {}
                event => self.push_event(event),
            }
        }
        // The messages of a session come before its end.
        if self.end.is_some() && !self.session.as_ref().is_some_and(ChannelSession::is_readable) {
            self.report_end();
        }
        self.has_input |= self.end.is_some() || self.client.has_unread();
    }

    fn start_session(&mut self) {
        let Some(connection) = self.client.connection_mut() else { return };
        let is_encrypted = connection.is_encrypted();
        self.session = Some(ChannelSession::new(self.now, &self.table, Side::Client, is_encrypted, self.window));
        self.is_reported = false;
        send_hello(self.now, connection, &self.table, &self.token);
    }

    /// Whether the tables agree, and the session has not ended.
    fn is_open(&self) -> bool {
        self.end.is_none() && self.session.as_ref().is_some_and(ChannelSession::is_open)
    }

    fn is_awaiting_hello(&self) -> bool {
        self.session.as_ref().is_some_and(ChannelSession::is_awaiting_hello)
    }

    /// Reads the server's hello.
    fn handle_hello(&mut self) {
        let Some(payload) = self.client.recv() else { return };
        let checked = parse_hello(&self.table, payload).map(|_| ());
        match (checked, &mut self.session, self.client.connection_mut()) {
            (Ok(()), Some(session), Some(connection)) => {
                session.open(connection);
                self.is_reported = true;
                self.push_event(ClientEvent::Connected);
                self.raise_message();
            }
            (Err(fault), ..) => self.abort(self.now, fault),
            _ => {}
        }
    }

    fn raise_message(&mut self) {
        if !std::mem::replace(&mut self.has_message_event, true) {
            self.events.push_back(ClientEvent::Message);
        }
    }

    fn end_session(&mut self, reason: DisconnectReason) {
        self.has_lost_messages |= self.session.as_ref().is_some_and(|session| !session.is_sent());
        // Messages of a session that this side ends are not read any more.
        if matches!(reason, DisconnectReason::Closed | DisconnectReason::Channels(_)) {
            self.session = None;
        }
        self.end = Some(reason);
        if self.session.as_ref().is_some_and(ChannelSession::is_readable) {
            self.raise_message();
        }
    }

    fn report_end(&mut self) {
        let Some(reason) = self.end.take() else { return };
        self.session = None;
        let event = match reason {
            reason if self.is_reported || self.is_closing => ClientEvent::Disconnected(reason),
            // The server has never accepted the login.
            DisconnectReason::ClosedByPeer(text) => ClientEvent::LoginFailed(LoginError::Refused(text)),
            DisconnectReason::Channels(fault) => ClientEvent::LoginFailed(LoginError::Channels(fault)),
            _ => ClientEvent::LoginFailed(LoginError::TimedOut),
        };
        self.is_reported = false;
        self.events.push_back(event);
        self.handle_events();
    }

    fn push_event(&mut self, event: ClientEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }
}

impl PayloadSource for Client {
    fn next_payload(&mut self) -> Option<&[u8]> {
        self.recv()
    }

    fn last_payload(&self) -> &[u8] {
        self.last_received()
    }
}

impl Machine for ChannelClient {
    type Event = ClientEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.now = now;
        self.has_input = true;
        self.client.handle_datagram(now, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.client.handle_timeout(now);
        self.has_input = true;
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        self.handle_input();
        let Self { client, session, .. } = self;
        let transmit = client.poll_transmit_with(now, out, |connection| {
            if let Some(session) = session {
                session.fill(now, connection, usize::MAX);
            }
        });
        if transmit.is_none() {
            if self.client.has_events() || self.end.is_some() {
                self.handle_events();
            }
            if self.session.as_mut().is_some_and(ChannelSession::take_writable) {
                self.push_event(ClientEvent::Writable);
            }
        }
        transmit
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        // Most events need no queue: messages of a session that is open.
        if self.events.is_empty() && self.is_open() && self.client.take_message_event() {
            return Some(ClientEvent::Message);
        }
        self.handle_input();
        if self.events.is_empty() {
            return self.session.as_mut()?.poll_receipt().map(ClientEvent::Receipt);
        }
        let event = self.events.pop_front()?;
        self.has_message_event &= event != ClientEvent::Message;
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }
}

impl fmt::Debug for ChannelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelClient").field("client", &self.client).finish_non_exhaustive()
    }
}
