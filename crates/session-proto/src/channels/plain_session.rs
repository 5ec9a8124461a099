//! The session of a player without channels on a server that has them (W115): one channel, as a stream (S33).

use super::{ChannelFault, ChannelIndex, ChannelTable, payload_source::PayloadSource};
use crate::{Connection, DisconnectReason, SendError, StreamError, StreamReader, StreamWriter};
use std::time::Instant;

/// The session of a player without channels.
#[derive(Debug)]
pub(super) struct PlainSession {
    channel: ChannelIndex,
    max_to_client: usize,
    reader: StreamReader,
    writer: StreamWriter,
    /// The message that the application is reading.
    message: Vec<u8>,
    state: State,
    /// There was no room for a message.
    is_blocked: bool,
}

#[derive(Debug)]
enum State {
    /// The server has not decided whether the player may join.
    AwaitingDecision,
    Open,
    /// The stream is sent, then the connection is closed.
    Closing(String),
    Done,
    /// The player was refused or does not follow the protocol: nothing more of it is read.
    Aborted,
}

impl PlainSession {
    /// `channel`: the one that such a player has, which is part of the table.
    pub fn new(table: &ChannelTable, channel: ChannelIndex) -> Self {
        let sizes = table.get(channel).map_or((0, 0), |known| (known.max_to_server, known.max_to_client));
        let (max_to_server, max_to_client) = sizes;
        Self {
            channel,
            max_to_client,
            reader: StreamReader::new(max_to_server),
            writer: StreamWriter::new(max_to_client),
            message: Vec::new(),
            state: State::AwaitingDecision,
            is_blocked: false,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub fn is_awaiting_decision(&self) -> bool {
        matches!(self.state, State::AwaitingDecision)
    }

    /// Whether messages of the player are read: it was accepted, and follows the protocol.
    pub fn is_read(&self) -> bool {
        !matches!(self.state, State::AwaitingDecision | State::Aborted)
    }

    pub fn open(&mut self) {
        self.state = State::Open;
    }

    pub fn abort(&mut self, now: Instant, connection: &mut Connection, fault: ChannelFault) {
        self.state = State::Aborted;
        self.reader = StreamReader::new(1);
        connection.abort(now, DisconnectReason::Channels(fault));
    }

    pub fn close(&mut self, now: Instant, connection: &mut Connection, reason: &str) {
        match self.state {
            State::Open => {
                connection.begin_close(now, reason);
                self.state = State::Closing(reason.to_owned());
                self.fill(now, connection, usize::MAX);
            }
            State::AwaitingDecision => {
                self.state = State::Aborted;
                connection.close(now, reason);
            }
            State::Closing(_) | State::Done | State::Aborted => {}
        }
    }

    pub fn send(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<(), SendError> {
        match self.state {
            State::Open => {}
            State::AwaitingDecision => return Err(SendError::NotConnected),
            State::Closing(_) | State::Done | State::Aborted => return Err(SendError::Closed),
        }
        if channel != self.channel || self.max_to_client == 0 {
            return Err(SendError::NoChannel);
        }
        self.writer.write(message).map_err(|error| match error {
            StreamError::TooLong { limit, length } => SendError::TooLarge { limit, length },
            StreamError::Full { .. } => {
                self.is_blocked = true;
                SendError::WouldBlock
            }
        })
    }

    pub fn has_room(&self) -> bool {
        !self.is_open() || self.writer.pending() <= 2 * self.max_to_client
    }

    /// Whether there is room again after a message was refused. Each time is reported once.
    pub fn take_writable(&mut self) -> bool {
        self.is_blocked && self.has_room() && std::mem::take(&mut self.is_blocked)
    }

    /// Moves to the next message, and returns its channel.
    pub fn next_message(&mut self, source: &mut impl PayloadSource) -> Result<Option<ChannelIndex>, ChannelFault> {
        if !self.is_read() {
            return Ok(None);
        }
        loop {
            if let Some(frame) = self.reader.next_frame().map_err(|_| ChannelFault::TooLarge(self.channel.get()))? {
                self.message.clear();
                self.message.extend_from_slice(frame);
                return Ok(Some(self.channel));
            }
            let Some(payload) = source.next_payload() else { return Ok(None) };
            self.reader.push(payload).map_err(|_| ChannelFault::TooLarge(self.channel.get()))?;
        }
    }

    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Bytes of messages that wait to be sent.
    pub fn queue_memory(&self) -> usize {
        self.writer.pending()
    }

    /// Bytes of an unfinished message.
    pub fn memory(&self) -> usize {
        self.reader.buffered()
    }

    /// Hands messages over to the connection, as far as it has room.
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        if matches!(self.state, State::AwaitingDecision | State::Done | State::Aborted) {
            return;
        }
        let size = connection.max_message();
        // The bytes that do not fit stay in the stream.
        let _ = self.writer.flush(size, |part| connection.send(now, part, allowance));
        if self.writer.pending() == 0
            && let State::Closing(reason) = &self.state
        {
            connection.close(now, reason);
            self.state = State::Done;
        }
    }
}
