//! List requests and replies.
//!
//! ```text
//! request:  + 0  Requested list protocol (UUID = 297d0df4-430c-bf61-640a-640897eaef57)
//!           +16  Requested lobby (UUID)
//! reply:    + 0  Server count (uint32_t)
//!           + 4  Server list, a block each
//! ```

use super::{ListBlock, ListId, block::checked_length, registration::hex};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer, counted::counted};
use alloc::vec::Vec;

const LIST: [u8; 16] = hex(b"297d0df4430cbf61640a640897eaef57");

/// A request for the servers of a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// The requested lobby.
    pub list_id: ListId,
}

impl ListRequest {
    /// Size of a request in bytes.
    pub const SIZE: usize = 32;

    /// Parses the 32 bytes of a request; further bytes are ignored (L14).
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if *reader.array("list protocol")? != LIST {
            return Err(DecodeError::new("list protocol", DecodeErrorKind::Unknown));
        }
        Ok(Self { list_id: ListId::from_bytes(*reader.array("lobby ID")?) })
    }

    /// Appends the request.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&LIST);
        writer.bytes(self.list_id.as_bytes());
    }
}

/// Appends a complete reply.
pub fn emit_list<'a>(blocks: impl IntoIterator<Item = ListBlock<'a>>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0u32;
    for block in blocks {
        block.emit(out);
        count += 1;
    }
    out[start..start + 4].copy_from_slice(&count.to_be_bytes());
}

/// Iterates over the servers of a complete reply.
///
/// A malformed block yields an error, and the iteration continues with the next block. A reply that is truncated, claims
/// too large a block or has trailing bytes ends with an error.
pub fn blocks(reply: &[u8]) -> impl Iterator<Item = Result<ListBlock<'_>, DecodeError>> {
    let mut reader = Reader::new(reply);
    let count = reader.u32_be("server count");
    counted(reader, count, ListBlock::parse_framed)
}

/// Parses a reply as it arrives, one block at a time: the complete reply is never in memory.
///
/// ```
/// use rallypoint_wire::lobby::ListReader;
///
/// let mut reader = ListReader::new();
/// for piece in [&[0, 0][..], &[0, 0]] {
///     reader.push(piece); // the bytes of one read
///     while let Some(block) = reader.next_block() {
///         println!("{:?}", block?);
///     }
/// }
/// reader.finish()?; // the connection was closed
/// # Ok::<(), rallypoint_wire::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct ListReader {
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that have been returned.
    taken: usize,
    progress: Progress,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    /// The server count comes next.
    Count,
    /// Number of blocks that are left.
    Blocks(u32),
    /// The reply is malformed.
    Broken,
}

impl Default for ListReader {
    fn default() -> Self {
        Self::new()
    }
}

impl ListReader {
    /// A reader at the start of a reply.
    #[must_use]
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), taken: 0, progress: Progress::Count }
    }

    /// Adds received bytes. Call [`next_block`](Self::next_block) until it returns none before the next `push`: then at most
    /// one block (100,000 bytes) and one piece are buffered.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        match self.progress {
            // After the last block, one byte is enough to know that there are trailing bytes.
            Progress::Blocks(0) if !self.buffer.is_empty() => self.buffer.truncate(1),
            // The rest of a malformed reply is ignored.
            Progress::Broken => self.buffer.clear(),
            _ => self.buffer.extend_from_slice(bytes),
        }
    }

    /// The next complete block.
    ///
    /// A malformed block yields an error; the next call returns the block after it. After a block that exceeds the limit,
    /// nothing more is returned.
    pub fn next_block(&mut self) -> Option<Result<ListBlock<'_>, DecodeError>> {
        let mut reader = Reader::new(&self.buffer[self.taken..]);
        if let Progress::Count = self.progress {
            self.progress = Progress::Blocks(reader.u32_be("server count").ok()?);
            self.taken += 4;
        }
        let Progress::Blocks(left @ 1..) = self.progress else { return None };
        let length = match checked_length(reader.u32_be("block length").ok()?) {
            Ok(length) => length,
            Err(error) => {
                self.progress = Progress::Broken;
                return Some(Err(error));
            }
        };
        let block = reader.bytes(length, "block").ok()?;
        self.taken += 4 + length;
        self.progress = Progress::Blocks(left - 1);
        Some(ListBlock::parse(block))
    }

    /// Number of servers that the reply announced, minus those already returned; `None` before the first four bytes.
    #[must_use]
    pub fn remaining(&self) -> Option<u32> {
        match self.progress {
            Progress::Count => None,
            Progress::Blocks(left) => Some(left),
            Progress::Broken => Some(0),
        }
    }

    /// Checks, when the connection is closed, that the reply was complete and had no trailing bytes.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.progress {
            Progress::Blocks(0) => Reader::new(&self.buffer[self.taken..]).finish("list"),
            Progress::Count | Progress::Blocks(_) => Err(DecodeError::new("list", DecodeErrorKind::Truncated)),
            Progress::Broken => Err(DecodeError::new("block", DecodeErrorKind::TooLong)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_last_block_or_a_malformed_one_are_not_buffered() {
        let ended = [0, 0, 0, 0];
        let broken = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
        for (start, reason) in [(&ended[..], DecodeErrorKind::TrailingBytes), (&broken[..], DecodeErrorKind::TooLong)] {
            let mut reader = ListReader::new();
            reader.push(start);
            while reader.next_block().is_some() {}
            for _ in 0..1_000 {
                reader.push(&[0; 100]);
                assert_eq!(reader.next_block(), None);
            }
            assert!(reader.buffer.len() <= 100);
            assert_eq!(reader.finish().unwrap_err().kind, reason);
        }
    }
}
