//! When a client sends a message without bytes to show where it is (W54).
//!
//! Only a new message names its session and proves its sender; acks and keepalives belong to the session of the address that
//! they come from. When a NAT gives two of its players each other's ports, players that only listen would never be told apart.

use super::{Connection, Side, State};
use std::time::{Duration, Instant};

/// Interval while something arrives that may belong to another session: in a plain session numbers that do not continue those
/// received before, which loss causes as well; in an encrypted one a message that cannot be opened. In both a message that arrives
/// again: a NAT may send the acks from an address that the server does not know (W53).
const MISROUTED_INTERVAL: Duration = Duration::from_millis(200);

/// Interval while messages arrive.
const RECEIVING_INTERVAL: Duration = Duration::from_secs(1);

/// Interval in keepalives while nothing arrives, minus a moment, so that the message is sent instead of a keepalive. With the
/// default of 2 s, an idle session stays below 40 bytes per second.
const IDLE_KEEPALIVES: u32 = 4;

/// Number of unacknowledged messages beyond which none is added.
const MAX_UNACKED: usize = 32;

impl Connection {
    /// When a client that sends no new messages has to send one: the next that waits, or one without bytes.
    pub(super) fn address_proof_at(&self) -> Option<Instant> {
        if self.codec.side != Side::Client || self.state != State::Open {
            return None;
        }
        // A resend proves nothing if the server has received the message before, and the ack went to another player. In a
        // silence nothing but resends may have been sent, although messages wait.
        if self.send.buffer.unsent() == 0 && self.send.buffer.unacked() >= MAX_UNACKED {
            return None;
        }
        let interval = if self.liveness.may_be_misrouted {
            MISROUTED_INTERVAL
        } else if self.liveness.last_data > self.liveness.last_proof {
            RECEIVING_INTERVAL
        } else {
            IDLE_KEEPALIVES * self.config.keepalive - self.config.keepalive / 20
        };
        Some(self.liveness.last_proof + interval)
    }
}
