//! Writes the records of a payload.

use super::{
    CONTROL_CREDIT, CONTROL_HELLO, CONTROL_RECEIPT, ChannelIndex, HAS_LENGTH, Hello, KIND_CONTROL, KIND_FRAGMENT,
    KIND_MESSAGE, LENGTH, MESSAGE_HEADER, TableEntry,
};
use crate::Writer;
use alloc::{vec, vec::Vec};

/// Maximum number of sequences that [`RecordWriter::receipt`] writes into one record.
pub const MAX_SEQUENCES: usize = 64;

/// The bytes before the body of a message that is alone in its payload: with the body they are what [`RecordWriter`] writes.
#[must_use]
#[inline]
pub fn message_header(channel: ChannelIndex, sequence: u16) -> [u8; MESSAGE_HEADER] {
    let [low, high] = sequence.to_le_bytes();
    [KIND_MESSAGE | channel.get(), low, high]
}

/// Whether messages with bodies of these lengths share a payload of at most `limit` bytes.
#[must_use]
#[inline]
pub fn messages_share_payload(limit: usize, first: usize, second: usize) -> bool {
    LENGTH + 2 * MESSAGE_HEADER + first + second <= limit
}

/// Packs records into one payload. The buffer is reused: nothing is allocated per payload.
///
/// Each call that adds a record returns false if there is no room for it; then nothing has changed.
#[derive(Clone, Debug)]
pub struct RecordWriter {
    /// Room for the payload, and for the length of its last record.
    bytes: Vec<u8>,
    /// Number of bytes that are written.
    len: usize,
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
        Self { bytes: vec![0; limit + LENGTH], len: 0, limit, last: None, is_finished: false }
    }

    /// Starts another payload, of at most `limit` bytes.
    pub fn start(&mut self, limit: usize) {
        if self.bytes.len() < limit + LENGTH {
            self.bytes.resize(limit + LENGTH, 0);
        }
        self.len = 0;
        self.limit = limit;
        self.last = None;
        self.is_finished = false;
    }

    /// Whether no record was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Maximum length of the payload.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Maximum length of the body of a message that still fits, if any does.
    #[must_use]
    pub fn room(&self) -> Option<usize> {
        if self.is_finished { None } else { self.limit.checked_sub(self.len + MESSAGE_HEADER) }
    }

    /// Adds a whole message.
    pub fn message(&mut self, channel: ChannelIndex, sequence: u16, body: &[u8]) -> bool {
        self.record(KIND_MESSAGE | channel.get(), sequence.to_le_bytes(), body)
    }

    /// Adds a part of a message.
    pub fn fragment(&mut self, channel: ChannelIndex, sequence: u16, index: u16, count: u16, body: &[u8]) -> bool {
        let [a, b] = sequence.to_le_bytes();
        let [c, d] = index.to_le_bytes();
        let [e, f] = count.to_le_bytes();
        self.record(KIND_FRAGMENT | channel.get(), [a, b, c, d, e, f], body)
    }

    /// Adds a hello.
    pub fn hello(&mut self, table: &[TableEntry], token: &[u8]) -> bool {
        let mut hello = Vec::new();
        Hello::emit(table, token, &mut Writer::new(&mut hello));
        // A hello is alone in its payload.
        if self.len > 0 || !self.record(KIND_CONTROL | CONTROL_HELLO, [], &hello) {
            return false;
        }
        self.is_finished = true;
        true
    }

    /// Adds a receipt of at most [`MAX_SEQUENCES`] messages. Returns the number of those that fit.
    pub fn receipt(&mut self, channel: ChannelIndex, sequences: impl ExactSizeIterator<Item = u16>) -> usize {
        let room = self.limit.saturating_sub(self.len + 1 + LENGTH + 1) / 2;
        let count = sequences.len().min(room).min(MAX_SEQUENCES);
        let mut bytes = [0; 2 * MAX_SEQUENCES];
        for (to, sequence) in bytes.chunks_exact_mut(2).zip(sequences.take(count)) {
            to.copy_from_slice(&sequence.to_le_bytes());
        }
        let is_added = count > 0 && self.record(KIND_CONTROL | CONTROL_RECEIPT, [channel.get()], &bytes[..2 * count]);
        if is_added { count } else { 0 }
    }

    /// Adds a credit.
    pub fn credit(&mut self, channel: ChannelIndex, sequence: u16) -> bool {
        self.record(KIND_CONTROL | CONTROL_CREDIT, [channel.get()], &sequence.to_le_bytes())
    }

    /// The payload.
    pub fn finish(&mut self) -> &[u8] {
        let last = self.last.take();
        self.is_finished |= last.is_some();
        match last {
            // A single record, which is often a large one, is not moved.
            Some(0) => return self.bytes.get(LENGTH..self.len).unwrap_or_default(),
            Some(last) => {
                self.bytes.copy_within(last + LENGTH..self.len, last);
                self.len -= LENGTH;
            }
            None => {}
        }
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn record<const N: usize>(&mut self, head: u8, fields: [u8; N], body: &[u8]) -> bool {
        let length = N + body.len();
        let room = self.limit.saturating_sub(self.len);
        if self.is_finished || 1 + length > room {
            return false;
        }
        self.close_last();
        let start = self.len;
        let has_room_for_length = 1 + LENGTH + length <= room;
        let at = if has_room_for_length { start + LENGTH } else { start };
        // In range: the record fits into the limit.
        let record = &mut self.bytes[at..][..1 + length];
        record[0] = head;
        record[1..][..N].copy_from_slice(&fields);
        record[1 + N..].copy_from_slice(body);
        self.len = at + 1 + length;
        self.last = has_room_for_length.then_some(start);
        self.is_finished = !has_room_for_length;
        true
    }

    /// Gives the last record its length, because another follows.
    fn close_last(&mut self) {
        let Some(last) = self.last.take() else { return };
        let length = self.len - last - 1 - LENGTH;
        // In range: a record was written there.
        self.bytes[last] = self.bytes[last + LENGTH] | HAS_LENGTH;
        self.bytes[last + 1..=last + LENGTH].copy_from_slice(&(length as u16).to_le_bytes());
    }
}
