//! Messages of any length: a stream for each connection (S33).

use rallypoint_session_proto::{SendError, StreamError, StreamReader, StreamWriter};

/// Both directions of one connection.
#[derive(Debug)]
pub(crate) struct Streams {
    writer: StreamWriter,
    reader: StreamReader,
    /// The connection is to be closed, with these words, when everything is written.
    pub closing: Option<String>,
}

impl Streams {
    pub fn new(longest: usize) -> Self {
        Self { writer: StreamWriter::new(longest), reader: StreamReader::new(longest), closing: None }
    }

    /// Takes a message. Full datagrams leave at once; the rest waits for more, until [`flush`](Self::flush).
    pub fn write(
        &mut self,
        message: &[u8],
        size: usize,
        mut send: impl FnMut(&[u8]) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        if self.closing.is_some() {
            return Err(SendError::Closed);
        }
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        let mut taken = self.writer.write(message);
        if let Err(StreamError::Full { .. }) = taken {
            let _ = self.flush(size, &mut send);
            taken = self.writer.write(message);
        }
        taken.map_err(|error| match error {
            StreamError::TooLong { limit, length } => SendError::TooLarge { limit, length },
            _ => SendError::WouldBlock,
        })?;
        if self.writer.pending() < size {
            return Ok(());
        }
        let send_full = |part: &[u8]| if part.len() == size { send(part) } else { Err(SendError::WouldBlock) };
        match self.flush(size, send_full) {
            // It is taken, and the rest leaves later.
            Err(SendError::WouldBlock) => Ok(()),
            result => result,
        }
    }

    /// Sends what waits, as far as there is room.
    pub fn flush(&mut self, size: usize, send: impl FnMut(&[u8]) -> Result<(), SendError>) -> Result<(), SendError> {
        if self.writer.pending() == 0 { Ok(()) } else { self.writer.flush(size, send) }
    }

    pub fn is_flushed(&self) -> bool {
        self.writer.pending() == 0
    }

    /// The next whole message, if there is one; `pull` gives the reader the next part.
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
