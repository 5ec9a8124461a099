//! Writes the records of a payload.

use super::{
    CONTROL_CREDIT, CONTROL_HELLO, CONTROL_RECEIPT, ChannelIndex, FRAGMENT_HEADER, HAS_LENGTH, Hello, KIND_CONTROL,
    KIND_FRAGMENT, KIND_MESSAGE, LENGTH, MESSAGE_HEADER, TableEntry,
};
use crate::Writer;
use alloc::vec::Vec;

/// Maximum number of sequences that [`RecordWriter::receipt`] writes into one record.
pub const MAX_SEQUENCES: usize = 64;

/// Packs records into one payload. The buffer is reused: nothing is allocated per payload.
///
/// Each call that adds a record returns false if there is no room for it; then nothing has changed.
#[derive(Clone, Debug)]
pub struct RecordWriter {
    bytes: Vec<u8>,
    limit: usize,
    /// Offset of the last record, if there is room for its length: it is preceded by as many unused bytes. If another record
    /// follows, its head moves there and the length takes their place; the last record needs none.
    last: Option<usize>,
    /// The last record has no length, because there was no room for one: nothing can follow.
    is_finished: bool,
}

impl RecordWriter {
    /// A writer of payloads of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, last: None, is_finished: false }
    }

    /// Starts another payload, of at most `limit` bytes.
    pub fn start(&mut self, limit: usize) {
        self.bytes.clear();
        self.limit = limit;
        self.last = None;
        self.is_finished = false;
    }

    /// Whether no record was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Maximum length of the payload.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Maximum length of the body of a message that still fits, if any does.
    #[must_use]
    pub fn room(&self) -> Option<usize> {
        if self.is_finished { None } else { (self.limit - self.bytes.len()).checked_sub(MESSAGE_HEADER) }
    }

    /// Adds a whole message.
    pub fn message(&mut self, channel: ChannelIndex, sequence: u16, body: &[u8]) -> bool {
        self.record(KIND_MESSAGE | channel.get(), MESSAGE_HEADER - 1 + body.len(), |writer| {
            writer.u16_le(sequence);
            writer.bytes(body);
        })
    }

    /// Adds a part of a message.
    pub fn fragment(&mut self, channel: ChannelIndex, sequence: u16, index: u16, count: u16, body: &[u8]) -> bool {
        self.record(KIND_FRAGMENT | channel.get(), FRAGMENT_HEADER - 1 + body.len(), |writer| {
            writer.u16_le(sequence);
            writer.u16_le(index);
            writer.u16_le(count);
            writer.bytes(body);
        })
    }

    /// Adds a hello.
    pub fn hello(&mut self, table: &[TableEntry], token: &[u8]) -> bool {
        let start = self.bytes.len();
        self.bytes.push(KIND_CONTROL | CONTROL_HELLO);
        Hello::emit(table, token, &mut Writer::new(&mut self.bytes));
        // A hello is alone in its payload.
        let fits = start == 0 && self.bytes.len() <= self.limit;
        if !fits {
            self.bytes.truncate(start);
        }
        self.is_finished |= fits;
        fits
    }

    /// Adds a receipt of at most [`MAX_SEQUENCES`] messages. Returns the number of those that fit.
    pub fn receipt(&mut self, channel: ChannelIndex, sequences: impl ExactSizeIterator<Item = u16>) -> usize {
        let room = self.limit.saturating_sub(self.bytes.len() + 1 + LENGTH + 1) / 2;
        let count = sequences.len().min(room).min(MAX_SEQUENCES);
        let is_added = count > 0
            && self.record(KIND_CONTROL | CONTROL_RECEIPT, 1 + 2 * count, |writer| {
                writer.u8(channel.get());
                sequences.take(count).for_each(|sequence| writer.u16_le(sequence));
            });
        if is_added { count } else { 0 }
    }

    /// Adds a credit.
    pub fn credit(&mut self, channel: ChannelIndex, sequence: u16) -> bool {
        self.record(KIND_CONTROL | CONTROL_CREDIT, 3, |writer| {
            writer.u8(channel.get());
            writer.u16_le(sequence);
        })
    }

    /// The payload.
    pub fn finish(&mut self) -> &[u8] {
        let last = self.last.take();
        self.is_finished |= last.is_some();
        match last {
            // A single record, which is often a large one, is not moved.
            Some(0) => return self.bytes.get(LENGTH..).unwrap_or_default(),
            Some(last) => drop(self.bytes.drain(last..last + LENGTH)),
            None => {}
        }
        &self.bytes
    }

    fn record(&mut self, head: u8, length: usize, write: impl FnOnce(&mut Writer<'_>)) -> bool {
        let room = self.limit.saturating_sub(self.bytes.len());
        if self.is_finished || 1 + length > room {
            return false;
        }
        self.close_last();
        let start = self.bytes.len();
        let has_room_for_length = 1 + LENGTH + length <= room;
        let mut writer = Writer::new(&mut self.bytes);
        if has_room_for_length {
            writer.bytes(&[0; LENGTH]);
        }
        writer.u8(head);
        write(&mut writer);
        self.last = has_room_for_length.then_some(start);
        self.is_finished = !has_room_for_length;
        true
    }

    /// Gives the last record its length, because another follows.
    fn close_last(&mut self) {
        let Some(last) = self.last.take() else { return };
        let length = self.bytes.len() - last - 1 - LENGTH;
        // In range: a record was written there.
        self.bytes[last] = self.bytes[last + LENGTH] | HAS_LENGTH;
        self.bytes[last + 1..=last + LENGTH].copy_from_slice(&(length as u16).to_le_bytes());
    }
}
