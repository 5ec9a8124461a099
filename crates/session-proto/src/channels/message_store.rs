//! The bytes of messages that wait in a queue, back to back in chunks: nothing is allocated per message.

use std::{collections::VecDeque, sync::Arc};

/// Size of a chunk in bytes. One that messages wait in may be used only in part, so it is not larger.
const CHUNK: usize = 16_384;

/// Maximum length of a message that is stored in a chunk: at most an eighth of a chunk stays unused.
const MAX_CHUNKED: usize = CHUNK / 8;

/// Capacity that is kept while no message waits.
const KEPT: usize = 4_096;

/// A message to send. Many players can share its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutgoingMessage<'a> {
    /// Bytes for one peer, which are copied if they have to wait.
    Borrowed(&'a [u8]),
    /// Bytes that several peers are sent.
    Shared(&'a Arc<[u8]>),
}

/// A message that waits, without its place in the queue.
#[derive(Debug)]
pub(super) enum StoredMessage {
    /// In a chunk: the first one if the message is the oldest, the last one if it is the newest.
    Chunked {
        offset: u16,
        len: u16,
    },
    Owned(Box<[u8]>),
    Shared {
        bytes: Arc<[u8]>,
        /// The part of them that counts as memory of this queue.
        counted: u32,
    },
}

/// The bytes of messages that are removed oldest or newest first.
#[derive(Debug, Default)]
pub(super) struct MessageStore {
    chunks: VecDeque<Chunk>,
    /// A chunk that was used up, for the next ones.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    /// Number of messages in it.
    messages: usize,
}

impl OutgoingMessage<'_> {
    /// Bytes of memory that the message takes in a queue. Those that several queues share are counted in full in the first, as
    /// a half in the second, and so on: the sum exceeds what is in use by little, however many there are.
    #[inline]
    pub fn memory(&self) -> usize {
        match self {
            Self::Borrowed(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len() / Arc::strong_count(bytes),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl StoredMessage {
    pub fn len(&self) -> usize {
        match self {
            Self::Chunked { len, .. } => usize::from(*len),
            Self::Owned(bytes) => bytes.len(),
            Self::Shared { bytes, .. } => bytes.len(),
        }
    }

    /// Bytes of memory that the message takes; see [`OutgoingMessage::memory`].
    pub fn memory(&self) -> usize {
        match self {
            Self::Shared { counted, .. } => *counted as usize,
            _ => self.len(),
        }
    }
}

impl MessageStore {
    /// Stores a message as the newest.
    #[inline]
    pub fn push(&mut self, message: OutgoingMessage<'_>) -> StoredMessage {
        match message {
            OutgoingMessage::Shared(bytes) => {
                // A message has at most 16 MB.
                StoredMessage::Shared { counted: message.memory() as u32, bytes: bytes.clone() }
            }
            OutgoingMessage::Borrowed(bytes) if bytes.len() > MAX_CHUNKED => StoredMessage::Owned(bytes.into()),
            OutgoingMessage::Borrowed(bytes) => self.push_chunked(bytes),
        }
    }

    fn push_chunked(&mut self, message: &[u8]) -> StoredMessage {
        let has_room = |chunk: &&mut Chunk| chunk.bytes.len() + message.len() <= CHUNK;
        let chunk = match self.chunks.back_mut().filter(has_room) {
            Some(chunk) => chunk,
            None => {
                let mut bytes = std::mem::take(&mut self.spare);
                // The first one grows: most queues are short.
                bytes.reserve(if self.chunks.is_empty() { message.len() } else { CHUNK });
                self.chunks.push_back_mut(Chunk { bytes, messages: 0 })
            }
        };
        let offset = chunk.bytes.len();
        chunk.bytes.extend_from_slice(message);
        chunk.messages += 1;
        // Both are at most the size of a chunk.
        StoredMessage::Chunked { offset: offset as u16, len: message.len() as u16 }
    }

    /// The bytes of the oldest message.
    #[inline]
    pub fn oldest<'a>(&'a self, message: &'a StoredMessage) -> &'a [u8] {
        match message {
            StoredMessage::Chunked { offset, len } => {
                let range = usize::from(*offset)..usize::from(*offset) + usize::from(*len);
                self.chunks.front().and_then(|chunk| chunk.bytes.get(range)).unwrap_or_default()
            }
            StoredMessage::Owned(bytes) => bytes,
            StoredMessage::Shared { bytes, .. } => bytes,
        }
    }

    /// The oldest message is removed.
    #[inline]
    pub fn remove_oldest(&mut self, message: &StoredMessage) {
        if matches!(message, StoredMessage::Chunked { .. })
            && let Some(chunk) = self.chunks.front_mut()
        {
            chunk.messages -= 1;
            if chunk.messages == 0 {
                let emptied = self.chunks.pop_front();
                self.recycle(emptied);
            }
        }
    }

    /// The newest message is removed.
    pub fn remove_newest(&mut self, message: &StoredMessage) {
        if let StoredMessage::Chunked { offset, .. } = message
            && let Some(chunk) = self.chunks.back_mut()
        {
            chunk.bytes.truncate((*offset).into());
            chunk.messages -= 1;
            if chunk.messages == 0 {
                let emptied = self.chunks.pop_back();
                self.recycle(emptied);
            }
        }
    }

    fn recycle(&mut self, emptied: Option<Chunk>) {
        let Some(mut chunk) = emptied else { return };
        chunk.bytes.clear();
        if chunk.bytes.capacity() > self.spare.capacity() {
            self.spare = chunk.bytes;
        }
        if self.chunks.is_empty() && self.spare.capacity() > KEPT {
            self.spare = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the store with a queue of vectors.
        #[test]
        fn stored_messages_are_returned_unchanged(
            steps in prop::collection::vec((0..8u8, prop_oneof![0..700usize, 0..3_000usize]), 1..300),
        ) {
            let mut store = MessageStore::default();
            let mut model = VecDeque::<(Vec<u8>, StoredMessage)>::new();
            for (round, (step, len)) in steps.into_iter().enumerate() {
                let removed = match step {
                    0 | 1 => model.pop_front().inspect(|(_, stored)| store.remove_oldest(stored)),
                    2 => model.pop_back().inspect(|(_, stored)| store.remove_newest(stored)),
                    _ => {
                        let bytes = vec![round as u8; len];
                        let shared = Arc::from(&*bytes);
                        let message = if step == 3 {
                            OutgoingMessage::Shared(&shared)
                        } else {
                            OutgoingMessage::Borrowed(&bytes)
                        };
                        let stored = store.push(message);
                        prop_assert_eq!(stored.len(), len);
                        model.push_back((bytes, stored));
                        None
                    }
                };
                drop(removed);
                if let Some((bytes, stored)) = model.front() {
                    prop_assert_eq!(store.oldest(stored), &bytes[..]);
                }
            }
            let mut left = 0;
            while let Some((bytes, stored)) = model.pop_front() {
                prop_assert_eq!(store.oldest(&stored), &bytes[..]);
                store.remove_oldest(&stored);
                left += 1;
            }
            prop_assert!(store.chunks.is_empty() && (left == 0 || store.spare.capacity() <= KEPT));
        }
    }

    #[test]
    fn the_memory_of_a_burst_is_freed() {
        let mut store = MessageStore::default();
        let stored: Vec<StoredMessage> = (0..1_000).map(|_| store.push(OutgoingMessage::Borrowed(&[1; 400]))).collect();
        assert!(store.chunks.len() <= 1 + 400_000 / (CHUNK - MAX_CHUNKED));
        stored.iter().for_each(|message| store.remove_oldest(message));
        assert_eq!((store.chunks.len(), store.spare.capacity()), (0, 0));
    }
}
