//! The receiving half of one channel: order, newest wins, reassembly.

mod expiring;
mod ordered;
mod sequenced;
mod unordered;

use super::{
    Channel, ChannelFault, ChannelIndex, ChannelMode,
    reassembly::{ENTRY, FragmentMismatch, PartialMessage},
    send_channel::CREDIT_WINDOW,
};
use expiring::ExpiringReceiver;
use ordered::OrderedReceiver;
use sequenced::SequencedReceiver;
use std::collections::VecDeque;
use unordered::UnorderedReceiver;

/// Number of messages after which their arrival is reported to the peer: a quarter of its credit.
const CREDIT_INTERVAL: u64 = CREDIT_WINDOW / 4;

/// Whether a message is delivered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is handed to the application at once. `number`: its position in the channel.
    Now { number: u64 },
    /// It waits for something, or is dropped.
    Later,
}

/// Messages of a channel that were completed, and memory that was taken or freed.
pub(super) struct Output<'a> {
    pub channel: ChannelIndex,
    /// Complete messages with their positions, in the order of delivery.
    pub ready: &'a mut VecDeque<(ChannelIndex, u64, Vec<u8>)>,
    /// Bytes of memory in use.
    pub memory: &'a mut usize,
}

/// The receiving half of a channel.
#[derive(Debug)]
pub(super) struct ReceiveChannel {
    pub index: ChannelIndex,
    pub has_receipts: bool,
    max_size: usize,
    /// Whole messages are shorter than this if [`accept_next`](Self::accept_next) accepts them.
    direct_end: usize,
    receiver: ModeReceiver,
}

/// The part of a channel that depends on its mode. Each has `accept_next`, `handle_message` and `handle_fragment`, as documented
/// at [`ReceiveChannel`], which checks the size.
#[derive(Debug)]
enum ModeReceiver {
    Ordered(OrderedReceiver),
    Unordered(UnorderedReceiver),
    Sequenced(SequencedReceiver),
    Expiring(ExpiringReceiver),
}

/// A fragment record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub sequence: u16,
    pub index: u16,
    pub count: u16,
    pub body: &'a [u8],
    /// Length of the body of every fragment but the last.
    pub size: usize,
}

/// A sequence or a fragment that a correct peer does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutOfRange;

/// When the arrival of messages of a reliable channel is reported to the peer.
#[derive(Debug)]
struct CreditSchedule {
    /// The first missing position at which the next report is due.
    due: u64,
}

impl ReceiveChannel {
    /// `max_size`: maximum size of a message in the direction of this receiver.
    pub fn new(index: ChannelIndex, channel: &Channel, max_size: usize) -> Self {
        let receiver = match channel.mode {
            ChannelMode::ReliableOrdered => ModeReceiver::Ordered(OrderedReceiver::default()),
            ChannelMode::ReliableUnordered => ModeReceiver::Unordered(UnorderedReceiver::default()),
            ChannelMode::Sequenced => ModeReceiver::Sequenced(SequencedReceiver::default()),
            ChannelMode::Expiring => ModeReceiver::Expiring(ExpiringReceiver::default()),
        };
        let direct_end = if channel.receipts || max_size == 0 { 0 } else { max_size.saturating_add(1) };
        Self { index, has_receipts: channel.receipts, max_size, direct_end, receiver }
    }

    pub fn max_size(&self) -> usize {
        self.max_size
    }

    /// Accepts a whole message if it is the next one, nothing waits for it, and no report to the peer is due. That is the case
    /// of almost every message on a good network; all others are for [`handle_message`](Self::handle_message).
    #[inline(always)]
    pub fn accept_next(&mut self, sequence: u16, length: usize) -> bool {
        if length >= self.direct_end {
            return false;
        }
        // The most frequent one with a single comparison, not through the table of a match.
        if let ModeReceiver::Ordered(receiver) = &mut self.receiver {
            return receiver.accept_next(sequence);
        }
        match &mut self.receiver {
            ModeReceiver::Ordered(_) => false,
            ModeReceiver::Unordered(receiver) => receiver.accept_next(sequence),
            ModeReceiver::Sequenced(receiver) => receiver.accept_next(sequence),
            ModeReceiver::Expiring(receiver) => receiver.accept_next(sequence),
        }
    }

