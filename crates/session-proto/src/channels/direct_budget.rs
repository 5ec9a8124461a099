//! How much may be handed over to the connection without a queue.

use crate::Connection;
use rallypoint_wire::session::{MAX_DATAGRAM, channels::MESSAGE_HEADER};
use std::time::Instant;

/// Number of bytes that the connection would still send at once, which is determined once before it sends anything.
#[derive(Debug, Default)]
pub(super) struct DirectBudget {
    /// Less than a datagram if messages have to wait in their queues.
    left: usize,
    is_known: bool,
    /// Bytes of a datagram around a message that is alone in it.
    overhead: usize,
}

impl DirectBudget {
    /// Whether a datagram would be sent at once.
    #[inline]
    pub fn admits(&self) -> bool {
        self.left >= MAX_DATAGRAM
    }

    /// Messages have to wait in their queues, until the budget is determined again.
    #[inline]
    pub fn close(&mut self) {
        self.left = 0;
        self.is_known = true;
    }

    /// A message of this length is handed over. Returns the size of its datagram.
    #[inline]
    pub fn on_sent(&mut self, length: usize) -> usize {
        let sent = length + self.overhead;
        self.left = self.left.saturating_sub(sent);
        sent
    }

    /// Determines the budget, if it is not known and nothing waits. Returns whether a datagram would be sent at once.
    #[cold]
    pub fn determine(&mut self, now: Instant, connection: &mut Connection, is_empty: bool) -> bool {
        if self.is_known || !is_empty {
            return false;
        }
        let overhead = MAX_DATAGRAM - connection.max_message() + MESSAGE_HEADER;
        *self = Self { left: connection.send_budget(now), is_known: true, overhead };
        self.admits()
    }
}
