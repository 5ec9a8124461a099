//! Messages of any length over messages that have to fit into a datagram (S33).
//!
//! An ordered session carries a stream of bytes, cut into messages wherever they are full. In the stream each frame follows
//! its length, which is written in groups of 7 bits, the low group first, with the high bit set if more follow. So a large
//! frame takes many messages, and many small frames share one.
//!
//! ```
//! use rallypoint_session_proto::{StreamReader, StreamWriter};
//!
//! let (mut writer, mut reader) = (StreamWriter::default(), StreamReader::default());
//! writer.write(b"position")?;
//! writer.write(&[7; 1000])?;
//! // Each message goes to `send` of the session, and on the other side from `recv` into the reader.
//! writer.flush(484, |message| reader.push(message))?;
//! assert_eq!(reader.next_frame()?, Some(&b"position"[..]));
//! assert_eq!(reader.next_frame()?, Some(&[7; 1000][..]));
//! assert_eq!(reader.next_frame()?, None);
//! # Ok::<(), rallypoint_session_proto::StreamError>(())
//! ```
//!
//! Both sides have to agree to use it: nothing on the wire says so.

/// The longest frame, if nothing else is asked for.
const MAX_FRAME: usize = 1 << 20;

/// The longest that a length can be: four groups.
const LONGEST: usize = (1 << 28) - 1;

/// Why a frame cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The frame is longer than this side allows.
    #[error("a frame has at most {limit} bytes, but this one has {length}")]
    TooLong {
        /// How long it can be.
        limit: usize,
        /// How long it is.
        length: usize,
    },
    /// More is written than was sent, by twice the longest frame: wait until the session is writable.
    #[error("{pending} bytes wait to be sent: flush them first")]
    Full {
        /// How many bytes wait.
        pending: usize,
    },
}

/// Turns frames into messages.
#[derive(Debug)]
pub struct StreamWriter {
    max_frame: usize,
    bytes: Vec<u8>,
    /// What of it was sent.
    sent: usize,
}

/// Turns messages into frames.
#[derive(Debug)]
pub struct StreamReader {
    max_frame: usize,
    bytes: Vec<u8>,
    /// What of it was read.
    read: usize,
}

impl StreamWriter {
    /// For frames of at most so many bytes: from 1 to 2^28 - 1.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame: max_frame.clamp(1, LONGEST), bytes: Vec::new(), sent: 0 }
    }

    /// Appends a frame; it may be empty.
    ///
    /// # Errors
    /// If it is too long, or too much waits to be sent.
    pub fn write(&mut self, frame: &[u8]) -> Result<(), StreamError> {
        let (limit, length, pending) = (self.max_frame, frame.len(), self.pending());
        if length > limit {
            return Err(StreamError::TooLong { limit, length });
        }
        if pending > 2 * limit {
            return Err(StreamError::Full { pending });
        }
        let mut rest = length;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        self.bytes.extend_from_slice(frame);
        Ok(())
    }

    /// How many bytes wait to be sent.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Hands all that waits to `send`, in messages of at most `size` bytes. What `send` refuses stays.
    ///
    /// # Errors
    /// What `send` says.
    pub fn flush<E>(&mut self, size: usize, mut send: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut result = Ok(());
        for message in self.bytes[self.sent..].chunks(size.max(1)) {
            result = send(message);
            if result.is_err() {
                break;
            }
            self.sent += message.len();
        }
        compact(&mut self.bytes, &mut self.sent);
        result
    }
}

impl StreamReader {
    /// For frames of at most so many bytes: from 1 to 2^28 - 1.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame: max_frame.clamp(1, LONGEST), bytes: Vec::new(), read: 0 }
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// If a frame begins that is too long: then the stream cannot be understood any more, and the session should be closed.
    pub fn push(&mut self, message: &[u8]) -> Result<(), StreamError> {
        compact(&mut self.bytes, &mut self.read);
        self.bytes.extend_from_slice(message);
        self.head().map(|_| ())
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// If a frame begins that is too long.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, StreamError> {
        let Some((head, length)) = self.head()? else { return Ok(None) };
        let start = self.read + head;
        let Some(frame) = self.bytes.get(start..start + length) else { return Ok(None) };
        self.read = start + length;
        Ok(Some(frame))
    }

    /// The length of the next frame, and how many bytes tell it.
    fn head(&self) -> Result<Option<(usize, usize)>, StreamError> {
        let mut length = 0;
        for (group, &byte) in self.bytes[self.read..].iter().take(4).enumerate() {
            length |= usize::from(byte & 0x7f) << (7 * group);
            let whole = byte & 0x80 == 0;
            // Four groups are the most.
            if (whole && length > self.max_frame) || (!whole && group == 3) {
                return Err(StreamError::TooLong { limit: self.max_frame, length });
            }
            if whole {
                return Ok(Some((group + 1, length)));
            }
        }
        Ok(None)
    }
}

impl Default for StreamWriter {
    /// For frames of at most a megabyte.
    fn default() -> Self {
        Self::new(MAX_FRAME)
    }
}

impl Default for StreamReader {
    /// For frames of at most a megabyte.
    fn default() -> Self {
        Self::new(MAX_FRAME)
    }
}

/// Drops what is done with, when it is more than what is left: so no byte is moved often.
fn compact(bytes: &mut Vec<u8>, done: &mut usize) {
    if *done == bytes.len() {
        bytes.clear();
        *done = 0;
    } else if *done > bytes.len() / 2 {
        bytes.drain(..*done);
        *done = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn s33_frames_come_out_as_they_went_in(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..40),
            size in 1..500usize,
            refuses in 0..5u32,
        ) {
            let (mut writer, mut reader) = (StreamWriter::default(), StreamReader::default());
            let (mut read, mut calls) = (Vec::new(), 0u32);
            let mut frames_left = frames.iter();
            while frames_left.len() > 0 || writer.pending() > 0 {
                if let Some(frame) = frames_left.next() {
                    writer.write(frame).unwrap();
                }
                let _ = writer.flush(size, |message| {
                    calls += 1;
                    if refuses > 0 && calls.is_multiple_of(refuses + 1) {
                        return Err(());
                    }
                    reader.push(message).map_err(|_| ())
                });
                while let Some(frame) = reader.next_frame().unwrap() {
                    read.push(frame.to_vec());
                }
            }
            prop_assert_eq!(read, frames);
        }

        #[test]
        fn anything_can_be_pushed(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
            let mut reader = StreamReader::new(50);
            for message in messages {
                let _ = reader.push(&message);
                while let Ok(Some(frame)) = reader.next_frame() {
                    prop_assert!(frame.len() <= 50);
                }
            }
        }
    }

    #[test]
    fn s33_limits_are_named() {
        let mut writer = StreamWriter::new(10);
        assert_eq!(writer.write(&[0; 11]), Err(StreamError::TooLong { limit: 10, length: 11 }));
        for _ in 0..2 {
            writer.write(&[0; 10]).unwrap();
        }
        assert_eq!(writer.write(&[]), Err(StreamError::Full { pending: 22 }));
        let mut reader = StreamReader::new(10);
        assert_eq!(reader.push(&[11]), Err(StreamError::TooLong { limit: 10, length: 11 }));
        assert!(StreamReader::default().push(&[0xff; 4]).is_err());
        assert!(StreamReader::default().push(&[0x80, 0x80, 0x80, 0x80]).is_err());
        assert_eq!(StreamReader::default().push(&[0xff; 3]), Ok(()));
    }
}
