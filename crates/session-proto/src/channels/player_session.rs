//! The session of one player: with channels, or without (W115).

use super::{
    ChannelFault, ChannelIndex, MessageId, message_store::OutgoingMessage, payload_source::PayloadSource,
    plain_session::PlainSession, session::ChannelSession,
};
use crate::{Connection, DisconnectReason, NewPlayer, SendError};
use std::time::Instant;

/// The session of one player.
pub(super) struct PlayerSession {
    pub layer: Layer,
    /// Set until the player is accepted.
    pub new: Option<NewPlayer>,
    /// Why the session has ended, if its last messages are not read.
    pub end: Option<DisconnectReason>,
    pub has_message_event: bool,
    /// Bytes of unfinished and waiting messages, as they are counted.
    pub memory: usize,
    /// Bytes of messages that wait to be sent, as they are counted.
    pub queued: usize,
    /// The application waits for memory.
    pub is_memory_blocked: bool,
    /// The endpoint will ask for messages to this player.
    pub is_woken: bool,
}

/// The layer above the connection.
pub(super) enum Layer {
    Channels(Box<ChannelSession>),
    Plain(Box<PlainSession>),
}

impl PlayerSession {
    pub fn new(layer: Layer, new: NewPlayer) -> Self {
        Self {
            layer,
            new: Some(new),
            end: None,
            has_message_event: false,
            memory: 0,
            queued: 0,
            is_memory_blocked: false,
            is_woken: false,
        }
    }
}

impl Layer {
    pub fn is_open(&self) -> bool {
        match self {
            Self::Channels(session) => session.is_open(),
            Self::Plain(session) => session.is_open(),
        }
    }

    pub fn is_awaiting_hello(&self) -> bool {
        matches!(self, Self::Channels(session) if session.is_awaiting_hello())
    }

    pub fn is_awaiting_decision(&self) -> bool {
        match self {
            Self::Channels(session) => session.is_awaiting_decision(),
            Self::Plain(session) => session.is_awaiting_decision(),
        }
    }

    /// Whether messages of the player are read: it was accepted, and follows the protocol.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Channels(session) => session.is_read(),
            Self::Plain(session) => session.is_read(),
        }
    }

    /// Whether the application can have learned of the player.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Channels(session) => session.has_hello(),
            Self::Plain(_) => true,
        }
    }

    pub fn abort(&mut self, now: Instant, connection: &mut Connection, fault: ChannelFault) {
        match self {
            Self::Channels(session) => session.abort(now, connection, fault),
            Self::Plain(session) => session.abort(now, connection, fault),
        }
    }

    pub fn close(&mut self, now: Instant, connection: &mut Connection, reason: &str) {
        match self {
            Self::Channels(session) => session.close(now, connection, reason),
            Self::Plain(session) => session.close(now, connection, reason),
        }
    }

    #[inline(always)]
    pub fn send(
        &mut self,
        now: Instant,
        channel: ChannelIndex,
        message: OutgoingMessage<'_>,
    ) -> Result<MessageId, SendError> {
        match self {
            Self::Channels(session) => session.send(now, channel, message),
            Self::Plain(session) => {
                session.send(channel, message.as_bytes()).map(|()| MessageId { channel, number: 0 })
            }
        }
    }

    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        match self {
            Self::Channels(session) => session.has_room(channel, length),
            Self::Plain(session) => session.has_room(),
        }
    }

    pub fn has_replies(&self) -> bool {
        matches!(self, Self::Channels(session) if session.has_replies())
    }

    /// Whether [`fill`](Self::fill) would have nothing to do.
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Channels(session) if session.is_idle())
    }

    /// Whether a message may be left of what was pulled from the connection.
    pub fn is_readable(&self) -> bool {
        matches!(self, Self::Channels(session) if session.is_readable())
    }

    /// Moves to the next message, and returns its channel.
    pub fn next_message(&mut self, source: &mut impl PayloadSource) -> Result<Option<ChannelIndex>, ChannelFault> {
        match self {
            Self::Channels(session) => session.next_message(source),
            Self::Plain(session) => session.next_message(source),
        }
    }

    /// The bytes of the message that [`next_message`](Self::next_message) moved to.
    /// `last`: the payload that the source returned last.
    pub fn message<'a>(&'a self, last: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Channels(session) => session.message(last),
            Self::Plain(session) => session.message(),
        }
    }

    /// Bytes of unfinished and waiting messages.
    pub fn memory(&self) -> usize {
        match self {
            Self::Channels(session) => session.memory(),
            Self::Plain(session) => session.memory(),
        }
    }

    /// Bytes of messages that wait to be sent.
    pub fn queue_memory(&self) -> usize {
        match self {
            Self::Channels(session) => session.queue_memory(),
            Self::Plain(session) => session.queue_memory(),
        }
    }

    /// Hands messages over to the connection, as many as it sends at once.
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        match self {
            Self::Channels(session) => session.fill(now, connection, allowance),
            Self::Plain(session) => session.fill(now, connection, allowance),
        }
    }

    pub fn take_writable(&mut self) -> bool {
        match self {
            Self::Channels(session) => session.take_writable(),
            Self::Plain(session) => session.take_writable(),
        }
    }

    pub fn poll_receipt(&mut self) -> Option<MessageId> {
        match self {
            Self::Channels(session) => session.poll_receipt(),
            Self::Plain(_) => None,
        }
    }
}
