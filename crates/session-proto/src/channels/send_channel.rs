//! The sending half of one channel.

mod direct_path;
mod message_queue;
mod overload_detector;
mod pending_receipts;

use super::{Channel, ChannelIndex, ChannelMode, message_store::OutgoingMessage, rate_limit::RateLimit};
use crate::SendError;
use direct_path::DirectPath;
use message_queue::MessageQueue;
use overload_detector::OverloadDetector;
use pending_receipts::PendingReceipts;
use rallypoint_wire::session::MessageNumber;
use std::time::Instant;

pub(crate) use message_queue::ENTRY;
pub(super) use message_queue::{FrontMessage, QueuedMessage};

/// Number of messages of a reliable channel that may be sent before the peer confirms that the first has arrived: a quarter of
/// the range of a sequence, so that none is ambiguous.
pub(super) const CREDIT_WINDOW: u64 = 16_384;

/// Identifies a message of a reliable channel in its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct MessageId {
    /// The channel.
    pub channel: ChannelIndex,
    /// The position in the channel: the first message has 0.
    pub number: u64,
}

impl MessageId {
    /// The ID of a message in a session without channels, which has no receipts.
    pub(crate) fn without_receipt(channel: ChannelIndex) -> Self {
        Self { channel, number: 0 }
    }
}

