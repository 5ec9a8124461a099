//! The receiving half of one channel: order, newest wins, reassembly.

use super::{
    Channel, ChannelFault, ChannelIndex, ChannelMode,
    reassembly::{ENTRY, PartialMessage},
    send_channel::CREDIT_WINDOW,
};
use std::collections::{BTreeMap, VecDeque};

/// Number of messages after which their arrival is reported to the peer: a quarter of its credit.
const CREDIT_INTERVAL: u64 = CREDIT_WINDOW / 4;

/// Maximum number of unfinished messages of an expiring channel: the oldest are given up, because they may have expired.
const MAX_EXPIRING: usize = 64;

/// Number of later messages after which an unfinished message of an expiring channel is given up: its sequence will be used
/// again, and the fragments of two messages must not be mixed.
const EXPIRING_RANGE: u64 = 1 << 14;

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is handed to the application at once.
    Now,
    /// It waits for something, or is dropped.
    Later,
}

/// Messages that were completed, and memory that was taken or freed.
pub(super) struct Output<'a> {
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
    state: State,
}

#[derive(Debug)]
enum State {
    Ordered {
        /// The position of the next message to deliver.
        next: u64,
        waiting: BTreeMap<u64, Waiting>,
        /// The position at which the arrival of messages has to be reported.
        credit_due: u64,
    },
    Unordered {
        /// The first position that has not arrived.
        next: u64,
        /// Whether positions from `next` on have arrived.
        arrived: VecDeque<bool>,
        partial: BTreeMap<u64, PartialMessage>,
        credit_due: u64,
    },
    Sequenced {
        /// The newest that was delivered.
        newest: Option<u16>,
        partial: Option<(u16, PartialMessage)>,
    },
    Expiring {
        /// The highest position so far.
        newest: u64,
        /// Unfinished messages by position, in the order of their first fragments.
        partial: VecDeque<(u64, PartialMessage)>,
    },
}

/// A message of an ordered channel that cannot be delivered yet.
#[derive(Debug)]
enum Waiting {
    Complete(Vec<u8>),
    Partial(PartialMessage),
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

impl ReceiveChannel {
    /// `max_size`: maximum size of a message in the direction of this receiver.
    pub fn new(index: ChannelIndex, channel: &Channel, max_size: usize) -> Self {
        let state = match channel.mode {
            ChannelMode::ReliableOrdered => {
                State::Ordered { next: 0, waiting: BTreeMap::new(), credit_due: CREDIT_INTERVAL }
            }
            ChannelMode::ReliableUnordered => {
                let partial = BTreeMap::new();
                State::Unordered { next: 0, arrived: VecDeque::new(), partial, credit_due: CREDIT_INTERVAL }
            }
            ChannelMode::Sequenced => State::Sequenced { newest: None, partial: None },
            ChannelMode::Expiring => State::Expiring { newest: 0, partial: VecDeque::new() },
        };
        let direct_end = if channel.receipts || max_size == 0 { 0 } else { max_size.saturating_add(1) };
        Self { index, has_receipts: channel.receipts, max_size, direct_end, state }
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
        if let State::Ordered { next, waiting, credit_due } = &mut self.state {
            let is_next = sequence == *next as u16 && waiting.is_empty() && *next + 1 < *credit_due;
            *next += u64::from(is_next);
            return is_next;
        }
        self.accept_next_in_any_order(sequence)
    }

    /// [`accept_next`](Self::accept_next) in a channel that is not ordered.
    #[inline(always)]
    fn accept_next_in_any_order(&mut self, sequence: u16) -> bool {
        match &mut self.state {
            State::Unordered { next, arrived, partial, credit_due } => {
                let is_complete = arrived.is_empty() && partial.is_empty();
                let is_next = is_complete && sequence == *next as u16 && *next + 1 < *credit_due;
                *next += u64::from(is_next);
                is_next
            }
            State::Sequenced { newest, partial } => {
                let is_next = partial.is_none() && newest.is_none_or(|newest| is_newer(sequence, newest));
                if is_next {
                    *newest = Some(sequence);
                }
                is_next
            }
            State::Expiring { newest, partial } if partial.is_empty() => {
                let ahead = sequence.wrapping_sub(*newest as u16).cast_signed();
                *newest += u64::from(ahead.max(0).cast_unsigned());
                true
            }
            State::Expiring { .. } | State::Ordered { .. } => false,
        }
    }

