//! Which messages of a channel need not wait in its queue.

/// Number of messages of a sequenced channel that wait in the queue, where the next one can replace them, after the last one that
/// was replaced.
const QUEUED_AFTER_REPLACED: u8 = 64;

#[derive(Debug)]
pub(super) struct DirectPath {
    /// Messages that do not wait are shorter than this; zero if all wait, because of a rate or receipts, or of
    /// `forced_queue_count`.
    end: usize,
    /// In a sequenced channel: number of messages to come, none of which is replaced, that wait in the queue.
    forced_queue_count: u8,
}

impl DirectPath {
    /// `max_size`: maximum size of a message; zero if all wait.
    pub fn new(max_size: usize) -> Self {
        Self { end: if max_size > 0 { max_size.saturating_add(1) } else { 0 }, forced_queue_count: 0 }
    }

    /// Whether a message of this length need not wait.
    #[inline]
    pub fn admits(&self, length: usize) -> bool {
        length < self.end
    }

    /// A message of a sequenced channel that has not waited is replaced before it was sent.
    pub fn on_replaced(&mut self) {
        self.end = 0;
        self.forced_queue_count = QUEUED_AFTER_REPLACED;
    }

    /// A message of a sequenced channel is queued. `is_replaced`: the last one is replaced by it.
    pub fn on_queued(&mut self, is_replaced: bool, max_size: usize) {
        if self.forced_queue_count > 0 {
            self.forced_queue_count = if is_replaced { QUEUED_AFTER_REPLACED } else { self.forced_queue_count - 1 };
            if self.forced_queue_count == 0 {
                self.end = max_size.saturating_add(1);
            }
        }
    }
}
