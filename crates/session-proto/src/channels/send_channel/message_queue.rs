//! The messages of a channel that wait to be sent.

use crate::channels::message_store::{MessageStore, OutgoingMessage, StoredMessage};
use rallypoint_wire::session::channels::{MESSAGE_HEADER, messages_share_payload};
use std::{collections::VecDeque, time::Instant};

/// Bytes of memory that a message takes in a queue beside its own, and with which it counts there at least, however small it is.
pub(crate) const ENTRY: usize = 64;

/// A message that waits to be sent, or whose last part does.
#[derive(Debug)]
pub(in crate::channels) struct QueuedMessage {
    message: StoredMessage,
    /// Its position in the channel: that of the first transmission, in a droppable channel.
    pub number: u64,
    /// Number of fragments that were sent.
    pub fragments_sent: u16,
    pub expires_at: Option<Instant>,
}

/// The next message, of which a part is about to be sent.
pub(in crate::channels) struct FrontMessage<'a> {
    pub bytes: &'a [u8],
    pub number: &'a mut u64,
    pub fragments_sent: &'a mut u16,
    pub expires_at: Option<Instant>,
}

/// Messages and their bytes, in the order in which they are sent.
#[derive(Debug)]
pub(super) struct MessageQueue {
    messages: VecDeque<QueuedMessage>,
    store: MessageStore,
    /// Bytes of the messages, as they count towards the limit, and that limit.
    bytes: usize,
    max_bytes: usize,
    /// Bytes of memory that they take.
    memory: usize,
}

impl MessageQueue {
    pub fn new(max_bytes: usize) -> Self {
        Self { messages: VecDeque::new(), store: MessageStore::default(), bytes: 0, max_bytes, memory: 0 }
    }

    /// Whether there is room for a message of this length: a single one always fits. `replaces`: it takes the place of the last
    /// message, if no part of that was sent.
    #[inline]
    pub fn has_room(&self, length: usize, replaces: bool) -> bool {
        let last = self.messages.back().filter(|last| replaces && last.fragments_sent == 0);
        let remaining = self.messages.len() - usize::from(last.is_some());
        let bytes = self.bytes - last.map_or(0, |last| last.len().max(ENTRY));
        remaining == 0 || bytes + length.max(ENTRY) <= self.max_bytes
    }

    /// Bytes of memory that the messages take.
    pub fn memory(&self) -> usize {
        self.memory
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    #[inline]
    pub fn push(&mut self, message: OutgoingMessage<'_>, number: u64, expires_at: Option<Instant>) {
        self.bytes += message.as_bytes().len().max(ENTRY);
        let message = self.store.push(message);
        self.memory += ENTRY + message.memory();
        self.messages.push_back(QueuedMessage { message, number, fragments_sent: 0, expires_at });
    }

    #[inline]
    pub fn front(&self) -> Option<&QueuedMessage> {
        self.messages.front()
    }

    #[inline]
    pub fn front_mut(&mut self) -> Option<FrontMessage<'_>> {
        let QueuedMessage { message, number, fragments_sent, expires_at } = self.messages.front_mut()?;
        Some(FrontMessage { bytes: self.store.oldest(message), number, fragments_sent, expires_at: *expires_at })
    }

    /// The position and the bytes of the next message, if no part of it was sent and it shares its payload with no other of this
    /// queue. `limit`: maximum length of a payload.
    #[inline]
    pub fn front_single(&self, limit: usize) -> Option<(u64, &[u8])> {
        let front = self.messages.front().filter(|front| front.fragments_sent == 0)?;
        let length = front.len();
        let shares = |next: &QueuedMessage| messages_share_payload(limit, length, next.len());
        let is_single = length + MESSAGE_HEADER <= limit && !self.messages.get(1).is_some_and(shares);
        is_single.then(|| (front.number, self.store.oldest(&front.message)))
    }

    /// Whether the only message fits into a payload of at most `limit` bytes, and no part of it was sent.
    #[inline]
    pub fn is_single(&self, limit: usize) -> bool {
        let is_whole = |front: &QueuedMessage| front.fragments_sent == 0 && front.len() + MESSAGE_HEADER <= limit;
        self.messages.len() == 1 && self.messages.front().is_some_and(is_whole)
    }

    /// Removes the next message. Returns whether there was one.
    #[inline]
    pub fn pop_front(&mut self) -> bool {
        let Some(removed) = self.messages.pop_front() else { return false };
        self.on_removed(&removed);
        self.store.remove_oldest(&removed.message);
        true
    }

    /// Removes messages from the end of which no part was sent. Returns whether there were any.
    #[inline]
    pub fn remove_unsent_back(&mut self) -> bool {
        let mut is_any = false;
        while let Some(removed) = self.messages.pop_back_if(|queued| queued.fragments_sent == 0) {
            self.on_removed(&removed);
            self.store.remove_newest(&removed.message);
            is_any = true;
        }
        is_any
    }

    /// Lengths of the messages.
    #[cfg(test)]
    pub fn lengths(&self) -> Vec<usize> {
        self.messages.iter().map(QueuedMessage::len).collect()
    }

    #[inline]
    fn on_removed(&mut self, removed: &QueuedMessage) {
        self.bytes -= removed.len().max(ENTRY);
        self.memory -= ENTRY + removed.message.memory();
    }
}

impl QueuedMessage {
    #[inline]
    pub fn len(&self) -> usize {
        self.message.len()
    }
}

const _: () = assert!(size_of::<QueuedMessage>() <= ENTRY);