    /// Handles a whole message. If it is to be delivered at once, its position is returned as well.
    pub fn handle_message(
        &mut self,
        sequence: u16,
        body: &[u8],
        out: &mut Output<'_>,
    ) -> Result<(Delivery, u64), ChannelFault> {
        let out_of_range = ChannelFault::OutOfRange(self.index.get());
        self.check_size(body.len())?;
        match &mut self.state {
            State::Ordered { next, waiting, .. } => {
                let number = position(*next, sequence).ok_or(out_of_range)?;
                if !waiting.is_empty() && waiting.contains_key(&number) {
                    return Err(out_of_range);
                }
                if number == *next {
                    *next += 1;
                    if !waiting.is_empty() {
                        drain(self.index, next, waiting, out);
                    }
                    return Ok((Delivery::Now, number));
                }
                let bytes = body.to_vec();
                *out.memory += memory_of(&bytes);
                waiting.insert(number, Waiting::Complete(bytes));
                Ok((Delivery::Later, number))
            }
            State::Unordered { next, arrived, partial, .. } => {
                let number = position(*next, sequence).ok_or(out_of_range)?;
                if partial.contains_key(&number) || !mark(next, arrived, number, out.memory) {
                    return Err(out_of_range);
                }
                Ok((Delivery::Now, number))
            }
            State::Sequenced { newest, partial } => {
                if newest.is_some_and(|newest| !is_newer(sequence, newest)) {
                    return Ok((Delivery::Later, 0));
                }
                *newest = Some(sequence);
                if let Some((_, dropped)) = partial.take_if(|(older, _)| !is_newer(*older, sequence)) {
                    *out.memory -= dropped.memory();
                }
                Ok((Delivery::Now, sequence.into()))
            }
            State::Expiring { newest, partial } => {
                Ok((Delivery::Now, advance_expiring(newest, partial, sequence, out)))
            }
        }
    }

