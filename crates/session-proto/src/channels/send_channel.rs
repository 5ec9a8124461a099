//! The queue of one channel.

use super::{
    Channel, ChannelIndex, ChannelMode,
    message_store::{MessageStore, OutgoingMessage, StoredMessage},
    rate_limit::RateLimit,
};
use crate::SendError;
use rallypoint_wire::session::{
    MessageNumber,
    channels::{MESSAGE_HEADER, messages_share_payload},
};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Number of messages of a reliable channel that may be sent before the peer confirms that the first has arrived: a quarter of
/// the range of a sequence, so that none is ambiguous.
pub(super) const CREDIT_WINDOW: u64 = 16_384;

/// Number of messages of a channel with receipts that may be sent before the peer's application has read the first: half of the
/// range of a sequence.
const RECEIPT_WINDOW: usize = 1 << 15;

/// Time after the last sign of overload of an expiring channel for which it is assumed, as a multiple of [`Channel::max_age`].
const OVERLOAD_MEMORY: u32 = 4;

/// Number of messages of a sequenced channel that wait in the queue, where the next one can replace them, after the last one that
/// was replaced.
const QUEUED_AFTER_REPLACED: u8 = 64;

/// Bytes of memory that a message takes in a queue beside its own, and with which it counts there at least, however small it is.
pub(super) const ENTRY: usize = 64;

/// Identifies a message of a reliable channel in its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct MessageId {
    /// The channel.
    pub channel: ChannelIndex,
    /// The position in the channel: the first message has 0.
    pub number: u64,
}

/// A message that waits to be sent, or whose last part does.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    message: StoredMessage,
    /// Its position in the channel: that of the first transmission, in a droppable channel.
    pub number: u64,
    /// Number of fragments that were sent.
    pub fragments_sent: u16,
    pub expires_at: Option<Instant>,
}

/// The next message, of which a part is about to be sent.
pub(super) struct StartedMessage<'a> {
    pub bytes: &'a [u8],
    pub number: u64,
    pub fragments_sent: &'a mut u16,
    pub expires_at: Option<Instant>,
}

/// The sending half of a channel.
#[derive(Debug)]
pub(super) struct SendChannel {
    pub index: ChannelIndex,
    pub mode: ChannelMode,
    pub priority: u8,
    pub max_size: usize,
    pub rate: Option<RateLimit>,
    /// Messages that do not wait in the queue are shorter than this; zero if all wait, because of a rate or receipts, or of
    /// `queued_next`.
    direct_end: usize,
    /// In a sequenced channel: number of messages to come, none of which is replaced, that wait in the queue.
    queued_next: u8,
    /// In a sequenced channel: the last payload, if it contains only its newest message.
    pub newest_payload: Option<MessageNumber>,
    max_age: Duration,
    /// The same in microseconds in an expiring channel, and zero in others.
    pub max_age_us: u32,
    max_queued: usize,
    queue: VecDeque<QueuedMessage>,
    store: MessageStore,
    /// Bytes of the messages that wait, as they count towards the limit of the queue.
    queued: usize,
    /// Bytes of memory that they take.
    memory: usize,
    /// The position of the next message: assigned when a reliable message is queued, and when another one is first sent.
    next_number: u64,
    /// Positions before this one may be sent: all, if the channel is not reliable.
    credit_end: u64,
    /// In a channel with receipts: whether a receipt is missing, for the messages from `receipt_base` on.
    unconfirmed: Option<VecDeque<bool>>,
    receipt_base: u64,
    /// There was no room for a message.
    pub is_blocked: bool,
    /// In an expiring channel: since when a message has always been waiting.
    standing_since: Option<Instant>,
    /// The last sign that more is sent on it than the path carries.
    overloaded_at: Option<Instant>,
}