    /// Handles a whole message.
    pub fn handle_message(
        &mut self,
        sequence: u16,
        body: &[u8],
        out: &mut Output<'_>,
    ) -> Result<Delivery, ChannelFault> {
        self.check_size(body.len())?;
        let handled = match &mut self.receiver {
            ModeReceiver::Ordered(receiver) => receiver.handle_message(sequence, body, out),
            ModeReceiver::Unordered(receiver) => receiver.handle_message(sequence, out),
            ModeReceiver::Sequenced(receiver) => Ok(receiver.handle_message(sequence, out)),
            ModeReceiver::Expiring(receiver) => Ok(receiver.handle_message(sequence, out)),
        };
        handled.map_err(|OutOfRange| ChannelFault::OutOfRange(self.index.get()))
    }

    /// Handles a part of a message.
    pub fn handle_fragment(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) -> Result<(), ChannelFault> {
        self.check_size(fragment.min_message())?;
        let handled = match &mut self.receiver {
            ModeReceiver::Ordered(receiver) => receiver.handle_fragment(fragment, out),
            ModeReceiver::Unordered(receiver) => receiver.handle_fragment(fragment, out),
            ModeReceiver::Sequenced(receiver) => receiver.handle_fragment(fragment, out),
            ModeReceiver::Expiring(receiver) => receiver.handle_fragment(fragment, out),
        };
        handled.map_err(|OutOfRange| ChannelFault::OutOfRange(self.index.get()))
    }

    /// The first position that has not arrived, if it has to be reported to the peer.
    pub fn take_credit(&mut self) -> Option<u16> {
        match &mut self.receiver {
            ModeReceiver::Ordered(receiver) => receiver.take_credit(),
            ModeReceiver::Unordered(receiver) => receiver.take_credit(),
            ModeReceiver::Sequenced(_) | ModeReceiver::Expiring(_) => None,
        }
    }

    fn check_size(&self, length: usize) -> Result<(), ChannelFault> {
        match self.max_size {
            0 => Err(ChannelFault::Channel(self.index.get())),
            max if length > max => Err(ChannelFault::TooLarge(self.index.get())),
            _ => Ok(()),
        }
    }
}

impl Fragment<'_> {
    /// Minimum length of the message: its length is known when its last fragment is.
    fn min_message(&self) -> usize {
        let is_last = self.index + 1 == self.count;
        usize::from(self.count - 1) * self.size + if is_last { self.body.len() } else { 1 }
    }
}

impl Output<'_> {
    /// A message without any of its `count` fragments.
    fn new_partial(&mut self, count: u16) -> PartialMessage {
        let partial = PartialMessage::new(count);
        *self.memory += partial.memory();
        partial
    }

    /// Adds a fragment to a message. Returns whether that is complete.
    fn insert(&mut self, partial: &mut PartialMessage, fragment: Fragment<'_>) -> Result<bool, OutOfRange> {
        *self.memory -= partial.memory();
        let inserted = partial.insert(fragment.index, fragment.count, fragment.body, fragment.size);
        *self.memory += partial.memory();
        inserted.map(|()| partial.is_complete()).map_err(|FragmentMismatch| OutOfRange)
    }

    /// Delivers a message that was put together.
    fn complete(&mut self, number: u64, message: PartialMessage) {
        *self.memory -= message.memory();
        let bytes = message.into_bytes();
        *self.memory += memory_of(&bytes);
        self.ready.push_back((self.channel, number, bytes));
    }
}

impl Default for CreditSchedule {
    fn default() -> Self {
        Self { due: CREDIT_INTERVAL }
    }
}

impl CreditSchedule {
    /// Whether a report is due when `next` is the first position that has not arrived.
    #[inline(always)]
    fn is_due(&self, next: u64) -> bool {
        next >= self.due
    }

    /// The report, if it is due.
    fn take(&mut self, next: u64) -> Option<u16> {
        if !self.is_due(next) {
            return None;
        }
        self.due = next + CREDIT_INTERVAL;
        Some(next as u16)
    }
}

/// The position of a sequence from `next` on, if the peer may have sent it.
fn position(next: u64, sequence: u16) -> Result<u64, OutOfRange> {
    let ahead = u64::from(sequence.wrapping_sub(next as u16));
    if ahead < CREDIT_WINDOW { Ok(next + ahead) } else { Err(OutOfRange) }
}

/// Memory that a complete message takes until it is handed to the application.
pub(super) fn memory_of(bytes: &Vec<u8>) -> usize {
    ENTRY + bytes.capacity()
}