    /// Handles a part of a message.
    pub fn handle_fragment(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) -> Result<(), ChannelFault> {
        let Fragment { sequence, index, count, body, size } = fragment;
        let out_of_range = ChannelFault::OutOfRange(self.index.get());
        // The length of the message is known when its last fragment is; until then a fragment shows the least that it can be.
        let is_last = index + 1 == count;
        self.check_size(usize::from(count - 1) * size + if is_last { body.len() } else { 1 })?;
        let index_of_channel = self.index;
        let insert = |partial: &mut PartialMessage, memory: &mut usize| {
            *memory -= partial.memory();
            let inserted = partial.insert(index, count, body, size);
            *memory += partial.memory();
            inserted.map(|()| partial.is_complete()).map_err(|_| ChannelFault::OutOfRange(index_of_channel.get()))
        };
        let new = |memory: &mut usize| {
            let partial = PartialMessage::new(count);
            *memory += partial.memory();
            partial
        };
        match &mut self.state {
            State::Ordered { next, waiting, .. } => {
                let number = position(*next, sequence).ok_or(out_of_range)?;
                let entry = waiting.entry(number).or_insert_with(|| Waiting::Partial(new(out.memory)));
                let Waiting::Partial(partial) = entry else { return Err(out_of_range) };
                if insert(partial, out.memory)? {
                    let overhead = partial.memory();
                    let bytes = std::mem::replace(partial, PartialMessage::new(0)).into_bytes();
                    *out.memory = *out.memory - overhead + memory_of(&bytes);
                    *entry = Waiting::Complete(bytes);
                    drain(self.index, next, waiting, out);
                }
            }
            State::Unordered { next, arrived, partial, .. } => {
                let number = position(*next, sequence).ok_or(out_of_range)?;
                if is_marked(*next, arrived, number) {
                    return Err(out_of_range);
                }
                let message = partial.entry(number).or_insert_with(|| new(out.memory));
                if insert(message, out.memory)?
                    && let Some(message) = partial.remove(&number)
                {
                    mark(next, arrived, number, out.memory);
                    complete(self.index, number, message, out);
                }
            }
            State::Sequenced { newest, partial } => {
                let is_late = newest.is_some_and(|newest| !is_newer(sequence, newest))
                    || partial.as_ref().is_some_and(|(other, _)| is_newer(*other, sequence));
                if is_late {
                    return Ok(());
                }
                if let Some((_, dropped)) = partial.take_if(|(other, _)| *other != sequence) {
                    *out.memory -= dropped.memory();
                }
                let (_, message) = partial.get_or_insert_with(|| (sequence, new(out.memory)));
                if insert(message, out.memory)?
                    && let Some((_, message)) = partial.take()
                {
                    *newest = Some(sequence);
                    complete(self.index, sequence.into(), message, out);
                }
            }
            State::Expiring { newest, partial } => {
                let number = advance_expiring(newest, partial, sequence, out);
                let known = partial.iter().position(|(other, _)| *other == number);
                let known = known.unwrap_or_else(|| {
                    if partial.len() >= MAX_EXPIRING
                        && let Some((_, dropped)) = partial.pop_front()
                    {
                        *out.memory -= dropped.memory();
                    }
                    partial.push_back((number, new(out.memory)));
                    partial.len() - 1
                });
                let Some((_, message)) = partial.get_mut(known) else { return Ok(()) };
                if insert(message, out.memory)?
                    && let Some((_, message)) = partial.remove(known)
                {
                    complete(self.index, number, message, out);
                }
            }
        }
        Ok(())
    }

    /// The first position that has not arrived, if it has to be reported to the peer.
    pub fn take_credit(&mut self) -> Option<u16> {
        let (next, credit_due) = match &mut self.state {
            State::Ordered { next, credit_due, .. } | State::Unordered { next, credit_due, .. } => (*next, credit_due),
            State::Sequenced { .. } | State::Expiring { .. } => return None,
        };
        if next < *credit_due {
            return None;
        }
        *credit_due = next + CREDIT_INTERVAL;
        Some(next as u16)
    }

