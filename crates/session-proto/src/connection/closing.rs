//! The end of a session: what is left is delivered, then disconnects are sent; a disconnect of the peer is confirmed by its
//! silence (S28).

use super::Connection;
use crate::DisconnectReason;
use std::time::{Duration, Instant};

/// Maximum time for which a closing side keeps delivering the messages that are left (S28).
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of disconnects that are sent, and their interval (S28).
const DISCONNECTS: u8 = 3;
pub(super) const DISCONNECT_INTERVAL: Duration = Duration::from_millis(30);

/// Minimum time for which a peer that seems to have disconnected has to be silent before it counts as gone, and the interval
/// of keepalives during that time (S28).
pub(super) const PEER_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const PEER_CLOSE_PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// Whether the session is open, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// The messages that are left are delivered, until a deadline.
    Flushing {
        until: Instant,
        reason: DisconnectReason,
        text: String,
    },
    /// Disconnects are sent.
    Disconnecting {
        left: u8,
        next: Instant,
        reason: DisconnectReason,
        text: String,
    },
    Closed(DisconnectReason),
}

/// A disconnect of the peer that is not confirmed yet: it is not authenticated (S28).
#[derive(Debug)]
pub(super) struct PeerClose {
    /// When the session ends if nothing is received until then.
    pub until: Instant,
    /// When the next keepalive is sent, which a live peer answers.
    pub probe_at: Instant,
    pub reason: String,
}

impl Connection {
    /// Delivers the messages that are left, sends disconnects with this text, and ends the session (S28).
    pub(crate) fn close(&mut self, now: Instant, text: &str) {
        self.start_closing(now, DisconnectReason::Closed, text.to_owned());
    }

    /// Ends the session at once, without sending anything.
    pub(crate) fn end(&mut self, reason: DisconnectReason) {
        if !self.is_closed() {
            self.state = State::Closed(reason);
            self.events.closed = true;
        }
    }

    pub(super) fn start_closing(&mut self, now: Instant, reason: DisconnectReason, text: String) {
        if self.state == State::Open {
            self.state = State::Flushing { until: now + FLUSH_TIMEOUT, reason, text };
            self.finish_flush(now);
        }
    }

    /// Sends disconnects and ends the session, without delivering the messages that are left.
    pub(crate) fn abort(&mut self, now: Instant, reason: DisconnectReason) {
        if self.is_closed() {
            return;
        }
        let text = reason.to_string();
        self.state = State::Disconnecting { left: DISCONNECTS, next: now, reason, text };
    }

    /// Starts to send disconnects if everything is delivered or the time for that is up.
    pub(super) fn finish_flush(&mut self, now: Instant) {
        if let State::Flushing { until, reason, text } = &mut self.state
            && (self.send.buffer.unacked() == 0 || now >= *until)
        {
            let reason = reason.clone();
            let text = std::mem::take(text);
            self.state = State::Disconnecting { left: DISCONNECTS, next: now, reason, text };
        }
    }
}
