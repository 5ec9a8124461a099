//! A message that is overtaken by later ones on purpose (W79).

use super::SendBuffer;
use rallypoint_wire::session::MessageNumber;

impl SendBuffer {
    /// Skips the next message that was never sent, until [`send_skipped`](Self::send_skipped).
    pub fn skip_unsent(&mut self) {
        self.skipped = Some(self.next_unsent);
        self.next_unsent = self.next_unsent.next();
        self.advance_unsent();
    }

    /// Sends a skipped message next.
    pub fn send_skipped(&mut self, number: MessageNumber) {
        self.skipped = None;
        if let Some(message) = self.get_mut(number) {
            message.is_queued = true;
            self.resends.push_front(number);
        }
    }

    /// Position of the newest acked transmission in the order of all transmissions.
    pub fn newest_acked_order(&self) -> u64 {
        self.newest_acked_order
    }
}
