//! Where a receiver gets payloads from: a connection, or what is left of one.

use crate::{Connection, connection::ReceiveBuffer};

/// Where payloads come from.
pub(crate) trait PayloadSource {
    /// The next payload, if there is one.
    fn next_payload(&mut self) -> Option<&[u8]>;

    /// The payload that [`next_payload`](Self::next_payload) returned last, without its first bytes.
    fn last_payload_from(&self, start: usize) -> &[u8];
}

impl PayloadSource for Connection {
    #[inline(always)]
    fn next_payload(&mut self) -> Option<&[u8]> {
        self.recv()
    }

    #[inline(always)]
    fn last_payload_from(&self, start: usize) -> &[u8] {
        self.last_received_from(start)
    }
}

/// After the end of a session (W51).
impl PayloadSource for ReceiveBuffer {
    fn next_payload(&mut self) -> Option<&[u8]> {
        self.read()
    }

    fn last_payload_from(&self, start: usize) -> &[u8] {
        self.last_read_from(start)
    }
}
