//! Messages of any length over one connection: a stream in each direction (S33).

use rallypoint_session_proto::{SendError, StreamError, StreamReader, StreamWriter};

/// Maximum length of the length of a message in the stream.
const MAX_HEADER: usize = 4;

/// The streams of both directions of one connection.
#[derive(Debug)]
pub(crate) struct FrameStream {
    writer: StreamWriter,
    reader: StreamReader,
    /// Number of waiting bytes at which a datagram is full, as of the last [`write`](Self::write).
    datagram_size: usize,
    /// The connection has to be closed with this reason once everything is flushed.
    pub close_reason: Option<String>,
}

impl FrameStream {
    pub fn new(max_message: usize) -> Self {
        Self {
            writer: StreamWriter::new(max_message),
            reader: StreamReader::new(max_message),
            datagram_size: 0,
            close_reason: None,
        }
    }

    /// Appends a message to others that wait, if it fills no datagram. Returns false if it has to be passed to
    /// [`write`](Self::write).
    #[inline]
    pub fn append(&mut self, message: &[u8]) -> bool {
        let pending = self.writer.pending();
        let fits = pending > 0 && pending + MAX_HEADER + message.len() < self.datagram_size;
        fits && !message.is_empty() && self.close_reason.is_none() && self.writer.write(message).is_ok()
    }

    /// Appends a message. Full datagrams are passed to `send` at once; the rest waits for more, until [`flush`](Self::flush).
    pub fn write(
        &mut self,
        message: &[u8],
        datagram_size: usize,
        mut send: impl FnMut(&[u8]) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        self.datagram_size = datagram_size;
        if self.close_reason.is_some() {
            return Err(SendError::Closed);
        }
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        let mut written = self.writer.write(message);
        if let Err(StreamError::Full { .. }) = written {
            let _ = self.flush(datagram_size, &mut send);
            written = self.writer.write(message);
        }
        written.map_err(|error| match error {
            StreamError::TooLong { limit, length } => SendError::TooLarge { limit, length },
            _ => SendError::WouldBlock,
        })?;
        if self.writer.pending() < datagram_size {
            return Ok(());
        }
        let send_full = |part: &[u8]| if part.len() == datagram_size { send(part) } else { Err(SendError::WouldBlock) };
        match self.flush(datagram_size, send_full) {
            // The message is accepted, and the rest is sent later.
            Err(SendError::WouldBlock) => Ok(()),
            result => result,
        }
    }

    /// Keeps the stream to the peer, and begins a new one from the peer.
    pub fn into_writer(self, max_message: usize) -> Self {
        Self { reader: StreamReader::new(max_message), ..self }
    }

    /// Starts a new stream to the peer. Returns whether bytes of the old one were not sent.
    pub fn reset_writer(&mut self, max_message: usize) -> bool {
        let is_lost = !self.is_flushed();
        self.writer = StreamWriter::new(max_message);
        is_lost
    }

    /// Sends the bytes that wait, as far as there is room.
    pub fn flush(
        &mut self,
        datagram_size: usize,
        send: impl FnMut(&[u8]) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        if self.is_flushed() { Ok(()) } else { self.writer.flush(datagram_size, send) }
    }

    pub fn is_flushed(&self) -> bool {
        self.writer.pending() == 0
    }

    /// Copies the next complete message into `message` and returns true, or false if there is none; `pull` passes the next
    /// part to the reader.
    pub fn read(
        &mut self,
        message: &mut Vec<u8>,
        mut pull: impl FnMut(&mut StreamReader) -> Option<Result<(), StreamError>>,
    ) -> Result<bool, StreamError> {
        loop {
            if let Some(frame) = self.reader.next_frame()? {
                message.clear();
                message.extend_from_slice(frame);
                return Ok(true);
            }
            match pull(&mut self.reader) {
                Some(pushed) => pushed?,
                None => return Ok(false),
            }
        }
    }
}
