//! What a session carries above its connection, from the login to the end: messages, a stream, or channels.

mod frame_stream;

use crate::{
    ChannelFault, ChannelIndex, ChannelTable, Connection, DisconnectReason, Layer, MessageId, SendError, StreamError,
    channels::{ChannelSession, Next, OutgoingMessage, PayloadSource, QUEUE_ENTRY, send_hello},
    connection::{ReceiveBuffer, Side, Source},
};
use frame_stream::FrameStream;
use rallypoint_wire::session::channels::MESSAGE_HEADER;
use std::time::{Duration, Instant};

/// The channel of sessions that have no others: those of messages, and of a stream.
pub const ONLY_CHANNEL: ChannelIndex = ChannelIndex::new(0).unwrap();

/// Time for which a peer may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// What one session carries, and the stage of its life.
#[derive(Debug)]
pub(crate) struct Session {
    state: State,
    carrier: Carrier,
}

/// In the order of the life of a session. The state has a byte of its own: to decode it from the bytes of the reason would take
/// five instructions more each time.
#[derive(Debug)]
#[repr(u8)]
enum State {
    /// The peer's hello has not arrived.
    AwaitingHello {
        until: Instant,
    },
    /// A server has not decided whether the player may join.
    AwaitingDecision,
    Open,
    /// What waits is sent, then the connection is closed.
    Closing {
        reason: String,
    },
    /// The connection ends without what is above it.
    Done,
    /// The peer does not follow the protocol: the connection is closed when it is polled.
    Failed(Violation),
    /// The peer was refused or does not follow the protocol: nothing more of it is read.
    Aborted,
}

#[derive(Debug)]
enum Carrier {
    /// Each message is one of the connection.
    Messages,
    Stream(Box<FrameStream>),
    Channels(Box<ChannelSession>),
}

/// What is left to read of a session that has ended (W51).
#[derive(Debug)]
pub(crate) struct Unread {
    payloads: ReceiveBuffer,
    session: Session,
}

/// What a correct peer does not send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Violation {
    Channels(ChannelFault),
    Stream(StreamError),
}

impl Session {
    /// A session that carries what the settings say. One with channels starts with the hellos of both sides.
    pub fn new(now: Instant, layer: &Layer, side: Side, connection: &mut Connection, window: usize) -> Self {
        let carrier = match layer {
            Layer::Messages => {
                connection.set_source(Source::IDLE);
                Carrier::Messages
            }
            Layer::Stream { max_message, .. } => Carrier::Stream(Box::new(FrameStream::new(*max_message))),
            Layer::Channels(table) => {
                let channels = ChannelSession::new(table, side, connection.is_encrypted(), window);
                let state = State::AwaitingHello { until: now + HELLO_TIMEOUT };
                return Self { state, carrier: Carrier::Channels(Box::new(channels)) };
            }
        };
        Self { state: State::Open, carrier }
    }

    /// The session of a player without channels on a server that has them (W115): one channel, as a stream. It waits for the
    /// server's decision.
    pub fn with_one_channel(table: &ChannelTable, channel: ChannelIndex) -> Self {
        let stream = FrameStream::for_channel(table, channel);
        Self { state: State::AwaitingDecision, carrier: Carrier::Stream(Box::new(stream)) }
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub fn is_awaiting_hello(&self) -> bool {
        matches!(self.state, State::AwaitingHello { .. })
    }

    pub fn is_awaiting_decision(&self) -> bool {
        matches!(self.state, State::AwaitingDecision)
    }

    /// Whether messages of the peer are read: it was accepted, and follows the protocol.
    #[inline]
    pub fn is_read(&self) -> bool {
        matches!(self.state, State::Open | State::Closing { .. } | State::Done)
    }

    pub fn has_channels(&self) -> bool {
        matches!(self.carrier, Carrier::Channels(_))
    }

    /// Whether messages are those of the connection, which has their events as well.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.carrier, Carrier::Messages)
    }

    /// Maximum length of a message; with channels, of one that fits into a datagram.
    pub fn max_message(&self, connection: &Connection) -> usize {
        match &self.carrier {
            Carrier::Stream(stream) => stream.max_message(connection.max_message()),
            Carrier::Messages | Carrier::Channels(_) => connection.max_message(),
        }
    }

