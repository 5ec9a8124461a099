//! The streams of both directions of a session: messages of any length over one connection (S33).

use super::{ONLY_CHANNEL, Violation};
use crate::{
    ChannelFault, ChannelIndex, ChannelTable, Connection, SendError, StreamError, StreamReader, StreamWriter,
    channels::PayloadSource, connection::Source,
};
use std::time::Instant;

/// Maximum number of bytes of the length of a message in a stream.
const MAX_LENGTH_FIELD: usize = 4;

/// The streams of one session.
#[derive(Debug)]
pub(super) struct FrameStream {
    channel: ChannelIndex,
    /// The stream is a channel of a server with channels (W115): its messages may be empty, and a violation is one of channels.
    is_channel: bool,
    /// Maximum length of a message to the peer.
    max_message: usize,
    writer: StreamWriter,
    reader: StreamReader,
    /// The message that the application is reading.
    message: Vec<u8>,
    /// There was no room for a message.
    is_blocked: bool,
}

impl FrameStream {
    pub fn new(max_message: usize) -> Self {
        Self {
            channel: ONLY_CHANNEL,
            is_channel: false,
            max_message,
            writer: StreamWriter::new(max_message),
            reader: StreamReader::new(max_message),
            message: Vec::new(),
            is_blocked: false,
        }
    }

    /// The stream of a player whose only channel is this one of the table.
    pub fn for_channel(table: &ChannelTable, channel: ChannelIndex) -> Self {
        let (max_to_server, max_to_client) =
            table.get(channel).map_or((0, 0), |known| (known.max_to_server, known.max_to_client));
        let reader = StreamReader::new(max_to_server);
        Self { channel, is_channel: true, reader, ..Self::new(max_to_client) }
    }

    /// Maximum length of a message. As with all channels, that of a datagram for a player whose stream is one.
    pub fn max_message(&self, in_datagram: usize) -> usize {
        if self.is_channel { in_datagram } else { self.max_message }
    }

    /// Drops what was received.
    pub fn clear(&mut self) {
        self.reader = StreamReader::new(1);
    }

    /// Number of bytes that wait to be sent.
    pub fn pending(&self) -> usize {
        self.writer.pending()
    }

    /// Bytes of an unfinished message.
    pub fn buffered(&self) -> usize {
        self.reader.buffered()
    }

    pub fn is_readable(&self) -> bool {
        self.reader.has_frame()
    }

    /// Appends a message to others that wait, if they fill no datagram together.
    #[inline]
    pub fn join(&mut self, connection: &Connection, channel: ChannelIndex, message: &[u8]) -> bool {
        let pending = self.pending();
        pending > 0
            && pending + MAX_LENGTH_FIELD + message.len() < connection.max_message()
            && channel == self.channel
            && !message.is_empty()
            && self.writer.write(message).is_ok()
    }

    /// Appends a message. What waits is handed over to the connection by [`fill`](Self::fill), or now if it is too much.
    pub fn write(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        channel: ChannelIndex,
        message: &[u8],
        allowance: usize,
    ) -> Result<(), SendError> {
        if channel != self.channel || self.max_message == 0 {
            return Err(SendError::NoChannel);
        }
        if message.is_empty() && !self.is_channel {
            return Err(SendError::Empty);
        }
        if !self.has_room() {
            self.flush(now, connection, allowance);
        }
        self.writer.write(message).map_err(|error| match error {
            StreamError::TooLong { limit, length } => SendError::TooLarge { limit, length },
            StreamError::Full { .. } => {
                self.is_blocked = true;
                SendError::WouldBlock
            }
        })?;
        connection.wake_source();
        Ok(())
    }

    pub fn has_room(&self) -> bool {
        self.writer.has_room()
    }

    /// Whether there is room again after a message was refused. Each time is reported once.
    pub fn take_writable(&mut self) -> bool {
        self.is_blocked && self.has_room() && std::mem::take(&mut self.is_blocked)
    }

    /// Hands bytes over to the connection, as far as it has room.
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        self.flush(now, connection, allowance);
        if self.pending() == 0 && !self.is_blocked {
            connection.set_source(Source::IDLE);
        }
    }

    fn flush(&mut self, now: Instant, connection: &mut Connection, allowance: usize) {
        let size = connection.max_message();
        // The bytes that do not fit stay in the stream.
        let _ = self.writer.flush(size, |part| connection.send(now, part, allowance));
    }

    /// Moves to the next complete message, and returns its channel.
    pub fn read(&mut self, source: &mut impl PayloadSource) -> Result<Option<ChannelIndex>, Violation> {
        let violation = |error| match self.is_channel {
            true => Violation::Channels(ChannelFault::TooLarge(self.channel.get())),
            false => Violation::Stream(error),
        };
        loop {
            if let Some(frame) = self.reader.next_frame().map_err(violation)? {
                self.message.clear();
                self.message.extend_from_slice(frame);
                return Ok(Some(self.channel));
            }
            let Some(payload) = source.next_payload() else { return Ok(None) };
            self.reader.push(payload).map_err(violation)?;
        }
    }

    pub fn message(&self) -> &[u8] {
        &self.message
    }
}
