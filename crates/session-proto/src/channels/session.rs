//! One session with channels: the agreement on the table, then messages in both directions.

use super::{
    ChannelFault, ChannelIndex, ChannelTable, MessageId,
    message_store::OutgoingMessage,
    payload_source::PayloadSource,
    receiver::{Next, Receiver},
    replies::Replies,
    sender::Sender,
};
use crate::{
    Connection, DisconnectReason, SendError,
    connection::{Side, Source},
};
use rallypoint_wire::session::channels::{ControlRecord, Hello, Record, RecordWriter, VERSION, records};
use std::time::{Duration, Instant};

/// Time for which a peer may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// One session with channels.
#[derive(Debug)]
pub(super) struct ChannelSession {
    state: State,
    has_hello: bool,
    sender: Sender,
    receiver: Receiver,
    replies: Replies,
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
    /// The queues are sent, then the connection is closed.
    Closing {
        reason: String,
    },
    /// The connection ends without the message layer.
    Done,
    /// The peer was refused or does not follow the protocol: nothing more of it is read.
    Aborted,
}

impl ChannelSession {
    pub fn new(now: Instant, table: &ChannelTable, side: Side, is_encrypted: bool, window: usize) -> Self {
        Self {
            state: State::AwaitingHello { until: now + HELLO_TIMEOUT },
            has_hello: false,
            sender: Sender::new(table, side),
            receiver: Receiver::new(table, side, is_encrypted, window),
            replies: Replies::new(table.iter().len()),
        }
    }

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
    pub fn is_read(&self) -> bool {
        matches!(self.state, State::Open | State::Closing { .. } | State::Done)
    }

    /// Whether the peer's hello was in order.
    pub fn has_hello(&self) -> bool {
        self.has_hello
    }

    /// The peer's hello is in order.
    pub fn await_decision(&mut self) {
        self.state = State::AwaitingDecision;
        self.has_hello = true;
    }

    /// The tables agree: messages flow from now on.
    pub fn open(&mut self, connection: &mut Connection) {
        self.state = State::Open;
        self.receiver.open();
        connection.wake_source();
        connection.deliver_on_arrival();
    }

