//! Keeps the queue of the path short that droppable messages would fill by themselves.
//!
//! Players whose messages together exceed what their path carries fill its queue, and then every message is late by the length of
//! that queue. The congestion controller cannot prevent it: many small windows are one long queue. So when the queue delays, a
//! session has fewer bytes of such messages in flight. What is not sent is replaced by the next message, which costs a sequenced
//! channel nothing but frequency, or shares a payload with it.
//!
//! At most a third of the bytes is held back, and if that does not shorten the queue within two seconds (because other traffic
//! fills it), none is for a while.

use super::droppable_traffic::DroppableTraffic;
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

/// Rate in bytes per second below which a stream is thin: as in
/// [`ConnectionConfig::thin_rate`](crate::ConnectionConfig::thin_rate).
const THIN_RATE: f64 = 32_000.0;

/// Shortest and longest interval between two steps of a stream: what is sent within the shortest is one step.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MAX_INTERVAL: Duration = Duration::from_millis(200);

/// Limits droppable messages by delay.
#[derive(Debug, Default)]
pub(super) struct DroppableLimit {
    /// Maximum number of bytes in flight, while there is a limit.
    limit: Option<f64>,
    reduced_at: Option<Instant>,
    grown_at: Option<Instant>,
    /// Since when the queue has been too long.
    too_long_since: Option<Instant>,
    paused_until: Option<Instant>,
    /// Whether the queue was short when it was last looked at, and until when that holds.
    is_queue_short: bool,
    checked_until: Option<Instant>,
    /// When the current step of the stream began and ends, its bytes, and the smoothed rate in bytes per second.
    step: Option<(Instant, Instant)>,
    offered: u64,
    rate: f64,
    /// Number of points in time at which those bytes were sent.
    sends: u32,
}

impl DroppableLimit {
    /// Whether nothing is held back.
    #[inline]
    pub fn is_unlimited(&self) -> bool {
        self.limit.is_none()
    }

    /// Whether so little is sent that it does not matter to the path.
    pub fn is_thin(&self) -> bool {
        self.rate < THIN_RATE
    }

    /// Whether nothing is held back, and [`update`](Self::update) would not change that. The delay is looked at once per step.
    #[inline]
    pub fn stays_unlimited(&mut self, now: Instant, connection: &Connection) -> bool {
        if self.checked_until.is_none_or(|until| now >= until) {
            self.check_queue(now, connection);
        }
        self.is_queue_short && self.is_unlimited()
    }

    #[inline(never)]
    fn check_queue(&mut self, now: Instant, connection: &Connection) {
        self.checked_until = Some(now + MIN_INTERVAL);
        self.is_queue_short = !is_queue_too_long(connection);
        if self.is_queue_short {
            self.too_long_since = None;
        }
    }

    /// The application sends a message, which takes this many bytes in a datagram of its own.
    #[inline]
    pub fn on_offer(&mut self, now: Instant, bytes: usize) {
        if self.step.is_none_or(|(_, end)| now >= end) {
            self.start_step(now);
        }
        self.offered += bytes as u64;
    }

    /// The same for messages that were sent at this many points in time, the last of them `now`, and are counted together. Each of
    /// them may be [`MAX_INTERVAL`] after the one before.
    pub fn on_offers(&mut self, now: Instant, bytes: usize, sends: u32) {
        self.on_offer(now, bytes);
        self.sends += sends;
    }

    #[inline(never)]
    fn start_step(&mut self, now: Instant) {
        if let Some((start, _)) = self.step {
            let interval = now.saturating_duration_since(start).min(MAX_INTERVAL * self.sends.max(1));
            let rate = self.offered as f64 / interval.as_secs_f64();
            self.rate = if self.rate > 0.0 { self.rate + (rate - self.rate) / 8.0 } else { rate };
        }
        self.offered = 0;
        self.sends = 0;
        self.step = Some((now, now + MIN_INTERVAL));
    }

    /// Adapts the limit to the measured delay.
    pub fn update(&mut self, now: Instant, connection: &Connection, traffic: &DroppableTraffic) {
        let rtt = connection.smoothed_rtt();
        let grown_at = self.grown_at.replace(now);
        if !is_queue_too_long(connection) {
            self.too_long_since = None;
            if let Some(limit) = &mut self.limit {
                let elapsed = grown_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
                *limit += f64::from(traffic.size()) * (elapsed.as_secs_f64() / rtt.as_secs_f64().max(0.001)).min(1.0);
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
    pub fn ready_at(&self, now: Instant, in_flight: u64, traffic: &DroppableTraffic) -> Instant {
        let size = f64::from(traffic.size());
        let is_limited = self.limit.is_some_and(|limit| in_flight as f64 + size > limit.max(size));
        match traffic.last() {
            Some((sent_at, size)) if is_limited => {
                let wait = f64::from(size) / (self.rate * MIN_SHARE).max(1.0);
                sent_at + Duration::from_secs_f64(wait.min(1.0))
            }
            _ => now,
        }
    }
}

/// Whether the queue of the path is too long, apart from the time for which datagrams wait for a frame of either side.
fn is_queue_too_long(connection: &Connection) -> bool {
    connection.queue_delay() > TARGET + 2 * connection.poll_interval()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_counted_together_are_offered_at_their_rate() {
        for per_second in [10, 20, 30, 60] {
            let mut now = Instant::now();
            let mut limit = DroppableLimit::default();
            for _ in 0..50 {
                now += Duration::from_secs(8) / per_second;
                limit.on_offers(now, 8 * 100, 8);
            }
            let expected = f64::from(100 * per_second);
            assert!((limit.rate / expected - 1.0).abs() < 0.01, "{per_second} per second: {}", limit.rate);
        }
    }
}