impl SendChannel {
    /// `max_size`: maximum size of a message in the direction of this sender.
    pub fn new(index: ChannelIndex, channel: &Channel, max_size: usize) -> Self {
        let is_direct = channel.rate.is_none() && !channel.receipts;
        Self {
            index,
            mode: channel.mode,
            priority: channel.priority,
            max_size,
            rate: channel.rate.map(RateLimit::new),
            direct_end: if is_direct && max_size > 0 { max_size.saturating_add(1) } else { 0 },
            queued_next: 0,
            newest_payload: None,
            max_age: channel.max_age,
            // At most a minute.
            max_age_us: if channel.mode == ChannelMode::Expiring { channel.max_age.as_micros() as u32 } else { 0 },
            max_queued: channel.queue,
            queue: VecDeque::new(),
            store: MessageStore::default(),
            queued: 0,
            memory: 0,
            next_number: 0,
            credit_end: if channel.mode.is_reliable() { CREDIT_WINDOW } else { u64::MAX },
            unconfirmed: channel.receipts.then(VecDeque::new),
            receipt_base: 0,
            is_blocked: false,
            standing_since: None,
            overloaded_at: None,
        }
    }

    /// Queues a message.
    #[inline]
    pub fn push(&mut self, now: Instant, message: OutgoingMessage<'_>) -> Result<MessageId, SendError> {
        let length = message.as_bytes().len();
        if self.max_size == 0 {
            return Err(SendError::NoChannel);
        }
        if length > self.max_size {
            return Err(SendError::TooLarge { limit: self.max_size, length });
        }
        if self.mode == ChannelMode::Sequenced {
            // One that is partly sent is completed, so that large messages are not replaced again and again.
            let mut is_replaced = false;
            while self.queue.back().is_some_and(|queued| queued.fragments_sent == 0) {
                self.drop_back();
                is_replaced = true;
            }
            self.count_queued(is_replaced);
        }
        if !self.has_room(length) {
            self.is_blocked = true;
            return Err(SendError::WouldBlock);
        }
        let number = self.next_number;
        self.next_number += u64::from(self.mode.is_reliable());
        let expires_at = self.expires_at(now);
        self.queued += length.max(ENTRY);
        let message = self.store.push(message);
        self.memory += ENTRY + message.memory();
        self.queue.push_back(QueuedMessage { message, number, fragments_sent: 0, expires_at });
        Ok(MessageId { channel: self.index, number })
    }

    /// The position of a message that is sent without waiting in the queue, which is empty, if it may be sent now.
    /// [`on_sent_directly`](Self::on_sent_directly) follows if it is.
    #[inline]
    pub fn next_direct(&self, length: usize) -> Option<u64> {
        (length < self.direct_end && self.next_number < self.credit_end).then_some(self.next_number)
    }

    /// A message was sent without waiting in the queue.
    #[inline]
    pub fn on_sent_directly(&mut self) -> MessageId {
        let number = self.next_number;
        self.next_number += 1;
        MessageId { channel: self.index, number }
    }

    /// A message of a sequenced channel that was handed over without a queue is replaced before it was sent, as happens to an
    /// application that sends several in one frame: the next ones wait in the queue, where that costs nothing.
    pub fn on_direct_replaced(&mut self) {
        self.direct_end = 0;
        self.queued_next = QUEUED_AFTER_REPLACED;
    }

    /// A message is queued. `is_replaced`: the last one is replaced by it.
    fn count_queued(&mut self, is_replaced: bool) {
        if self.queued_next > 0 {
            self.queued_next = if is_replaced { QUEUED_AFTER_REPLACED } else { self.queued_next - 1 };
            if self.queued_next == 0 {
                self.direct_end = self.max_size.saturating_add(1);
            }
        }
    }

    /// When a message expires that is sent now.
    fn expires_at(&self, now: Instant) -> Option<Instant> {
        (self.mode == ChannelMode::Expiring).then(|| now + self.max_age)
    }

    /// Whether there is room for a message of this length.
    pub fn has_room(&self, length: usize) -> bool {
        self.queue.is_empty() || self.queued + length.max(ENTRY) <= self.max_queued
    }

