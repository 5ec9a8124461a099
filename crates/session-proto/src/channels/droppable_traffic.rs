//! What is sent of droppable messages: the limits by delay depend on it.

use std::time::{Duration, Instant};

/// How long a channel counts as in use after a message.
const ACTIVE: Duration = Duration::from_secs(1);

/// The datagrams with droppable messages.
#[derive(Debug, Default)]
pub(super) struct DroppableTraffic {
    /// When the last one was sent, while a droppable channel is in use.
    sent_at: Option<Instant>,
    /// Size of the last one, and of the largest lately.
    last_size: u32,
    size: u32,
}

impl DroppableTraffic {
    /// A datagram of this size is sent.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, size: usize) {
        self.last_size = size as u32;
        if self.sent_at == Some(now) {
            self.size = self.size.max(size as u32);
        } else {
            self.sent_at = Some(now);
            self.size = (size as u32).max(self.size - self.size / 32);
        }
    }

    /// Whether a droppable channel is in use, as of the last [`update`](Self::update).
    #[inline]
    pub fn is_active(&self) -> bool {
        self.sent_at.is_some()
    }

    /// Determines whether a droppable channel is still in use.
    pub fn update(&mut self, now: Instant) {
        if self.sent_at.is_some_and(|at| now >= at + ACTIVE) {
            *self = Self::default();
        }
    }

    /// When the last datagram was sent, and its size.
    pub fn last(&self) -> Option<(Instant, u32)> {
        self.sent_at.map(|at| (at, self.last_size))
    }

    /// Size of the largest datagram lately.
    pub fn size(&self) -> u32 {
        self.size
    }
}
