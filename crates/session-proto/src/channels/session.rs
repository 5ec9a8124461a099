//! The channels of one session, and the hellos with which both sides agree on the table.

use super::{
    ChannelFault, ChannelIndex, ChannelTable, MessageId,
    message_store::OutgoingMessage,
    payload_source::PayloadSource,
    receiver::{Next, Receiver},
    replies::Replies,
    sender::Sender,
};
use crate::{Connection, SendError, connection::Side};
use rallypoint_wire::session::channels::{ControlRecord, Hello, Record, RecordWriter, VERSION, records};
use std::time::Instant;

/// The channels of one session.
#[derive(Debug)]
pub(crate) struct ChannelSession {
    sender: Sender,
    receiver: Receiver,
    replies: Replies,
}

impl ChannelSession {
    pub fn new(table: &ChannelTable, side: Side, is_encrypted: bool, window: usize) -> Self {
        Self {
            sender: Sender::new(table, side),
            receiver: Receiver::new(table, side, is_encrypted, window),
            replies: Replies::new(table.iter().len()),
        }
    }

    /// The tables agree: payloads are messages from now on.
    pub fn open(&mut self) {
        self.receiver.open();
    }

    /// Drops what was received, and what was to be reported of it.
    pub fn clear(&mut self) {
        self.receiver.clear();
        self.replies.clear();
    }

    #[inline(always)]
    pub fn send(
        &mut self,
        now: Instant,
        channel: ChannelIndex,
        message: OutgoingMessage<'_>,
    ) -> Result<MessageId, SendError> {
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
        self.sender.send_directly(now, connection, channel, message, allowance, may_wait)
    }

    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        self.sender.has_room(channel, length)
    }

    #[inline]
    pub fn take_writable(&mut self) -> bool {
        self.sender.take_writable()
    }

    #[inline]
    pub fn poll_receipt(&mut self) -> Option<MessageId> {
        self.sender.poll_receipt()
    }

    /// Whether a message may be left of what was taken from the connection.
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

    /// Whether no message waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.sender.is_empty()
    }

    /// Bytes of unfinished and waiting messages of the peer, and of receipts that it does not take.
    pub fn memory(&self) -> usize {
        self.receiver.memory() + self.replies.memory()
    }

    /// Bytes of messages that wait to be sent.
    pub fn queue_memory(&self) -> usize {
        self.sender.queue_memory()
    }

    /// Whether [`next`](Self::next) may be called.
    #[inline]
    pub fn is_direct(&self) -> bool {
        self.receiver.is_direct()
    }

    /// Looks for the next message; see [`Receiver::next`].
    #[inline(always)]
    pub fn next(&mut self, source: &mut impl PayloadSource) -> Next {
        self.receiver.next(source)
    }

    /// Moves to the message that [`next`](Self::next) has looked for, and returns its channel.
    pub fn finish_next(
        &mut self,
        next: Next,
        source: &mut impl PayloadSource,
    ) -> Result<Option<ChannelIndex>, ChannelFault> {
        self.receiver.finish_next(next, &mut self.sender, &mut self.replies, source)
    }

    /// The bytes of the message that [`finish_next`](Self::finish_next) moved to; see [`Receiver::message`].
    pub fn message<'a>(&'a self, last: &'a [u8]) -> &'a [u8] {
        self.receiver.message(last)
    }

    /// Hands messages over to the connection, as many as it sends at once.
    #[inline]
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        self.sender.fill(now, connection, &mut self.replies, allowance);
    }
}

/// Sends a hello.
pub(crate) fn send_hello(now: Instant, connection: &mut Connection, table: &ChannelTable, token: &[u8]) {
    let mut writer = RecordWriter::new(connection.max_message());
    writer.hello(&table.entries(), token);
    // It is the first message of the session, so there is room; its size is bounded by the table and the token.
    let _ = connection.send_numbered(now, &[], writer.finish(), usize::MAX);
}

/// Reads the peer's hello, and checks that its table is the same.
pub(crate) fn parse_hello<'a>(table: &ChannelTable, payload: &'a [u8]) -> Result<Hello<'a>, ChannelFault> {
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