    /// Bytes of memory that the messages that wait take.
    pub fn memory(&self) -> usize {
        self.memory
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next message, if its position may be sent.
    pub fn front(&self) -> Option<&QueuedMessage> {
        let is_confirmed = self.unconfirmed.as_ref().is_none_or(|waiting| waiting.len() < RECEIPT_WINDOW);
        let front = self.queue.front().filter(|_| is_confirmed)?;
        (front.number < self.credit_end).then_some(front)
    }

    /// The position and the bytes of the next message, if it may be sent and shares its payload with no other of this reliable
    /// channel. `limit`: maximum length of a payload.
    pub fn front_single(&self, limit: usize) -> Option<(u64, &[u8])> {
        let front = self.front().filter(|front| front.fragments_sent == 0)?;
        let length = front.len();
        let shares = |next: &QueuedMessage| messages_share_payload(limit, length, next.len());
        let is_single = length + MESSAGE_HEADER <= limit && !self.queue.get(1).is_some_and(shares);
        is_single.then(|| (front.number, self.store.oldest(&front.message)))
    }

    /// Whether the only message that waits fits into a payload of at most `limit` bytes, and no part of it was sent.
    pub fn is_single(&self, limit: usize) -> bool {
        let is_whole = |front: &QueuedMessage| front.fragments_sent == 0 && front.len() + MESSAGE_HEADER <= limit;
        self.queue.len() == 1 && self.queue.front().is_some_and(is_whole)
    }

    /// Assigns the position of the next message if it has none, and returns that message.
    pub fn start_front(&mut self) -> Option<StartedMessage<'_>> {
        let QueuedMessage { message, number, fragments_sent, expires_at } = self.queue.front_mut()?;
        if !self.mode.is_reliable() && *fragments_sent == 0 {
            *number = self.next_number;
            self.next_number += 1;
        }
        let bytes = self.store.oldest(message);
        Some(StartedMessage { bytes, number: *number, fragments_sent, expires_at: *expires_at })
    }

    /// Removes the next message, which was sent.
    #[inline]
    pub fn pop(&mut self) {
        if let Some(sent) = self.queue.pop_front() {
            if let Some(unconfirmed) = &mut self.unconfirmed {
                unconfirmed.push_back(true);
            }
            self.on_removed(&sent);
            self.store.remove_oldest(&sent.message);
        }
        if self.queue.is_empty() {
            self.standing_since = None;
        }
    }

    /// Drops messages that are late. A queue that was never empty for a whole [`Channel::max_age`] is no burst: more is sent than
    /// the path carries, and something has to be dropped. Then it is what has waited for an eighth of that time, since otherwise
    /// every message would arrive just before it is late.
    pub fn expire(&mut self, now: Instant) {
        let max_age = self.max_age;
        let standing_since = *self.standing_since.get_or_insert(now);
        if now.saturating_duration_since(standing_since) >= max_age {
            self.overloaded_at = Some(now);
        }
        let is_overloaded =
            self.overloaded_at.is_some_and(|at| now.saturating_duration_since(at) < OVERLOAD_MEMORY * max_age);
        while let Some(front) = self.queue.front()
            && let Some(expires_at) = front.expires_at
        {
            let is_late = now >= expires_at;
            // A message that is sent in part is completed, if it is not late.
            let is_spare = is_overloaded && front.fragments_sent == 0 && now + (max_age - max_age / 8) >= expires_at;
            if !is_late && !is_spare {
                return;
            }
            if is_spare {
                self.overloaded_at = Some(now);
            }
            self.pop();
        }
    }

    /// The peer has received everything before this position. Returns false if that was never sent.
    pub fn on_credit(&mut self, sequence: u16) -> bool {
        if !self.mode.is_reliable() {
            return false;
        }
        let confirmed = self.credit_end - CREDIT_WINDOW;
        let ahead = sequence.wrapping_sub(confirmed as u16);
        if ahead >= 1 << 15 {
            // A later one has overtaken it.
            return confirmed >= u64::from(ahead.wrapping_neg());
        }
        let number = confirmed + u64::from(ahead);
        if number > self.sent_end() {
            return false;
        }
        self.credit_end = number + CREDIT_WINDOW;
        true
    }

