//! How much a layer above may hand over before it is asked for messages.

use rallypoint_wire::session::MAX_DATAGRAM;

/// Maximum number of messages per transmission after which the rest of the budget is kept: a game then determines it once in
/// several frames.
const MAX_PER_FRAME: usize = 2;

/// Maximum number of bytes that are kept: eight datagrams.
const MAX_KEPT: usize = 8 * MAX_DATAGRAM;

/// Number of bytes that would be sent at once. It is determined when it is needed and not known, and becomes unknown when something
/// else uses window or pacer.
#[derive(Debug, Default)]
pub(crate) struct DirectBudget {
    left: usize,
    /// Whether it was determined since the last transmission: until the next one there is no more.
    is_current: bool,
}

impl DirectBudget {
    /// Number of bytes that are left.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether it makes no sense to determine it again.
    pub fn is_current(&self) -> bool {
        self.is_current
    }

    /// Sets a newly determined budget.
    pub fn renew(&mut self, bytes: usize) {
        *self = Self { left: bytes, is_current: true };
    }

    /// This many bytes are left.
    #[inline]
    pub fn set_left(&mut self, bytes: usize) {
        self.left = bytes;
    }

    /// What was handed over, which is this many messages, is sent.
    #[inline]
    pub fn on_transmission(&mut self, unsent: usize) {
        self.left = if unsent <= MAX_PER_FRAME { self.left.min(MAX_KEPT) } else { 0 };
        self.is_current = false;
    }

    /// Discards the budget: something else uses window or pacer.
    pub fn invalidate(&mut self) {
        *self = Self::default();
    }
}
