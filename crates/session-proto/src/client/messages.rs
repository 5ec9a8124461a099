//! Messages between the application and the session.

use super::{Client, Connected, MAX_EVENTS, State};
use crate::{
    ChannelIndex, ClientEvent, Connection, MessageId, SendError,
    channels::{Next, OutgoingMessage},
    session::Session,
};
use rallypoint_machine::Machine;
use std::{collections::VecDeque, time::Instant};

impl Client {
    /// Whether a channel has room for a message of this length; also if there is no session to wait for.
    #[must_use]
    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        self.connected().is_none_or(|own| own.session.has_room(&own.connection, channel, length))
    }

    /// Maximum length of a message; with channels, whose table limits it, of one that fits into a datagram.
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        self.connected().map(|own| own.session.max_message(&own.connection))
    }

    /// Whether receipts or credits for messages that were read have to be sent.
    #[must_use]
    pub fn has_replies(&self) -> bool {
        self.connected().is_some_and(|own| own.session.has_replies())
    }

    /// Whether messages of a channel expire: then the time at which they are sent matters. The others may be sent with the time at
    /// which datagrams were last handled or polled.
    #[must_use]
    #[inline]
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        self.config.layer.is_expiring(channel)
    }

    /// Sends a message on a channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) if the session has no others. The ID is for receipts,
    /// which only channels can have.
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or there is no room in the window or in the queue of
    /// the channel: then [`ClientEvent::Writable`] follows.
    pub fn send(&mut self, now: Instant, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let Connected { connection, session, .. } = match &mut self.state {
            State::Connected(own) => &mut **own,
            State::LoggingIn(_) | State::WaitingToReconnect(_) => return Err(SendError::NotConnected),
            State::Closed => return Err(SendError::Closed),
        };
        match session.send_directly(now, connection, channel, message, usize::MAX, || true) {
            Some(sent) => sent,
            None => queue(now, connection, session, channel, message),
        }
    }

    /// The next message and its channel. Its bytes stay valid until the next call. After the end of a session, the messages that
    /// are left can still be read; [`ClientEvent::Disconnected`] follows the last one, and then the next session.
    pub fn recv(&mut self) -> Option<(ChannelIndex, &[u8])> {
        if let Some(unread) = self.unread.front_mut() {
            let channel = unread.as_mut()?.recv();
            if channel.is_none() {
                *unread = None;
            }
            return Some((channel?, unread.as_ref()?.message()));
        }
        let State::Connected(own) = &mut self.state else { return None };
        let Connected { connection, session, .. } = &mut **own;
        connection.reopen_window();
        match session.next(connection) {
            Next::Nothing => None,
            Next::Message(channel) => Some((channel, connection.last_received_from(session.message_start()))),
            next => {
                let received = session.finish_read(next, connection).unwrap_or_else(|violation| {
                    session.fail(connection, violation);
                    None
                });
                if session.has_work() {
                    connection.wake_source();
                }
                collect_receipts(session, &mut self.events);
                received.map(|channel| (channel, session.message(connection)))
            }
        }
    }

    /// The next event; if it is a message, that is copied into `buffer`, and was received on this channel. For a caller that does
    /// not call [`poll_event`](Machine::poll_event).
    pub fn next_event(&mut self, buffer: &mut Vec<u8>) -> Option<(ClientEvent, ChannelIndex)> {
        loop {
            let event = self.poll_event()?;
            if event != ClientEvent::Message {
                return Some((event, ChannelIndex::default()));
            }
            if let Some((channel, bytes)) = self.recv() {
                buffer.clear();
                buffer.extend_from_slice(bytes);
                // There may be more.
                if self.unread.is_empty() {
                    self.raise_message();
                } else {
                    self.has_raised_unread = false;
                }
                return Some((event, channel));
            }
        }
    }

    #[inline]
    pub(super) fn raise_message(&mut self) {
        if !std::mem::replace(&mut self.has_message_event, true) {
            self.events.push_back(ClientEvent::Message);
        }
    }

    pub(super) fn raise_writable(&mut self) {
        if !std::mem::replace(&mut self.has_writable_event, true) {
            self.events.push_back(ClientEvent::Writable);
        }
    }
}

/// Raises [`ClientEvent::Receipt`] for the receipts of the server.
pub(super) fn collect_receipts(session: &mut Session, events: &mut VecDeque<ClientEvent>) {
    while events.len() < MAX_EVENTS / 2
        && let Some(id) = session.poll_receipt()
    {
        events.push_back(ClientEvent::Receipt(id));
    }
}

/// Sends a message that may have to wait in a queue.
#[inline(never)]
fn queue(
    now: Instant,
    connection: &mut Connection,
    session: &mut Session,
    channel: ChannelIndex,
    message: &[u8],
) -> Result<MessageId, SendError> {
    session.queue(now, connection, channel, OutgoingMessage::Borrowed(message), usize::MAX)
}
