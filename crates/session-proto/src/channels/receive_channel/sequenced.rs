//! A sequenced channel: the newest message wins.

use super::{Delivery, Fragment, OutOfRange, Output};
use crate::channels::reassembly::PartialMessage;

#[derive(Debug, Default)]
pub(super) struct SequencedReceiver {
    /// The newest that was delivered.
    newest: Option<u16>,
    partial: Option<(u16, PartialMessage)>,
}

impl SequencedReceiver {
    #[inline(always)]
    pub fn accept_next(&mut self, sequence: u16) -> bool {
        let is_next = self.partial.is_none() && !self.is_late(sequence);
        if is_next {
            self.newest = Some(sequence);
        }
        is_next
    }

    pub fn handle_message(&mut self, sequence: u16, out: &mut Output<'_>) -> Delivery {
        if self.is_late(sequence) {
            return Delivery::Later;
        }
        self.newest = Some(sequence);
        if let Some((_, dropped)) = self.partial.take_if(|(older, _)| !is_newer(*older, sequence)) {
            *out.memory -= dropped.memory();
        }
        Delivery::Now { number: sequence.into() }
    }

    pub fn handle_fragment(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) -> Result<(), OutOfRange> {
        let sequence = fragment.sequence;
        if self.is_late(sequence) || self.partial.as_ref().is_some_and(|(other, _)| is_newer(*other, sequence)) {
            return Ok(());
        }
        if let Some((_, dropped)) = self.partial.take_if(|(other, _)| *other != sequence) {
            *out.memory -= dropped.memory();
        }
        let (_, message) = self.partial.get_or_insert_with(|| (sequence, out.new_partial(fragment.count)));
        if out.insert(message, fragment)?
            && let Some((_, message)) = self.partial.take()
        {
            self.newest = Some(sequence);
            out.complete(sequence.into(), message);
        }
        Ok(())
    }

    /// Whether a message is not newer than the one that was delivered last.
    #[inline(always)]
    fn is_late(&self, sequence: u16) -> bool {
        self.newest.is_some_and(|newest| !is_newer(sequence, newest))
    }
}

#[inline]
fn is_newer(sequence: u16, than: u16) -> bool {
    (1..1 << 15).contains(&sequence.wrapping_sub(than))
}
