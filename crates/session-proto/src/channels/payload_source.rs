//! Where a receiver gets payloads from: a connection, or the client or endpoint around it.

use crate::Connection;

/// Where payloads come from.
pub(super) trait PayloadSource {
    /// The next payload, if there is one.
    fn next_payload(&mut self) -> Option<&[u8]>;

    /// The payload that [`next_payload`](Self::next_payload) returned last.
    fn last_payload(&self) -> &[u8];
}

impl PayloadSource for Connection {
    #[inline(always)]
    fn next_payload(&mut self) -> Option<&[u8]> {
        self.recv()
    }

    fn last_payload(&self) -> &[u8] {
        self.last_received()
    }
}