    /// The peer's hello is in order.
    pub fn await_decision(&mut self) {
        self.state = State::AwaitingDecision;
    }

    /// A server accepts the player: it sends its own hello if the session has channels.
    pub fn accept(&mut self, now: Instant, connection: &mut Connection, table: &ChannelTable) {
        if self.has_channels() {
            send_hello(now, connection, table, &[]);
        }
        self.open(connection);
    }

    /// Both sides agree: messages flow from now on.
    pub fn open(&mut self, connection: &mut Connection) {
        self.state = State::Open;
        if let Carrier::Channels(channels) = &mut self.carrier {
            channels.open();
            connection.wake_source();
            connection.deliver_on_arrival();
        }
    }

    /// The peer does not follow the protocol: nothing more of it is read, and the connection is closed when it is polled.
    pub fn fail(&mut self, connection: &mut Connection, violation: Violation) {
        let is_open = self.is_open();
        match (&mut self.carrier, violation) {
            (Carrier::Channels(channels), _) => channels.clear(),
            (Carrier::Stream(stream), Violation::Channels(_)) => stream.clear(),
            // What was written before the stream was closed is delivered.
            _ if !is_open => return,
            _ => {}
        }
        self.state = State::Failed(violation);
        connection.wake_source();
    }

    /// Sends what waits, and closes the connection with this reason.
    pub fn close(&mut self, now: Instant, connection: &mut Connection, reason: &str) {
        match self.state {
            State::Open => {
                connection.wake_source();
                connection.begin_close(now, reason);
                self.state = State::Closing { reason: reason.to_owned() };
                self.finish_close(now, connection);
            }
            State::AwaitingHello { .. } | State::AwaitingDecision => {
                self.state = State::Aborted;
                connection.close(now, reason);
            }
            State::Closing { .. } | State::Done | State::Failed(_) | State::Aborted => {}
        }
    }

    fn finish_close(&mut self, now: Instant, connection: &mut Connection) {
        let is_empty = match &self.carrier {
            Carrier::Messages => true,
            Carrier::Stream(stream) => stream.pending() == 0,
            Carrier::Channels(channels) => channels.is_empty(),
        };
        if is_empty && let State::Closing { reason } = &self.state {
            connection.close(now, reason);
            connection.set_source(Source::IDLE);
            self.state = State::Done;
        }
    }

    /// Sends a message that need not wait: a message of the connection, or one that can be sent or joins others at once. None if
    /// [`queue`](Self::queue) has to be called. `may_wait`: whether there is memory for the message in a queue.
    #[inline(always)]
    pub fn send_directly(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: &[u8],
        allowance: usize,
        may_wait: impl FnOnce() -> bool,
    ) -> Option<Result<MessageId, SendError>> {
        if !self.is_open() {
            return None;
        }
        match &mut self.carrier {
            Carrier::Channels(channels) => {
                if !channels.may_send_directly(message.len()) {
                    return None;
                }
                channels.send_directly(now, connection, channel, message, allowance, may_wait).map(Ok)
            }
            Carrier::Messages if channel == ONLY_CHANNEL => {
                let sent = connection.send(now, message, allowance);
                Some(sent.map(|()| MessageId::without_receipt(channel)))
            }
            Carrier::Messages => Some(Err(SendError::NoChannel)),
            Carrier::Stream(_) => None,
        }
    }

    /// Appends a message to others of a stream that wait and fill no datagram together: nothing else changes with it.
    #[inline]
    pub fn join(&mut self, connection: &Connection, channel: ChannelIndex, message: &[u8]) -> bool {
        match &mut self.carrier {
            Carrier::Stream(stream) => matches!(self.state, State::Open) && stream.join(connection, channel, message),
            Carrier::Messages | Carrier::Channels(_) => false,
        }
    }

