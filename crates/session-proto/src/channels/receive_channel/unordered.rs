//! A reliable unordered channel: every message is delivered once, as soon as it is complete.

use super::{CreditSchedule, Delivery, Fragment, OutOfRange, Output, position};
use crate::channels::reassembly::PartialMessage;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
pub(super) struct UnorderedReceiver {
    /// The first position that has not arrived.
    next: u64,
    /// Whether positions from `next` on have arrived.
    arrived: VecDeque<bool>,
    partial: BTreeMap<u64, PartialMessage>,
    credit: CreditSchedule,
}

impl UnorderedReceiver {
    #[inline(always)]
    pub fn accept_next(&mut self, sequence: u16) -> bool {
        let is_complete = self.arrived.is_empty() && self.partial.is_empty();
        let is_next = is_complete && sequence == self.next as u16 && !self.credit.is_due(self.next + 1);
        self.next += u64::from(is_next);
        is_next
    }

    pub fn handle_message(&mut self, sequence: u16, out: &mut Output<'_>) -> Result<Delivery, OutOfRange> {
        let number = position(self.next, sequence)?;
        if self.partial.contains_key(&number) || !self.mark(number, out.memory) {
            return Err(OutOfRange);
        }
        Ok(Delivery::Now { number })
    }

    pub fn handle_fragment(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) -> Result<(), OutOfRange> {
        let number = position(self.next, fragment.sequence)?;
        if self.is_marked(number) {
            return Err(OutOfRange);
        }
        let message = self.partial.entry(number).or_insert_with(|| out.new_partial(fragment.count));
        if out.insert(message, fragment)?
            && let Some(message) = self.partial.remove(&number)
        {
            self.mark(number, out.memory);
            out.complete(number, message);
        }
        Ok(())
    }

    pub fn take_credit(&mut self) -> Option<u16> {
        self.credit.take(self.next)
    }

    fn is_marked(&self, number: u64) -> bool {
        self.arrived.get((number - self.next) as usize).is_some_and(|arrived| *arrived)
    }

    /// Marks a position from `next` on as arrived. Returns false if it was before. A gap takes memory for each position after it.
    fn mark(&mut self, number: u64, memory: &mut usize) -> bool {
        if self.is_marked(number) {
            return false;
        }
        let Self { next, arrived, .. } = self;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::{ChannelIndex, send_channel::CREDIT_WINDOW};

    #[test]
    fn w112_positions_after_a_gap_of_an_unordered_channel_are_counted_as_memory() {
        let mut channel = UnorderedReceiver::default();
        let mut ready = VecDeque::new();
        let mut memory = 0;
        let mut out = Output { channel: ChannelIndex::default(), ready: &mut ready, memory: &mut memory };
        let last = CREDIT_WINDOW as u16 - 1;
        channel.handle_message(last, &mut out).unwrap();
        assert_eq!(*out.memory, CREDIT_WINDOW as usize);
        for sequence in (0..last).rev() {
            channel.handle_message(sequence, &mut out).unwrap();
        }
        assert_eq!(*out.memory, 0);
    }
}
