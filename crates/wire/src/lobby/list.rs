//! Asking for the list, and reading it.
//!
//! ```text
//! request:  + 0  Requested list protocol (UUID = 297d0df4-430c-bf61-640a-640897eaef57)
//!           +16  Requested lobby (UUID)
//! reply:    + 0  Server count (uint32_t)
//!           + 4  Server list, a block each
//! ```

use super::{ListBlock, LobbyId, block::checked_length, registration::hex};
use crate::{DecodeError, Reader, Reason, Writer, counted::counted};
use alloc::vec::Vec;

const LIST: [u8; 16] = hex(b"297d0df4430cbf61640a640897eaef57");

/// A client asks for the servers of a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// The lobby it wants to see.
    pub lobby_id: LobbyId,
}

impl ListRequest {
    /// How long a request is.
    pub const SIZE: usize = 32;

    /// Reads the 32 bytes of a request; bytes after the 32nd are ignored (L14).
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if *reader.array("list protocol")? != LIST {
            return Err(DecodeError::new("list protocol", Reason::Unknown));
        }
        Ok(Self { lobby_id: LobbyId::from_bytes(*reader.array("lobby ID")?) })
    }

    /// Appends the request.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&LIST);
        writer.bytes(self.lobby_id.as_bytes());
    }
}

/// Appends a whole reply.
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

/// The servers in a whole reply.
///
/// A block that makes no sense is an error in its place, and the walk goes on behind it; a reply that is cut short, claims
/// too much or goes on behind its last block ends with an error.
pub fn blocks(reply: &[u8]) -> impl Iterator<Item = Result<ListBlock<'_>, DecodeError>> {
    let mut reader = Reader::new(reply);
    let count = reader.u32_be("server count");
    counted(reader, count, ListBlock::parse_framed)
}

/// Reads a reply as it arrives, one block at a time: the whole reply never needs to be in memory.
///
/// ```
/// use rallypoint_wire::lobby::ListReader;
///
/// let mut reader = ListReader::new();
/// for piece in [&[0, 0][..], &[0, 0]] {
///     reader.push(piece); // what a read gave
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
    /// How much of the buffer has been given out.
    taken: usize,
    progress: Progress,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    /// The server count comes next.
    Count,
    /// So many blocks are left.
    Blocks(u32),
    /// What came makes no sense.
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

    /// Takes in what arrived. Call [`next_block`](Self::next_block) until it gives nothing before the next `push`: then
    /// no more than one block (at most 100,000 bytes) and one piece are held at a time.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        match self.progress {
            // Behind the last block one byte is enough to know that it is one too many.
            Progress::Blocks(0) if !self.buffer.is_empty() => self.buffer.truncate(1),
            // Nothing of a broken reply is looked at any more.
            Progress::Broken => self.buffer.clear(),
            _ => self.buffer.extend_from_slice(bytes),
        }
    }

    /// The next block that is there as a whole.
    ///
    /// A block that makes no sense is an error in its place; the next call gives the one behind it. After a block that is
    /// too long to be one, nothing more comes.
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

    /// How many servers the reply says it has, minus those given out: `None` until its first four bytes are there.
    #[must_use]
    pub fn remaining(&self) -> Option<u32> {
        match self.progress {
            Progress::Count => None,
            Progress::Blocks(left) => Some(left),
            Progress::Broken => Some(0),
        }
    }

    /// The connection was closed: was that the whole reply, and nothing but it?
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.progress {
            Progress::Blocks(0) => Reader::new(&self.buffer[self.taken..]).finish("list"),
            Progress::Count | Progress::Blocks(_) => Err(DecodeError::new("list", Reason::Truncated)),
            Progress::Broken => Err(DecodeError::new("block", Reason::TooLong)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_last_block_or_a_broken_one_is_not_kept() {
        let ended = [0, 0, 0, 0];
        let broken = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
        for (start, reason) in [(&ended[..], Reason::TrailingBytes), (&broken[..], Reason::TooLong)] {
            let mut reader = ListReader::new();
            reader.push(start);
            while reader.next_block().is_some() {}
            for _ in 0..1_000 {
                reader.push(&[0; 100]);
                assert_eq!(reader.next_block(), None);
            }
            assert!(reader.buffer.len() <= 100);
            assert_eq!(reader.finish().unwrap_err().reason, reason);
        }
    }
}