    /// Sends a message, or queues it. What waits is handed over to the connection by [`fill`](Self::fill).
    #[inline(always)]
    pub fn queue(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: OutgoingMessage<'_>,
        allowance: usize,
    ) -> Result<MessageId, SendError> {
        match self.state {
            State::Open => {}
            State::AwaitingHello { .. } | State::AwaitingDecision => return Err(SendError::NotConnected),
            State::Closing { .. } | State::Done | State::Failed(_) | State::Aborted => return Err(SendError::Closed),
        }
        match &mut self.carrier {
            Carrier::Channels(channels) => {
                let id = channels.send(now, channel, message)?;
                connection.wake_source();
                return Ok(id);
            }
            Carrier::Stream(stream) => stream.write(now, connection, channel, message.as_bytes(), allowance)?,
            Carrier::Messages if channel == ONLY_CHANNEL => connection.send(now, message.as_bytes(), allowance)?,
            Carrier::Messages => return Err(SendError::NoChannel),
        }
        Ok(MessageId::without_receipt(channel))
    }

    /// Bytes that a message takes in a queue, if there is one.
    #[inline]
    pub fn queued_size(&self, message: OutgoingMessage<'_>) -> usize {
        if self.is_plain() { 0 } else { QUEUE_ENTRY + message.memory() }
    }

    /// Whether there is room for a message of this length; also if there is nothing to wait for.
    pub fn has_room(&self, connection: &Connection, channel: ChannelIndex, length: usize) -> bool {
        !self.is_open()
            || match &self.carrier {
                Carrier::Messages => connection.is_writable(),
                Carrier::Stream(stream) => stream.has_room(),
                Carrier::Channels(channels) => channels.has_room(channel, length),
            }
    }

    /// Whether there is room again after a message was refused. Each time is reported once.
    #[inline]
    pub fn take_writable(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::Messages => false,
            Carrier::Stream(stream) => stream.take_writable(),
            Carrier::Channels(channels) => channels.take_writable(),
        }
    }

    pub fn poll_receipt(&mut self) -> Option<MessageId> {
        if let Carrier::Channels(channels) = &mut self.carrier { channels.poll_receipt() } else { None }
    }

    /// Whether receipts or credits for messages that were read have to be sent.
    #[inline]
    pub fn has_replies(&self) -> bool {
        matches!(&self.carrier, Carrier::Channels(channels) if channels.has_replies())
    }

    /// Whether [`fill`](Self::fill) has something to do because of what was read.
    pub fn has_work(&self) -> bool {
        matches!(self.state, State::Failed(_))
            || matches!(&self.carrier, Carrier::Channels(channels) if !channels.is_idle())
    }

    /// Whether everything that has to arrive was handed over to the connection.
    pub fn is_sent(&self) -> bool {
        match &self.carrier {
            Carrier::Messages => true,
            Carrier::Stream(stream) => stream.pending() == 0,
            Carrier::Channels(channels) => channels.is_sent(),
        }
    }

    /// Bytes of unfinished and waiting messages of the peer.
    pub fn memory(&self) -> usize {
        match &self.carrier {
            Carrier::Messages => 0,
            Carrier::Stream(stream) => stream.buffered(),
            Carrier::Channels(channels) => channels.memory(),
        }
    }

    /// Bytes of messages that wait to be sent.
    pub fn queue_memory(&self) -> usize {
        match &self.carrier {
            Carrier::Messages => 0,
            Carrier::Stream(stream) => stream.pending(),
            Carrier::Channels(channels) => channels.queue_memory(),
        }
    }

    /// Whether a message may be left of what was taken from the connection.
    pub fn is_readable(&self) -> bool {
        match &self.carrier {
            Carrier::Messages => false,
            Carrier::Stream(stream) => stream.is_readable(),
            Carrier::Channels(channels) => channels.is_readable(),
        }
    }

    /// Looks for the next message, which is the next payload in the common case. [`finish_read`](Self::finish_read) has to follow
    /// in all others.
    #[inline(always)]
    pub fn next(&mut self, source: &mut impl PayloadSource) -> Next {
        match &mut self.carrier {
            Carrier::Messages => {
                return source.next_payload().map_or(Next::Nothing, |_| Next::Message(ONLY_CHANNEL));
            }
            Carrier::Channels(channels) if channels.is_direct() => return channels.next(source),
            Carrier::Channels(_) | Carrier::Stream(_) => {}
        }
        if self.is_read() { Next::Kept } else { Next::Nothing }
    }

    /// Moves to the message that [`next`](Self::next) has looked for, and returns its channel.
    pub fn finish_read(
        &mut self,
        next: Next,
        source: &mut impl PayloadSource,
    ) -> Result<Option<ChannelIndex>, Violation> {
        match &mut self.carrier {
            Carrier::Stream(stream) if matches!(next, Next::Kept) => stream.read(source),
            Carrier::Messages | Carrier::Stream(_) => Ok(next.message()),
            Carrier::Channels(channels) => channels.finish_next(next, source).map_err(Violation::Channels),
        }
    }

    /// Start of a message in the payload that is the next message.
    #[inline(always)]
    pub fn message_start(&self) -> usize {
        if self.is_plain() { 0 } else { MESSAGE_HEADER }
    }

    /// The bytes of the message that [`finish_read`](Self::finish_read) moved to.
    pub fn message<'a>(&'a self, source: &'a impl PayloadSource) -> &'a [u8] {
        match &self.carrier {
            Carrier::Messages => source.last_payload_from(0),
            Carrier::Stream(stream) => stream.message(),
            Carrier::Channels(channels) => channels.message(source.last_payload_from(0)),
        }
    }

    /// Hands messages over to the connection, as many as it sends at once.
    #[inline]
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        if let State::Open = self.state {
            return self.carrier.fill(now, connection, allowance);
        }
        self.continue_closing(now, connection, allowance);
    }

    #[inline(never)]
    fn continue_closing(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        match &self.state {
            State::Closing { .. } => {
                self.carrier.fill(now, connection, allowance);
                self.finish_close(now, connection);
            }
            State::AwaitingHello { until } if now >= *until => self.abort(now, connection, ChannelFault::NoHello),
            State::AwaitingHello { until } => {
                connection.set_source(Source { wake_at: Some(*until), ..Source::default() });
            }
            State::Failed(Violation::Channels(fault)) => self.abort(now, connection, *fault),
            State::Failed(Violation::Stream(error)) => {
                // The rest of the stream cannot be read, but what was sent is delivered.
                let reason = error.to_string();
                self.state = State::Open;
                self.close(now, connection, &reason);
            }
            State::Open | State::AwaitingDecision | State::Done | State::Aborted => {
                connection.set_source(Source::IDLE);
            }
        }
    }

    /// Ends the session at once because the peer does not follow the protocol.
    pub fn abort(&mut self, now: Instant, connection: &mut Connection, fault: ChannelFault) {
        self.fail(connection, Violation::Channels(fault));
        self.state = State::Aborted;
        connection.abort(now, DisconnectReason::Channels(fault));
    }
}

