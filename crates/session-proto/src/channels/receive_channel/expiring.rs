//! An expiring channel: messages are delivered in any order, and may never be complete.

use super::{Delivery, Fragment, OutOfRange, Output};
use crate::channels::reassembly::PartialMessage;
use std::collections::VecDeque;

/// Maximum number of unfinished messages: the oldest are given up, because they may have expired.
const MAX_PARTIAL: usize = 64;

/// Number of later messages after which an unfinished message is given up: its sequence will be used again, and the fragments of
/// two messages must not be mixed.
const MAX_DISTANCE: u64 = 1 << 14;

#[derive(Debug, Default)]
pub(super) struct ExpiringReceiver {
    /// The highest position so far.
    newest: u64,
    /// Unfinished messages by position, in the order of their first fragments.
    partial: VecDeque<(u64, PartialMessage)>,
}

impl ExpiringReceiver {
    #[inline(always)]
    pub fn accept_next(&mut self, sequence: u16) -> bool {
        if !self.partial.is_empty() {
            return false;
        }
        let ahead = sequence.wrapping_sub(self.newest as u16).cast_signed();
        self.newest += u64::from(ahead.max(0).cast_unsigned());
        true
    }

    pub fn handle_message(&mut self, sequence: u16, out: &mut Output<'_>) -> Delivery {
        Delivery::Now { number: self.advance(sequence, out) }
    }

    pub fn handle_fragment(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) -> Result<(), OutOfRange> {
        let number = self.advance(fragment.sequence, out);
        let known = self.partial.iter().position(|(other, _)| *other == number);
        let known = known.unwrap_or_else(|| self.start(number, fragment.count, out));
        let Some((_, message)) = self.partial.get_mut(known) else { return Ok(()) };
        if out.insert(message, fragment)?
            && let Some((_, message)) = self.partial.remove(known)
        {
            out.complete(number, message);
        }
        Ok(())
    }

    /// Adds an unfinished message, and returns where it is in `partial`.
    fn start(&mut self, number: u64, count: u16, out: &mut Output<'_>) -> usize {
        if self.partial.len() >= MAX_PARTIAL
            && let Some((_, dropped)) = self.partial.pop_front()
        {
            *out.memory -= dropped.memory();
        }
        self.partial.push_back((number, out.new_partial(count)));
        self.partial.len() - 1
    }

    /// The position of a sequence: the one nearest to the newest. Gives up unfinished messages that are far behind.
    fn advance(&mut self, sequence: u16, out: &mut Output<'_>) -> u64 {
        let ahead = sequence.wrapping_sub(self.newest as u16).cast_signed();
        let number = self.newest.saturating_add_signed(ahead.into());
        self.newest = number.max(self.newest);
        let newest = self.newest;
        while let Some((_, dropped)) = self.partial.pop_front_if(|(position, _)| *position + MAX_DISTANCE <= newest) {
            *out.memory -= dropped.memory();
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::ChannelIndex;

    const SIZE: usize = 10;

    #[test]
    fn w112_fragments_of_two_expiring_messages_with_the_same_sequence_are_not_mixed() {
        let mut channel = ExpiringReceiver::default();
        let mut ready = VecDeque::new();
        let mut memory = 0;
        let mut out = Output { channel: ChannelIndex::default(), ready: &mut ready, memory: &mut memory };
        let fragment = |index, count, body| Fragment { sequence: 5, index, count, body, size: SIZE };
        // The other fragments have expired.
        channel.handle_fragment(fragment(0, 3, &[1; SIZE]), &mut out).unwrap();
        for sequence in 6..=u16::MAX {
            channel.handle_message(sequence, &mut out);
        }
        assert_eq!(*out.memory, 0, "an unfinished message is given up");
        for sequence in 0..5 {
            channel.handle_message(sequence, &mut out);
        }
        channel.handle_fragment(fragment(1, 2, &[2; 3]), &mut out).unwrap();
        channel.handle_fragment(fragment(0, 2, &[2; SIZE]), &mut out).unwrap();
        let (_, number, bytes) = ready.pop_front().unwrap();
        assert_eq!((number, bytes), ((1 << 16) + 5, vec![2; SIZE + 3]));
    }
}
