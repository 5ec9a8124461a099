//! A reliable ordered channel: a message waits for those before it.

use super::{CreditSchedule, Delivery, Fragment, OutOfRange, Output, memory_of, position};
use crate::channels::reassembly::PartialMessage;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct OrderedReceiver {
    /// The position of the next message to deliver.
    next: u64,
    waiting: BTreeMap<u64, WaitingMessage>,
    credit: CreditSchedule,
}

/// A message that cannot be delivered yet.
#[derive(Debug)]
enum WaitingMessage {
    Complete(Vec<u8>),
    Partial(PartialMessage),
}

impl OrderedReceiver {
    #[inline(always)]
    pub fn accept_next(&mut self, sequence: u16) -> bool {
        let is_next = sequence == self.next as u16 && self.waiting.is_empty() && !self.credit.is_due(self.next + 1);
        self.next += u64::from(is_next);
        is_next
    }

    pub fn handle_message(&mut self, sequence: u16, body: &[u8], out: &mut Output<'_>) -> Result<Delivery, OutOfRange> {
        let number = position(self.next, sequence)?;
        if !self.waiting.is_empty() && self.waiting.contains_key(&number) {
            return Err(OutOfRange);
        }
        if number == self.next {
            self.next += 1;
            if !self.waiting.is_empty() {
                self.drain(out);
            }
            return Ok(Delivery::Now { number });
        }
        let bytes = body.to_vec();
        *out.memory += memory_of(&bytes);
        self.waiting.insert(number, WaitingMessage::Complete(bytes));
        Ok(Delivery::Later)
    }

    pub fn handle_fragment(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) -> Result<(), OutOfRange> {
        let number = position(self.next, fragment.sequence)?;
        let new = || WaitingMessage::Partial(out.new_partial(fragment.count));
        let entry = self.waiting.entry(number).or_insert_with(new);
        let WaitingMessage::Partial(partial) = entry else { return Err(OutOfRange) };
        if out.insert(partial, fragment)? {
            let overhead = partial.memory();
            let bytes = std::mem::replace(partial, PartialMessage::new(0)).into_bytes();
            *out.memory = *out.memory - overhead + memory_of(&bytes);
            *entry = WaitingMessage::Complete(bytes);
            self.drain(out);
        }
        Ok(())
    }

    pub fn take_credit(&mut self) -> Option<u16> {
        self.credit.take(self.next)
    }

    /// Delivers the messages that are next and complete.
    fn drain(&mut self, out: &mut Output<'_>) {
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() == self.next
            && matches!(entry.get(), WaitingMessage::Complete(_))
            && let WaitingMessage::Complete(bytes) = entry.remove()
        {
            out.ready.push_back((out.channel, self.next, bytes));
            self.next += 1;
        }
    }
}