    /// The message of a receipt, if it was sent and has had none.
    pub fn on_receipt(&mut self, sequence: u16) -> Option<MessageId> {
        let unconfirmed = self.unconfirmed.as_mut()?;
        let offset = sequence.wrapping_sub(self.receipt_base as u16);
        let number = self.receipt_base + u64::from(offset);
        let is_missing = unconfirmed.get_mut(usize::from(offset))?;
        if !std::mem::take(is_missing) {
            return None;
        }
        while unconfirmed.front() == Some(&false) {
            unconfirmed.pop_front();
            self.receipt_base += 1;
        }
        Some(MessageId { channel: self.index, number })
    }

    /// The position after the last message that was sent completely.
    fn sent_end(&self) -> u64 {
        self.queue.front().map_or(self.next_number, |front| front.number)
    }

    fn drop_back(&mut self) {
        if let Some(dropped) = self.queue.pop_back() {
            self.on_removed(&dropped);
            self.store.remove_newest(&dropped.message);
        }
    }

    #[inline]
    fn on_removed(&mut self, removed: &QueuedMessage) {
        self.queued -= removed.len().max(ENTRY);
        self.memory -= ENTRY + removed.message.memory();
    }
}

impl QueuedMessage {
    pub fn len(&self) -> usize {
        self.message.len()
    }
}

const _: () = assert!(size_of::<QueuedMessage>() <= ENTRY);

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel with receipts that has sent `count` messages.
    fn sent(count: usize) -> SendChannel {
        let settings = Channel { receipts: true, ..Channel::new(ChannelMode::ReliableOrdered, 10_000) };
        let mut channel = SendChannel::new(ChannelIndex::default(), &settings, 10_000);
        for _ in 0..count {
            channel.push(Instant::now(), OutgoingMessage::Borrowed(&[1])).unwrap();
            channel.pop();
        }
        channel
    }

    #[test]
    fn w117_a_credit_that_was_overtaken_is_not_a_lie() {
        let mut channel = sent(9_000);
        assert!(channel.on_credit(8_192));
        assert!(channel.on_credit(4_096), "resent after a loss, it arrives late");
        assert_eq!(channel.credit_end, 8_192 + CREDIT_WINDOW);
        assert!(channel.on_credit(8_192));
        assert!(!channel.on_credit(9_001), "never sent");
        assert!(!sent(9_000).on_credit(u16::MAX), "before the first");
    }

    #[test]
    fn w117_a_message_has_one_receipt() {
        let mut channel = sent(3);
        let id = |number| Some(MessageId { channel: ChannelIndex::default(), number });
        assert_eq!(channel.on_receipt(1), id(1));
        assert_eq!(channel.on_receipt(1), None, "twice");
        assert_eq!(channel.on_receipt(0), id(0));
        assert_eq!((channel.on_receipt(0), channel.on_receipt(1), channel.on_receipt(3)), (None, None, None));
        assert_eq!(channel.on_receipt(2), id(2));
        assert_eq!(channel.unconfirmed.as_ref().map(VecDeque::len), Some(0));
    }

    #[test]
    fn w117_a_message_that_is_sent_in_part_has_no_receipt_and_no_credit() {
        let mut channel = sent(1);
        channel.push(Instant::now(), OutgoingMessage::Borrowed(&[1; 5_000])).unwrap();
        *channel.start_front().unwrap().fragments_sent += 1;
        assert_eq!(channel.on_receipt(1), None);
        assert!(channel.on_credit(1) && !channel.on_credit(2));
    }

    #[test]
    fn w117_without_receipts_no_more_is_sent_than_can_be_told_apart() {
        let mut channel = sent(RECEIPT_WINDOW);
        channel.credit_end = u64::MAX;
        channel.push(Instant::now(), OutgoingMessage::Borrowed(&[1])).unwrap();
        assert!(channel.front().is_none());
        assert!(channel.on_receipt(0).is_some());
        assert!(channel.front().is_some());
    }
}
