//! The end of a session: what is left is delivered, then disconnects are sent; a disconnect of the peer is confirmed by its
//! silence (S28).

use super::Connection;
use crate::DisconnectReason;
use std::time::{Duration, Instant};

/// Maximum time for which a closing side keeps delivering the messages that are left, those in the queues of a layer above
/// included (S28).
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of disconnects that are sent (S28).
const DISCONNECTS: u8 = 3;

/// Their interval (S28).
pub(super) const DISCONNECT_INTERVAL: Duration = Duration::from_millis(30);

/// Minimum time for which a peer that seems to have disconnected has to be silent before it counts as gone (S28).
pub(super) const PEER_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval of keepalives during that time (S28).
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

/// A close for which the layer above still hands messages over. It shares its time with the flush of the connection.
#[derive(Debug)]
pub(super) struct PreparedClose {
    /// When the session is closed, whatever is left.
    pub until: Instant,
    text: String,
}

impl Connection {
    /// Delivers the messages that are left, sends disconnects with this text, and ends the session (S28).
    pub(crate) fn close(&mut self, now: Instant, text: &str) {
        self.start_closing(now, DisconnectReason::Closed, text.to_owned());
    }

    /// The layer above has messages that it will hand over before it calls [`close`](Self::close). If that takes longer than a
    /// flush may take, the session is closed with this text all the same.
    pub(crate) fn begin_close(&mut self, now: Instant, text: &str) {
        if self.state == State::Open && self.prepared_close.is_none() {
            let close = PreparedClose { until: now + FLUSH_TIMEOUT, text: text.to_owned() };
            self.prepared_close = Some(Box::new(close));
        }
    }

    /// Ends the session at once, without sending anything.
    pub(crate) fn end(&mut self, reason: DisconnectReason) {
        if !self.is_closed() {
            self.state = State::Closed(reason);
            self.events.closed = true;
        }
    }

    /// The same for a reason of this side, whose text is that of the disconnects.
    pub(super) fn close_because(&mut self, now: Instant, reason: DisconnectReason) {
        let text = reason.to_string();
        self.start_closing(now, reason, text);
    }

    fn start_closing(&mut self, now: Instant, reason: DisconnectReason, text: String) {
        if self.state == State::Open {
            let until = self.prepared_close.take().map_or(now + FLUSH_TIMEOUT, |close| close.until);
            self.state = State::Flushing { until, reason, text };
            self.finish_flush(now);
        }
    }

    /// Sends disconnects and ends the session, without delivering the messages that are left.
    pub(crate) fn abort(&mut self, now: Instant, reason: DisconnectReason) {
        if self.is_closed() {
            return;
        }
        self.prepared_close = None;
        let text = reason.to_string();
        self.state = State::Disconnecting { left: DISCONNECTS, next: now, reason, text };
    }

    /// Starts to send disconnects if everything is delivered or the time for that is up.
    pub(super) fn finish_flush(&mut self, now: Instant) {
        if self.state == State::Open
            && self.prepared_close.as_ref().is_some_and(|close| now >= close.until)
            && let Some(close) = self.prepared_close.take()
        {
            let reason = DisconnectReason::Closed;
            self.state = State::Disconnecting { left: DISCONNECTS, next: now, reason, text: close.text };
        }
        if let State::Flushing { until, reason, text } = &mut self.state
            && (self.send.buffer.unacked() == 0 || now >= *until)
        {
            let reason = reason.clone();
            let text = std::mem::take(text);
            self.state = State::Disconnecting { left: DISCONNECTS, next: now, reason, text };
        }
    }
}