    /// Ends the session because the peer does not follow the protocol.
    pub fn abort(&mut self, now: Instant, connection: &mut Connection, fault: ChannelFault) {
        self.state = State::Aborted;
        self.receiver.clear();
        self.replies.clear();
        connection.abort(now, DisconnectReason::Channels(fault));
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
            State::Closing { .. } | State::Done | State::Aborted => {}
        }
    }

    #[inline(always)]
    pub fn send(
        &mut self,
        now: Instant,
        channel: ChannelIndex,
        message: OutgoingMessage<'_>,
    ) -> Result<MessageId, SendError> {
        self.check_open()?;
        self.sender.send(now, channel, message)
    }

    /// See [`Sender::may_send_directly`].
    #[inline]
    pub fn may_send_directly(&self, length: usize) -> bool {
        self.sender.may_send_directly(length)
    }

    /// See [`Sender::send_directly`], for a message for which [`Sender::may_send_directly`] holds.
    #[inline(always)]
    pub fn send_directly(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: &[u8],
        allowance: usize,
        may_wait: impl FnOnce() -> bool,
    ) -> Option<MessageId> {
        if !self.is_open() {
            return None;
        }
        self.sender.send_directly(now, connection, channel, message, allowance, may_wait)
    }

    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        !self.is_open() || self.sender.has_room(channel, length)
    }

    #[inline]
    pub fn take_writable(&mut self) -> bool {
        self.sender.take_writable()
    }

    pub fn poll_receipt(&mut self) -> Option<MessageId> {
        self.sender.poll_receipt()
    }

    /// Whether a message may be left of what was pulled from the connection.
    pub fn is_readable(&self) -> bool {
        self.receiver.is_readable()
    }

    /// Whether receipts or credits for messages that were read have to be sent.
    #[inline]
    pub fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Whether nothing waits to be sent, and nothing of what was read has to be reported to either side.
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle() && self.replies.is_empty()
    }

    /// Whether no reliable message waits to be sent.
    pub fn is_sent(&self) -> bool {
        !self.sender.has_reliable()
    }

    /// Bytes of unfinished and waiting messages of the peer, and of receipts that it does not take.
    pub fn memory(&self) -> usize {
        self.receiver.memory() + self.replies.memory()
    }

    /// Bytes of messages that wait to be sent.
    pub fn queue_memory(&self) -> usize {
        self.sender.queue_memory()
    }

    /// Moves to the next message, and returns its channel.
    pub fn next_message(&mut self, source: &mut impl PayloadSource) -> Result<Option<ChannelIndex>, ChannelFault> {
        let next = self.next(source);
        self.finish_next(next, source)
    }

    /// Looks for the next message; see [`Receiver::next`].
    #[inline(always)]
    pub fn next(&mut self, source: &mut impl PayloadSource) -> Next {
        if self.receiver.is_direct() {
            self.receiver.next(source)
        } else if self.is_read() {
            Next::Kept
        } else {
            Next::Nothing
        }
    }

    /// Moves to the message that [`next`](Self::next) has looked for, and returns its channel.
    pub fn finish_next(
        &mut self,
        next: Next,
        source: &mut impl PayloadSource,
    ) -> Result<Option<ChannelIndex>, ChannelFault> {
        self.receiver.finish_next(next, &mut self.sender, &mut self.replies, source)
    }

    /// Moves to the message that [`next`](Self::next) has looked for in this connection, and returns its channel and bytes.
    /// `has_ended` is set if the session ends because of it.
    #[inline(never)]
    pub fn finish_recv<'a>(
        &'a mut self,
        now: Instant,
        next: Next,
        connection: &'a mut Connection,
        has_ended: &mut bool,
    ) -> Option<(ChannelIndex, &'a [u8])> {
        let received = self.finish_next(next, connection);
        if !self.is_idle() {
            connection.wake_source();
        }
        match received {
            Ok(channel) => channel.map(|channel| (channel, self.message(connection.last_received()))),
            Err(fault) => {
                self.abort(now, connection, fault);
                *has_ended = true;
                None
            }
        }
    }

    /// The bytes of the message that [`next_message`](Self::next_message) moved to; see [`Receiver::message`].
    pub fn message<'a>(&'a self, last: &'a [u8]) -> &'a [u8] {
        self.receiver.message(last)
    }

    /// Hands messages over to the connection, as many as it sends at once.
    #[inline]
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        match &self.state {
            State::Open => self.sender.fill(now, connection, &mut self.replies, allowance),
            State::Closing { .. } => {
                self.sender.fill(now, connection, &mut self.replies, allowance);
                self.finish_close(now, connection);
            }
            State::AwaitingHello { until } if now >= *until => self.abort(now, connection, ChannelFault::NoHello),
            State::AwaitingHello { until } => {
                connection.set_source(Source { wake_at: Some(*until), ..Source::default() });
            }
            State::AwaitingDecision | State::Done | State::Aborted => connection.set_source(Source::IDLE),
        }
    }

    fn finish_close(&mut self, now: Instant, connection: &mut Connection) {
        if let State::Closing { reason } = &self.state
            && self.sender.is_empty()
        {
            connection.close(now, reason);
            connection.set_source(Source::IDLE);
            self.state = State::Done;
        }
    }

    fn check_open(&self) -> Result<(), SendError> {
        match self.state {
            State::Open => Ok(()),
            State::AwaitingHello { .. } | State::AwaitingDecision => Err(SendError::NotConnected),
            State::Closing { .. } | State::Done | State::Aborted => Err(SendError::Closed),
        }
    }
}

/// Sends a hello.
pub(super) fn send_hello(now: Instant, connection: &mut Connection, table: &ChannelTable, token: &[u8]) {
    let mut writer = RecordWriter::new(connection.max_message());
    writer.hello(&table.entries(), token);
    // It is the first message of the session, so there is room; its size is bounded by the table and the token.
    let _ = connection.send_numbered(now, &[], writer.finish(), usize::MAX);
}

/// Reads the peer's hello, and checks that its table is the same.
pub(super) fn parse_hello<'a>(table: &ChannelTable, payload: &'a [u8]) -> Result<Hello<'a>, ChannelFault> {
    let mut all = records(payload);
    let Some(Ok(Record::Control(ControlRecord::Hello(hello)))) = all.next() else {
        return Err(ChannelFault::NoHello);
    };
    if hello.version != VERSION {
        return Err(ChannelFault::Version(hello.version));
    }
    match table.difference(&hello) {
        _ if all.remaining() > 0 => Err(ChannelFault::Malformed("hello")),
        Some(channel) => Err(ChannelFault::Table(channel)),
        None => Ok(hello),
    }
}
