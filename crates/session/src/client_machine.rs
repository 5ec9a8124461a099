//! The state machine of a client, whatever its session carries.

use crate::{
    ClientOptions, ONLY_CHANNEL, SetupError, frame_stream::FrameStream, options::Layer, server_machine::copy_message,
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    ChannelClient, ChannelClientConfig, ChannelIndex, Client, ClientEvent, Connection, MessageId, SendError,
};
use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A client without a socket.
#[allow(clippy::large_enum_variant, reason = "there is one per client")]
pub(crate) enum ClientMachine {
    Plain(PlainClient),
    Channels(ChannelClient),
}

/// A client whose session carries messages, or a stream.
pub(crate) struct PlainClient {
    client: Client,
    /// Maximum length of a stream message, if streams are used.
    max_stream_message: Option<usize>,
    stream: Option<FrameStream>,
    /// The session that the outgoing half of the stream belongs to, as [`Client::session_count`] counts them. The incoming half
    /// may belong to the session before, until its messages are read.
    stream_session: u64,
    /// The end of a session whose messages may still be in its stream.
    end: Option<ClientEvent>,
    /// The messages of that stream are read.
    is_drained: bool,
    /// A session ended while its stream had something to send.
    has_lost_stream_data: bool,
}

impl ClientMachine {
    pub fn new(now: Instant, server: SocketAddr, options: ClientOptions, seed: [u8; 32]) -> Result<Self, SetupError> {
        let ClientOptions { mut client, layer, token, .. } = options;
        if let Layer::Channels(channels) = layer {
            let config = ChannelClientConfig { client, channels, token };
            return Ok(Self::Channels(ChannelClient::new(now, server, config, seed)?));
        }
        client.game.push_str(layer.game_suffix());
        Ok(Self::Plain(PlainClient {
            client: Client::new(now, server, client, seed)?,
            max_stream_message: layer.max_stream_message(),
            stream: None,
            stream_session: 0,
            end: None,
            is_drained: false,
            has_lost_stream_data: false,
        }))
    }

    pub fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Plain(own) => own.client.connection(),
            Self::Channels(client) => client.connection(),
        }
    }

    pub fn is_connected(&self) -> bool {
        match self {
            Self::Plain(own) => own.client.is_connected(),
            Self::Channels(client) => client.is_connected(),
        }
    }

    pub fn is_closed(&self) -> bool {
        match self {
            Self::Plain(own) => own.client.is_closed(),
            Self::Channels(client) => client.is_closed(),
        }
    }

    pub fn is_delivered(&self) -> bool {
        match self {
            Self::Plain(own) => {
                let is_flushed = own.stream.as_ref().is_none_or(FrameStream::is_flushed);
                !own.has_lost_stream_data && is_flushed && own.client.undelivered() == 0
            }
            Self::Channels(client) => client.is_delivered(),
        }
    }

    pub fn server(&self) -> SocketAddr {
        match self {
            Self::Plain(own) => own.client.server(),
            Self::Channels(client) => client.server(),
        }
    }

    /// Maximum length of a message; with channels, of one that fits into a datagram.
    pub fn max_message(&self) -> Option<usize> {
        let in_datagram = self.connection()?.max_message();
        let Self::Plain(own) = self else { return Some(in_datagram) };
        Some(own.max_stream_message.unwrap_or(in_datagram))
    }

    /// Whether there is room for a message of this length, or no session to wait for.
    #[cfg(feature = "async")]
    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        match self {
            Self::Plain(own) => own.client.connection().is_none_or(Connection::is_writable),
            Self::Channels(client) => client.has_room(channel, length) || !client.is_connected(),
        }
    }

    /// Whether receipts or credits of messages that were read have to be sent.
    #[cfg(feature = "async")]
    pub fn has_replies(&self) -> bool {
        matches!(self, Self::Channels(client) if client.has_replies())
    }

    /// Whether messages of a channel expire, so that the time at which they are sent matters.
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        matches!(self, Self::Channels(client) if client.is_expiring(channel))
    }

    pub fn send(&mut self, now: Instant, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        match self {
            Self::Plain(_) if channel != ONLY_CHANNEL => Err(SendError::NoChannel),
            Self::Plain(own) => own.send(now, message).map(|()| MessageId::without_receipt(channel)),
            Self::Channels(client) => client.send(now, channel, message),
        }
    }

    /// Copies the next message into `message`. Returns its channel.
    pub fn recv(&mut self, now: Instant, message: &mut Vec<u8>) -> Option<ChannelIndex> {
        match self {
            Self::Plain(own) => own.recv(now, message),
            Self::Channels(client) => copy_message(client.recv(now), message),
        }
    }

    pub fn close(&mut self, now: Instant) {
        match self {
            Self::Plain(own) => own.close(now),
            Self::Channels(client) => client.close(now),
        }
    }

    pub fn set_poll_interval(&mut self, interval: Duration) {
        match self {
            Self::Plain(own) => own.client.set_poll_interval(interval),
            Self::Channels(client) => client.set_poll_interval(interval),
        }
    }

    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        match self {
            Self::Plain(own) => own.client.set_receive_delay(delay),
            Self::Channels(client) => client.set_receive_delay(delay),
        }
    }

    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        match self {
            Self::Plain(own) => own.client.mix_entropy(entropy),
            Self::Channels(client) => client.mix_entropy(entropy),
        }
    }

    pub fn sample_throughput(&mut self, now: Instant) {
        match self {
            Self::Plain(own) => own.client.sample_throughput(now),
            Self::Channels(client) => client.sample_throughput(now),
        }
    }

    /// Ends the session at once: a disconnect is sent, and messages that are left are lost.
    pub fn leave(&mut self, now: Instant) {
        match self {
            Self::Plain(own) => own.client.leave(now),
            Self::Channels(client) => client.leave(now),
        }
    }
}