/// The sending half of a channel.
#[derive(Debug)]
pub(super) struct SendChannel {
    pub index: ChannelIndex,
    pub mode: ChannelMode,
    pub priority: u8,
    pub max_size: usize,
    pub rate: Option<RateLimit>,
    direct: DirectPath,
    /// In a sequenced channel: the last payload, if it contains only its newest message.
    pub newest_payload: Option<MessageNumber>,
    /// [`Channel::max_age`] in microseconds in an expiring channel, and zero in others.
    pub max_age_us: u32,
    queue: MessageQueue,
    /// The position of the next message: assigned when a reliable message is queued, and when another one is first sent.
    next_number: u64,
    /// Positions before this one may be sent: all, if the channel is not reliable.
    credit_end: u64,
    /// In a channel with receipts.
    receipts: Option<PendingReceipts>,
    /// There was no room for a message.
    pub is_blocked: bool,
    overload: OverloadDetector,
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
            direct: DirectPath::new(if is_direct { max_size } else { 0 }),
            newest_payload: None,
            // At most a minute.
            max_age_us: if channel.mode == ChannelMode::Expiring { channel.max_age.as_micros() as u32 } else { 0 },
            queue: MessageQueue::new(channel.queue),
            next_number: 0,
            credit_end: if channel.mode.is_reliable() { CREDIT_WINDOW } else { u64::MAX },
            receipts: channel.receipts.then(PendingReceipts::default),
            is_blocked: false,
            overload: OverloadDetector::new(channel.max_age),
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
        // Before anything is replaced: if this message is refused, the last one remains the newest.
        if !self.has_room(length) {
            self.is_blocked = true;
            return Err(SendError::WouldBlock);
        }
        if self.mode == ChannelMode::Sequenced {
            // One that is partly sent is completed, so that large messages are not replaced again and again.
            let is_replaced = self.queue.remove_unsent_back();
            self.direct.on_queued(is_replaced, self.max_size);
        }
        let number = self.next_number;
        self.next_number += u64::from(self.mode.is_reliable());
        let expires_at = (self.mode == ChannelMode::Expiring).then(|| self.overload.expires_at(now));
        self.queue.push(message, number, expires_at);
        Ok(MessageId { channel: self.index, number })
    }

    /// The position of a message that is sent without waiting in the queue, which is empty, if it may be sent now.
    /// [`on_sent_directly`](Self::on_sent_directly) follows if it is.
    #[inline]
    pub fn next_direct(&self, length: usize) -> Option<u64> {
        (self.direct.admits(length) && self.next_number < self.credit_end).then_some(self.next_number)
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
        self.direct.on_replaced();
    }

    /// Whether there is room for a message of this length, which may take the place of the last one.
    pub fn has_room(&self, length: usize) -> bool {
        self.queue.has_room(length, self.mode == ChannelMode::Sequenced)
    }

    /// Bytes of memory that the messages that wait take.
    pub fn memory(&self) -> usize {
        self.queue.memory()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next message, if its position may be sent.
    pub fn front(&self) -> Option<&QueuedMessage> {
        let is_confirmed = self.receipts.as_ref().is_none_or(PendingReceipts::has_room);
        let front = self.queue.front().filter(|_| is_confirmed)?;
        (front.number < self.credit_end).then_some(front)
    }

    /// The position and the bytes of the next message, if it may be sent and shares its payload with no other of this reliable
    /// channel. `limit`: maximum length of a payload.
    pub fn front_single(&self, limit: usize) -> Option<(u64, &[u8])> {
        self.front()?;
        self.queue.front_single(limit)
    }

    /// Whether the only message that waits fits into a payload of at most `limit` bytes, and no part of it was sent.
    pub fn is_single(&self, limit: usize) -> bool {
        self.queue.is_single(limit)
    }

    /// Assigns the position of the next message if it has none, and returns that message.
    pub fn start_front(&mut self) -> Option<FrontMessage<'_>> {
        let front = self.queue.front_mut()?;
        if !self.mode.is_reliable() && *front.fragments_sent == 0 {
            *front.number = self.next_number;
            self.next_number += 1;
        }
        Some(front)
    }

    /// Removes the next message, which was sent.
    #[inline]
    pub fn pop(&mut self) {
        if self.queue.pop_front()
            && let Some(receipts) = &mut self.receipts
        {
            receipts.on_sent();
        }
        if self.queue.is_empty() {
            self.overload.on_empty();
        }
    }

    /// Drops messages that are late, and those that have waited too long in an overload.
    pub fn expire(&mut self, now: Instant) {
        let is_overloaded = self.overload.on_waiting(now);
        while let Some(front) = self.queue.front()
            && let Some(expires_at) = front.expires_at
        {
            let is_late = now >= expires_at;
            // A message that is sent in part is completed, if it is not late.
            let is_spare = is_overloaded && front.fragments_sent == 0 && self.overload.is_overdue(now, expires_at);
            if !is_late && !is_spare {
                return;
            }
            if is_spare {
                self.overload.on_dropped(now);
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
        let number = self.receipts.as_mut()?.on_receipt(sequence)?;
        Some(MessageId { channel: self.index, number })
    }

    /// The position after the last message that was sent completely.
    fn sent_end(&self) -> u64 {
        self.queue.front().map_or(self.next_number, |front| front.number)
    }
}

#[cfg(test)]
mod tests {
    use super::{pending_receipts::RECEIPT_WINDOW, *};

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
    fn w117_a_message_that_is_sent_in_part_has_no_receipt_and_no_credit() {
        let mut channel = sent(1);
        channel.push(Instant::now(), OutgoingMessage::Borrowed(&[1; 5_000])).unwrap();
        *channel.start_front().unwrap().fragments_sent += 1;
        assert_eq!(channel.on_receipt(1), None);
        assert!(channel.on_credit(1) && !channel.on_credit(2));
    }

    #[test]
    fn w111_a_message_that_is_refused_does_not_replace_the_newest() {
        let settings = Channel { queue: 8_000, ..Channel::new(ChannelMode::Sequenced, 6_000) };
        let mut channel = SendChannel::new(ChannelIndex::default(), &settings, 6_000);
        let push = |channel: &mut SendChannel, length| {
            channel.push(Instant::now(), OutgoingMessage::Borrowed(&vec![1; length])).map(|_| ())
        };
        push(&mut channel, 5_000).unwrap();
        *channel.start_front().unwrap().fragments_sent += 1;
        push(&mut channel, 200).unwrap();
        assert!(!channel.has_room(3_001));
        assert_eq!(push(&mut channel, 3_001), Err(SendError::WouldBlock), "beside the one that is partly sent");
        assert_eq!(channel.queue.lengths().last(), Some(&200));
        // Together with the one that it replaces, it would not fit.
        assert!(channel.has_room(3_000));
        push(&mut channel, 3_000).unwrap();
        assert_eq!(channel.queue.lengths().iter().sum::<usize>(), 8_000);
        assert_eq!(channel.queue.lengths().len(), 2);
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
