//! How much may be handed over to the connection without a queue.

use crate::Connection;
use rallypoint_wire::session::{MAX_DATAGRAM, channels::MESSAGE_HEADER};
use std::time::Instant;

/// Number of bytes that the connection would still send at once, which is determined once before it sends anything.
#[derive(Debug, Default)]
pub(super) struct DirectBudget {
    left: usize,
    is_known: bool,
    /// Bytes of a datagram around a message that is alone in it.
    overhead: usize,
}

impl DirectBudget {
    /// Whether a datagram would be sent at once.
    #[inline]
    pub fn admits(&mut self, now: Instant, connection: &mut Connection) -> bool {
        self.left >= MAX_DATAGRAM || (!self.is_known && self.determine(now, connection))
    }

    /// A message of this length is handed over. Returns the size of its datagram.
    #[inline]
    pub fn on_sent(&mut self, length: usize) -> usize {
        let sent = length + self.overhead;
        self.left = self.left.saturating_sub(sent);
        sent
    }

    #[cold]
    fn determine(&mut self, now: Instant, connection: &mut Connection) -> bool {
        let overhead = MAX_DATAGRAM - connection.max_message() + MESSAGE_HEADER;
        *self = Self { left: connection.send_budget(now), is_known: true, overhead };
        self.left >= MAX_DATAGRAM
    }
}
