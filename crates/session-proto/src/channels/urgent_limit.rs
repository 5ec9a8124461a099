//! Keeps the queue of the path short that sequenced and expiring messages would fill by themselves.
//!
//! Players whose messages together exceed what their path carries fill its queue, and then every message is late by the length of
//! that queue. The congestion controller cannot prevent it: many small windows are one long queue. So when the queue delays, a
//! session has fewer bytes of such messages in flight. What is not sent is replaced by the next message, which costs a sequenced
//! channel nothing but frequency, or shares a payload with it.
//!
//! At most a third of the bytes is held back, and if that does not shorten the queue within two seconds (because other traffic
//! fills it), none is for a while.

use crate::Connection;
use std::time::{Duration, Instant};

/// Queueing delay above which messages are held back.
const TARGET: Duration = Duration::from_millis(15);

/// Share of the bytes in flight that remains after that.
const DECREASE: f64 = 0.9;

/// Share of the offered bytes that is sent in any case.
const MIN_SHARE: f64 = 2.0 / 3.0;

/// Time for which messages are held back although the queue does not become shorter, and for which they are not afterwards.
const MAX_FUTILE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(30);

/// Shortest and longest interval between two steps of a stream.
const FRAME: Duration = Duration::from_millis(2);
const MAX_INTERVAL: Duration = Duration::from_millis(200);

/// Limits messages that must not be late by delay.
#[derive(Debug, Default)]
pub(super) struct UrgentLimit {
    /// Maximum number of bytes in flight, while there is a limit.
    limit: Option<f64>,
    reduced_at: Option<Instant>,
    grown_at: Option<Instant>,
    /// Since when the queue has been too long.
    too_long_since: Option<Instant>,
    paused_until: Option<Instant>,
    /// When the application last sent such messages, their bytes, and the smoothed rate in bytes per second.
    offered_at: Option<Instant>,
    offered: f64,
    rate: f64,
    /// When a payload was last sent, and its size; and the largest lately.
    sent_at: Option<Instant>,
    sent: f64,
    size: f64,
}

impl UrgentLimit {
    /// Whether nothing is held back.
    pub fn is_unlimited(&self) -> bool {
        self.limit.is_none()
    }

    /// The application sends a message, which takes this many bytes in a datagram of its own.
    pub fn on_offer(&mut self, now: Instant, bytes: usize) {
        let last = *self.offered_at.get_or_insert(now);
        let gap = now.saturating_duration_since(last);
        // Messages of one frame are one step of the stream.
        if gap >= FRAME {
            let rate = self.offered / gap.min(MAX_INTERVAL).as_secs_f64();
            self.rate = if self.rate > 0.0 { self.rate + (rate - self.rate) / 8.0 } else { rate };
            self.offered = 0.0;
            self.offered_at = Some(now);
        }
        self.offered += bytes as f64;
    }

    /// A payload is sent.
    pub fn on_sent(&mut self, now: Instant, size: usize) {
        self.sent_at = Some(now);
        self.sent = size as f64;
        self.size = (size as f64).max(self.size * 31.0 / 32.0);
    }

    /// Adapts the limit to the measured delay.
    pub fn update(&mut self, now: Instant, connection: &Connection, poll_interval: Duration) {
        let rtt = connection.smoothed_rtt();
        let grown_at = self.grown_at.replace(now);
        if connection.queue_delay() <= TARGET + 2 * poll_interval {
            self.too_long_since = None;
            if let Some(limit) = &mut self.limit {
                let elapsed = grown_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
                *limit += self.size * (elapsed.as_secs_f64() / rtt.as_secs_f64().max(0.001)).min(1.0);
                if *limit >= connection.window() as f64 {
                    self.limit = None;
                }
            }
            return;
        }
        if self.paused_until.is_some_and(|until| now < until) {
            return;
        }
        let since = *self.too_long_since.get_or_insert(now);
        if now.saturating_duration_since(since) > MAX_FUTILE.max(4 * rtt) {
            self.paused_until = Some(now + PAUSE);
            self.too_long_since = None;
            self.limit = None;
        } else if self.reduced_at.is_none_or(|at| now >= at + rtt) {
            self.reduced_at = Some(now);
            let used = connection.in_flight() as f64;
            self.limit = Some(self.limit.map_or(used, |limit| limit.min(used)) * DECREASE);
        }
    }

    /// When a payload may be sent, with this many bytes in flight: now or before if at once.
    pub fn ready_at(&self, now: Instant, in_flight: u64) -> Instant {
        let is_limited = self.limit.is_some_and(|limit| in_flight as f64 + self.size > limit.max(self.size));
        match self.sent_at {
            Some(sent_at) if is_limited => {
                let wait = self.sent / (self.rate * MIN_SHARE).max(1.0);
                sent_at + Duration::from_secs_f64(wait.min(1.0))
            }
            _ => now,
        }
    }
}