impl PlainClient {
    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), SendError> {
        let Self { client, .. } = self;
        let Some(max) = self.max_stream_message else { return client.send(now, message) };
        let size = client.connection().ok_or(SendError::NotConnected)?.max_message();
        let session = client.session_count();
        let stream = self.stream.get_or_insert_with(|| FrameStream::new(max));
        if std::mem::replace(&mut self.stream_session, session) != session {
            self.has_lost_stream_data |= stream.reset_writer(max);
        }
        stream.write(message, size, |part| client.send(now, part))
    }

    fn recv(&mut self, now: Instant, message: &mut Vec<u8>) -> Option<ChannelIndex> {
        let Self { client, .. } = self;
        let Some(max) = self.max_stream_message else {
            return copy_message(client.recv().map(|bytes| (ONLY_CHANNEL, bytes)), message);
        };
        let stream = self.stream.get_or_insert_with(|| FrameStream::new(max));
        let has_ended = self.end.is_some();
        // What is left in the stream of an ended session comes before the messages of the next session.
        let pull = |reader: &mut _| if has_ended { None } else { pull(client, reader) };
        match stream.read(message, pull) {
            Ok(true) => return Some(ONLY_CHANNEL),
            Ok(false) => {}
            // The rest of the stream cannot be read.
            Err(_) => client.close(now),
        }
        self.is_drained = has_ended;
        None
    }

    fn close(&mut self, now: Instant) {
        let is_current = self.is_stream_current();
        match &mut self.stream {
            Some(stream) if is_current && !stream.is_flushed() => {
                stream.close_reason = Some(String::new());
                self.client.begin_close(now);
            }
            _ => self.client.close(now),
        }
    }

    /// Whether the outgoing half of the stream is that of the current session.
    fn is_stream_current(&self) -> bool {
        self.stream_session == self.client.session_count() && self.client.is_connected()
    }

    /// A new session is a new stream.
    fn end_stream(&mut self) {
        // The application may have started the next one already.
        let is_current = self.is_stream_current();
        match (self.stream.take(), self.max_stream_message) {
            (Some(stream), Some(max)) if is_current => self.stream = Some(stream.into_writer(max)),
            (Some(stream), _) => self.has_lost_stream_data |= !stream.is_flushed(),
            _ => {}
        }
    }

    fn flush_stream(&mut self, now: Instant) {
        let Some(stream) = &mut self.stream else { return };
        let client = &mut self.client;
        if client.session_count() != self.stream_session {
            return;
        }
        let Some(size) = client.connection().map(Connection::max_message) else { return };
        // The bytes that do not fit stay in the stream.
        let _ = stream.flush(size, |part| client.send(now, part));
        if stream.is_flushed() && stream.close_reason.take().is_some() {
            client.close(now);
        }
    }
}

fn pull(
    client: &mut Client,
    reader: &mut rallypoint_session_proto::StreamReader,
) -> Option<Result<(), rallypoint_session_proto::StreamError>> {
    client.recv().map(|part| reader.push(part))
}

impl Machine for ClientMachine {
    type Event = ClientEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        match self {
            Self::Plain(own) => own.client.handle_datagram(now, from, bytes),
            Self::Channels(client) => client.handle_datagram(now, from, bytes),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Plain(own) => own.client.handle_timeout(now),
            Self::Channels(client) => client.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Plain(own) => {
                own.flush_stream(now);
                own.client.poll_transmit(now, out)
            }
            Self::Channels(client) => client.poll_transmit(now, out),
        }
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        match self {
            Self::Channels(client) => client.poll_event(),
            Self::Plain(own) => {
                // Reported when the messages in the stream are read.
                if own.end.is_some() {
                    if !own.is_drained {
                        return None;
                    }
                    own.is_drained = false;
                    own.end_stream();
                    return own.end.take();
                }
                let event = own.client.poll_event()?;
                // Complete messages of a stream come before its end.
                if matches!(event, ClientEvent::Disconnected(_)) && own.stream.is_some() {
                    own.end = Some(event);
                    return Some(ClientEvent::Message);
                }
                Some(event)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Plain(own) => own.client.poll_timeout(),
            Self::Channels(client) => client.poll_timeout(),
        }
    }
}

impl fmt::Debug for ClientMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(own) => fmt::Debug::fmt(&own.client, f),
            Self::Channels(client) => fmt::Debug::fmt(client, f),
        }
    }
}
