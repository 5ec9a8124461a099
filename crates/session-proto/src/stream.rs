//! Frames of any length over messages that have to fit into a datagram (S33).
//!
//! An ordered session carries a stream of bytes, cut into messages of the largest size. In the stream each frame follows its
//! length, which is written in groups of 7 bits, the low group first, with the high bit set if more follow. So a large frame
//! takes many messages, and many small frames share one.
//!
//! Both sides have to agree to use streams: nothing on the wire shows it.

/// Default maximum length of a frame in bytes.
const DEFAULT_MAX_FRAME: usize = 1 << 20;

/// Largest length that can be written: four groups of 7 bits.
const MAX_LENGTH: usize = (1 << 28) - 1;

/// Why a frame cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The frame is longer than this side allows.
    #[error("a frame of {length} bytes is too long: the limit is {limit} bytes")]
    TooLong {
        /// Maximum length in bytes.
        limit: usize,
        /// Length of the frame in bytes.
        length: usize,
    },
    /// More than twice the length of the longest frame waits to be sent: wait until the session is writable.
    #[error("{pending} bytes wait to be sent: flush them first")]
    Full {
        /// Number of bytes that wait to be sent.
        pending: usize,
    },
}

/// Cuts frames into messages.
///
/// ```
/// use rallypoint_session_proto::{StreamReader, StreamWriter};
///
/// let mut writer = StreamWriter::default();
/// let mut reader = StreamReader::default();
/// writer.write(b"position")?;
/// writer.write(&[7; 1000])?;
/// // Each message is passed to `send` of the session; on the other side, what `recv` returns is passed to the reader.
/// writer.flush(484, |message| reader.push(message))?;
/// assert_eq!(reader.next_frame()?, Some(&b"position"[..]));
/// assert_eq!(reader.next_frame()?, Some(&[7; 1000][..]));
/// assert_eq!(reader.next_frame()?, None);
/// # Ok::<(), rallypoint_session_proto::StreamError>(())
/// ```
#[derive(Debug)]
pub struct StreamWriter {
    max_frame: usize,
    bytes: Vec<u8>,
    /// Number of `bytes` that were sent.
    sent: usize,
}

/// Puts messages together into frames.
#[derive(Debug)]
pub struct StreamReader {
    max_frame: usize,
    bytes: Vec<u8>,
    /// Number of `bytes` that were read.
    read: usize,
}

// Slicing in this file cannot fail: `sent` and `read` never exceed the length of `bytes`.
impl StreamWriter {
    /// Sets the maximum length of a frame in bytes: from 1 to 2^28 - 1.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame: max_frame.clamp(1, MAX_LENGTH), bytes: Vec::new(), sent: 0 }
    }

    /// Appends a frame, which may be empty.
    ///
    /// # Errors
    /// If the frame is too long, or too many bytes wait to be sent.
    #[inline]
    pub fn write(&mut self, frame: &[u8]) -> Result<(), StreamError> {
        let limit = self.max_frame;
        let length = frame.len();
        if length > limit {
            return Err(StreamError::TooLong { limit, length });
        }
        if !self.has_room() {
            return Err(StreamError::Full { pending: self.pending() });
        }
        self.bytes.reserve(4 + length);
        let mut rest = length;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        self.bytes.extend_from_slice(frame);
        Ok(())
    }

    /// Number of bytes that wait to be sent.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether no more bytes wait than may do so when a frame is appended.
    pub(crate) fn has_room(&self) -> bool {
        self.pending() <= 2 * self.max_frame
    }

    /// Passes the waiting bytes to `send`, in messages of at most `size` bytes, until `send` fails. What it refuses is kept.
    ///
    /// # Errors
    /// The error of `send`.
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
    /// Sets the maximum length of a frame in bytes: from 1 to 2^28 - 1.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame: max_frame.clamp(1, MAX_LENGTH), bytes: Vec::new(), read: 0 }
    }

    /// Appends the next message.
    ///
    /// # Errors
    /// If a frame is too long. The rest of the stream cannot be read then, and the session should be closed.
    pub fn push(&mut self, message: &[u8]) -> Result<(), StreamError> {
        compact(&mut self.bytes, &mut self.read);
        self.bytes.extend_from_slice(message);
        self.header().map(|_| ())
    }

    /// Number of bytes that were not read as frames yet.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Whether there is a complete frame.
    pub(crate) fn has_frame(&self) -> bool {
        matches!(self.header(), Ok(Some((header, length))) if self.buffered() >= header + length)
    }

    /// The next complete frame, if there is one.
    ///
    /// # Errors
    /// If a frame is too long.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, StreamError> {
        let Some((header, length)) = self.header()? else { return Ok(None) };
        let start = self.read + header;
        let Some(frame) = self.bytes.get(start..start + length) else { return Ok(None) };
        self.read = start + length;
        Ok(Some(frame))
    }

    /// The length of the next frame's length field, and of the frame.
    fn header(&self) -> Result<Option<(usize, usize)>, StreamError> {
        let mut length = 0;
        for (group, &byte) in self.bytes[self.read..].iter().take(4).enumerate() {
            length |= usize::from(byte & 0x7f) << (7 * group);
            let is_last = byte & 0x80 == 0;
            // There are at most four groups.
            if (is_last && length > self.max_frame) || (!is_last && group == 3) {
                return Err(StreamError::TooLong { limit: self.max_frame, length });
            }
            if is_last {
                return Ok(Some((group + 1, length)));
            }
        }
        Ok(None)
    }
}

impl Default for StreamWriter {
    /// Frames have at most a mebibyte.
    fn default() -> Self {
        Self::new(DEFAULT_MAX_FRAME)
    }
}

impl Default for StreamReader {
    /// Frames have at most a mebibyte.
    fn default() -> Self {
        Self::new(DEFAULT_MAX_FRAME)
    }
}

/// Drops the bytes that are done with once they outnumber the rest, so that no byte is moved often.
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
        fn s33_frames_are_read_as_they_were_written(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..40),
            size in 1..500usize,
            refuses in 0..5u32,
        ) {
            let mut writer = StreamWriter::default();
            let mut reader = StreamReader::default();
            let mut read = Vec::new();
            let mut calls = 0u32;
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
        fn s33_arbitrary_bytes_never_yield_a_frame_above_the_limit(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
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
    fn s33_errors_name_the_limit() {
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
