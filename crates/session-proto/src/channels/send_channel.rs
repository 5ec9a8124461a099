//! The queue of one channel.

use super::{Channel, ChannelIndex, ChannelMode, rate_limit::RateLimit};
use crate::SendError;
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Number of messages of a reliable channel that may be sent before the peer confirms that the first has arrived: a quarter of
/// the range of a sequence, so that none is ambiguous.
pub(super) const CREDIT_WINDOW: u64 = 16_384;

/// Maximum number of messages that wait in a queue, however small they are.
const MAX_QUEUED: usize = 65_536;

/// Identifies a message of a reliable channel in its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct MessageId {
    /// The channel.
    pub channel: ChannelIndex,
    /// The position in the channel: the first message has 0.
    pub number: u64,
}

/// The bytes of a message to send. Many players can share one payload.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes for one peer.
    Owned(Vec<u8>),
    /// Bytes that several peers are sent.
    Shared(Arc<[u8]>),
}

impl Payload {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A message that waits to be sent, or whose last part does.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub payload: Payload,
    /// Its position in the channel: that of the first transmission, in a channel whose messages may be dropped.
    pub number: u64,
    /// Number of fragments that were sent.
    pub fragments_sent: u16,
    expires_at: Option<Instant>,
}

/// The sending half of a channel.
#[derive(Debug)]
pub(super) struct SendChannel {
    pub index: ChannelIndex,
    pub mode: ChannelMode,
    pub priority: u8,
    pub max_size: usize,
    pub rate: Option<RateLimit>,
    max_age: Duration,
    max_queued: usize,
    queue: VecDeque<QueuedMessage>,
    queued: usize,
    /// The position of the next message: assigned when a reliable message is queued, and when another one is first sent.
    next_number: u64,
    /// Positions before this one may be sent.
    credit_end: u64,
    /// There was no room for a message.
    pub is_blocked: bool,
}

impl SendChannel {
    /// `max_size`: maximum size of a message in the direction of this sender.
    pub fn new(index: ChannelIndex, channel: &Channel, max_size: usize) -> Self {
        Self {
            index,
            mode: channel.mode,
            priority: channel.priority,
            max_size,
            rate: channel.rate.map(RateLimit::new),
            max_age: channel.max_age,
            max_queued: channel.queue,
            queue: VecDeque::new(),
            queued: 0,
            next_number: 0,
            credit_end: CREDIT_WINDOW,
            is_blocked: false,
        }
    }

    /// Queues a message. `spare` receives the buffers of messages that it replaces.
    pub fn push(&mut self, now: Instant, payload: Payload, spare: &mut Vec<Vec<u8>>) -> Result<MessageId, SendError> {
        let length = payload.as_bytes().len();
        if self.max_size == 0 {
            return Err(SendError::NoChannel);
        }
        if length > self.max_size {
            return Err(SendError::TooLarge { limit: self.max_size, length });
        }
        if self.mode == ChannelMode::Sequenced {
            // One that is partly sent is completed, so that large messages are not replaced again and again.
            while self.queue.back().is_some_and(|queued| queued.fragments_sent == 0) {
                self.drop_back(spare);
            }
        }
        if !self.has_room(length) {
            self.is_blocked = true;
            return Err(SendError::WouldBlock);
        }
        let number = self.next_number;
        self.next_number += u64::from(self.mode.is_reliable());
        let expires_at = (self.mode == ChannelMode::Expiring).then(|| now + self.max_age);
        self.queued += length;
        self.queue.push_back(QueuedMessage { payload, number, fragments_sent: 0, expires_at });
        Ok(MessageId { channel: self.index, number })
    }

    /// Whether there is room for a message of this length.
    pub fn has_room(&self, length: usize) -> bool {
        self.queue.is_empty() || (self.queued + length <= self.max_queued && self.queue.len() < MAX_QUEUED)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next message, if its position may be sent.
    pub fn front(&self) -> Option<&QueuedMessage> {
        self.queue.front().filter(|front| !self.mode.is_reliable() || front.number < self.credit_end)
    }

    /// Assigns the position of the next message if it has none, and returns it with its expiry.
    pub fn start_front(&mut self) -> Option<(u64, Option<Instant>)> {
        let front = self.queue.front_mut()?;
        if !self.mode.is_reliable() && front.fragments_sent == 0 {
            front.number = self.next_number;
            self.next_number += 1;
        }
        Some((front.number, front.expires_at))
    }

    /// A fragment of the next message was sent.
    pub fn on_fragment_sent(&mut self) {
        if let Some(front) = self.queue.front_mut() {
            front.fragments_sent += 1;
        }
    }

    /// Removes the next message, which was sent.
    pub fn pop(&mut self, spare: &mut Vec<Vec<u8>>) {
        if let Some(sent) = self.queue.pop_front() {
            self.recycle(sent, spare);
        }
    }

    /// Drops messages that are late.
    pub fn expire(&mut self, now: Instant, spare: &mut Vec<Vec<u8>>) {
        while self.queue.front().is_some_and(|front| front.expires_at.is_some_and(|at| now >= at)) {
            self.pop(spare);
        }
    }

    /// The peer has received everything before this position. Returns false if that was never sent.
    pub fn on_credit(&mut self, sequence: u16) -> bool {
        let confirmed = self.credit_end - CREDIT_WINDOW;
        let number = confirmed + u64::from(sequence.wrapping_sub(confirmed as u16));
        if !self.mode.is_reliable() || number > self.sent_end() {
            return false;
        }
        self.credit_end = number + CREDIT_WINDOW;
        true
    }

    /// The message of a receipt, if it was sent.
    pub fn on_receipt(&self, sequence: u16) -> Option<MessageId> {
        let end = self.sent_end();
        let back = u64::from((end as u16).wrapping_sub(sequence));
        let number = end.checked_sub(if back == 0 { 1 << 16 } else { back })?;
        self.mode.is_reliable().then_some(MessageId { channel: self.index, number })
    }

    /// The position after the last message of which something was sent.
    fn sent_end(&self) -> u64 {
        self.queue.front().map_or(self.next_number, |front| front.number + u64::from(front.fragments_sent > 0))
    }

    fn drop_back(&mut self, spare: &mut Vec<Vec<u8>>) {
        if let Some(dropped) = self.queue.pop_back() {
            self.recycle(dropped, spare);
        }
    }

    fn recycle(&mut self, message: QueuedMessage, spare: &mut Vec<Vec<u8>>) {
        self.queued -= message.payload.as_bytes().len();
        if let Payload::Owned(bytes) = message.payload
            && spare.len() < 64
        {
            spare.push(bytes);
        }
    }
}
