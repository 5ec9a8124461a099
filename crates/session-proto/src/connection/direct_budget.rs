//! Bytes that the channel layer may hand to the connection outside of `poll_transmit`.

use rallypoint_wire::session::MAX_DATAGRAM;

/// Maximum number of messages per transmission after which the rest of the budget is kept: a game then computes it once in
/// several frames.
const MAX_PER_FRAME: usize = 2;

/// Maximum number of bytes that are kept: eight datagrams.
const MAX_KEPT: usize = 8 * MAX_DATAGRAM;

/// Bytes that the window and the pacer would admit now. Computed on demand, and discarded when other traffic uses either.
#[derive(Debug, Default)]
pub(crate) struct DirectBudget {
    left: usize,
    /// Whether it was computed since the last transmission: until the next one there is no more.
    is_current: bool,
}

impl DirectBudget {
    /// Number of bytes that are left.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether it was computed since the last transmission, so that computing it again gives no more.
    pub fn is_current(&self) -> bool {
        self.is_current
    }

    /// Sets a newly computed budget.
    pub fn renew(&mut self, bytes: usize) {
        *self = Self { left: bytes, is_current: true };
    }

    /// This many bytes are left.
    #[inline]
    pub fn set_left(&mut self, bytes: usize) {
        self.left = bytes;
    }

    /// The `unsent` messages that were handed over so far are transmitted.
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