    fn check_size(&self, length: usize) -> Result<(), ChannelFault> {
        match self.max_size {
            0 => Err(ChannelFault::Channel(self.index.get())),
            max if length > max => Err(ChannelFault::TooLarge(self.index.get())),
            _ => Ok(()),
        }
    }
}

/// The position of a sequence from `next` on, if the peer may have sent it.
fn position(next: u64, sequence: u16) -> Option<u64> {
    let ahead = u64::from(sequence.wrapping_sub(next as u16));
    (ahead < CREDIT_WINDOW).then_some(next + ahead)
}

fn is_newer(sequence: u16, than: u16) -> bool {
    (1..1 << 15).contains(&sequence.wrapping_sub(than))
}

/// The position of a sequence of an expiring channel: the one nearest to the newest.
fn expiring_position(newest: u64, sequence: u16) -> u64 {
    let ahead = sequence.wrapping_sub(newest as u16).cast_signed();
    newest.saturating_add_signed(ahead.into())
}

/// The position of a sequence of an expiring channel. Gives up unfinished messages that are far behind.
fn advance_expiring(
    newest: &mut u64,
    partial: &mut VecDeque<(u64, PartialMessage)>,
    sequence: u16,
    out: &mut Output<'_>,
) -> u64 {
    let number = expiring_position(*newest, sequence);
    *newest = number.max(*newest);
    while let Some((_, dropped)) = partial.pop_front_if(|(position, _)| *position + EXPIRING_RANGE <= *newest) {
        *out.memory -= dropped.memory();
    }
    number
}

fn is_marked(next: u64, arrived: &VecDeque<bool>, number: u64) -> bool {
    arrived.get((number - next) as usize).is_some_and(|arrived| *arrived)
}

/// Marks a position from `next` on as arrived. Returns false if it was before. A gap takes memory for each position after it.
fn mark(next: &mut u64, arrived: &mut VecDeque<bool>, number: u64, memory: &mut usize) -> bool {
    if is_marked(*next, arrived, number) {
        return false;
    }
    if number == *next && arrived.is_empty() {
        *next += 1;
        return true;
    }
    let offset = (number - *next) as usize;
    *memory -= arrived.len();
    if arrived.len() <= offset {
        arrived.resize(offset + 1, false);
    }
    if let Some(entry) = arrived.get_mut(offset) {
        *entry = true;
    }
    while arrived.front() == Some(&true) {
        arrived.pop_front();
        *next += 1;
    }
    *memory += arrived.len();
    true
}

/// Memory that a complete message takes until it is handed to the application.
pub(super) fn memory_of(bytes: &Vec<u8>) -> usize {
    ENTRY + bytes.capacity()
}

/// Delivers a message that was put together.
fn complete(channel: ChannelIndex, number: u64, message: PartialMessage, out: &mut Output<'_>) {
    *out.memory -= message.memory();
    let bytes = message.into_bytes();
    *out.memory += memory_of(&bytes);
    out.ready.push_back((channel, number, bytes));
}

/// Delivers the messages that are next and complete.
fn drain(channel: ChannelIndex, next: &mut u64, waiting: &mut BTreeMap<u64, Waiting>, out: &mut Output<'_>) {
    while let Some(entry) = waiting.first_entry()
        && *entry.key() == *next
        && matches!(entry.get(), Waiting::Complete(_))
        && let Waiting::Complete(bytes) = entry.remove()
    {
        out.ready.push_back((channel, *next, bytes));
        *next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 10;

    #[test]
    fn w112_positions_after_a_gap_of_an_unordered_channel_are_counted_as_memory() {
        let settings = Channel::new(ChannelMode::ReliableUnordered, 100);
        let mut channel = ReceiveChannel::new(ChannelIndex::default(), &settings, 100);
        let mut ready = VecDeque::new();
        let mut memory = 0;
        let mut out = Output { ready: &mut ready, memory: &mut memory };
        let last = CREDIT_WINDOW as u16 - 1;
        channel.handle_message(last, b"", &mut out).unwrap();
        assert_eq!(*out.memory, CREDIT_WINDOW as usize);
        for sequence in (0..last).rev() {
            channel.handle_message(sequence, b"", &mut out).unwrap();
        }
        assert_eq!(*out.memory, 0);
    }

    #[test]
    fn w112_fragments_of_two_expiring_messages_with_the_same_sequence_are_not_mixed() {
        let settings = Channel::new(ChannelMode::Expiring, 100);
        let mut channel = ReceiveChannel::new(ChannelIndex::default(), &settings, 100);
        let mut ready = VecDeque::new();
        let mut memory = 0;
        let mut out = Output { ready: &mut ready, memory: &mut memory };
        let fragment = |index, count, body| Fragment { sequence: 5, index, count, body, size: SIZE };
        // The other fragments have expired.
        channel.handle_fragment(fragment(0, 3, &[1; SIZE]), &mut out).unwrap();
        for sequence in 6..=u16::MAX {
            channel.handle_message(sequence, b"whole", &mut out).unwrap();
        }
        assert_eq!(*out.memory, 0, "an unfinished message is given up");
        for sequence in 0..5 {
            channel.handle_message(sequence, b"whole", &mut out).unwrap();
        }
        channel.handle_fragment(fragment(1, 2, &[2; 3]), &mut out).unwrap();
        channel.handle_fragment(fragment(0, 2, &[2; SIZE]), &mut out).unwrap();
        let (_, number, bytes) = ready.pop_front().unwrap();
        assert_eq!((number, bytes), ((1 << 16) + 5, vec![2; SIZE + 3]));
    }
}
