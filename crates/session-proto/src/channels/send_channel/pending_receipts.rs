//! The receipts that are missing in a channel with receipts.

use std::collections::VecDeque;

/// Number of messages that may be sent before the peer's application has read the first: half of the range of a sequence.
pub(super) const RECEIPT_WINDOW: usize = 1 << 15;

/// Messages that were sent, from the first one without a receipt on.
#[derive(Debug, Default)]
pub(super) struct PendingReceipts {
    /// Whether the receipt is missing, for the messages from `base` on.
    unconfirmed: VecDeque<bool>,
    /// The position of the first.
    base: u64,
}

impl PendingReceipts {
    /// Whether another message may be sent.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.unconfirmed.len() < RECEIPT_WINDOW
    }

    /// The next message was sent.
    #[inline]
    pub fn on_sent(&mut self) {
        self.unconfirmed.push_back(true);
    }

    /// The position of the message of a receipt, if it was sent and has had none.
    pub fn on_receipt(&mut self, sequence: u16) -> Option<u64> {
        let offset = sequence.wrapping_sub(self.base as u16);
        let number = self.base + u64::from(offset);
        let is_missing = self.unconfirmed.get_mut(usize::from(offset))?;
        if !std::mem::take(is_missing) {
            return None;
        }
        while self.unconfirmed.front() == Some(&false) {
            self.unconfirmed.pop_front();
            self.base += 1;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w117_a_message_has_one_receipt() {
        let mut pending = PendingReceipts::default();
        (0..3).for_each(|_| pending.on_sent());
        assert_eq!(pending.on_receipt(1), Some(1));
        assert_eq!(pending.on_receipt(1), None, "twice");
        assert_eq!(pending.on_receipt(0), Some(0));
        assert_eq!((pending.on_receipt(0), pending.on_receipt(1), pending.on_receipt(3)), (None, None, None));
        assert_eq!(pending.on_receipt(2), Some(2));
        assert!(pending.unconfirmed.is_empty());
    }
}