impl Unread {
    /// What is left of a session that has ended for this reason, if anything is. An application that ends a session has no use for
    /// the messages of the peer.
    pub fn new(connection: Connection, session: Session, reason: &DisconnectReason) -> Option<Self> {
        let is_ours = matches!(reason, DisconnectReason::Closed | DisconnectReason::Channels(_));
        let is_left = connection.is_readable() || session.is_readable();
        (is_left && !is_ours && session.is_read()).then(|| Self { payloads: connection.into_unread(), session })
    }

    /// Whether there may be another message.
    pub fn is_readable(&self) -> bool {
        self.payloads.is_readable() || self.session.is_readable()
    }

    /// Moves to the next message, and returns its channel. None if there is none, or the peer did not follow the protocol.
    pub fn recv(&mut self) -> Option<ChannelIndex> {
        let next = self.session.next(&mut self.payloads);
        self.session.finish_read(next, &mut self.payloads).ok().flatten()
    }

    /// The message that [`recv`](Self::recv) moved to.
    pub fn message(&self) -> &[u8] {
        self.session.message(&self.payloads)
    }

    /// Bytes of messages.
    pub fn memory(&self) -> usize {
        self.payloads.memory() + self.unfinished_memory()
    }

    /// The part of them that is not in payloads: unfinished messages, and those that wait for earlier ones.
    pub fn unfinished_memory(&self) -> usize {
        self.session.memory()
    }
}

impl Carrier {
    #[inline]
    fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        match self {
            Self::Messages => connection.set_source(Source::IDLE),
            Self::Stream(stream) => stream.fill(now, connection, allowance),
            Self::Channels(channels) => channels.fill(now, connection, allowance),
        }
    }
}
