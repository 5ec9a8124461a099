//! Keeps the queue of the path short while messages that must not be late share it with reliable ones.
//!
//! The congestion controller fills the queue of a bottleneck, as TCP does: fair, but then a position waits behind the
//! download of its own session. So while a sequenced or expiring channel is in use, reliable messages are limited by delay
//! (as in LEDBAT, RFC 6817): when the queue delays by more than a target, the bytes in flight shrink so far that the queue
//! drains, and grow again after that. The congestion window applies as well.

use super::urgent_traffic::UrgentTraffic;
use crate::Connection;
use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::{Duration, Instant};

/// Queueing delay above which reliable messages back off: an eighth of the path's delay within these bounds, since on a short path
/// a short queue matters as well; and the time that one of their datagrams takes, within the upper bound.
const MIN_TARGET: Duration = Duration::from_millis(1);
const MAX_TARGET: Duration = Duration::from_millis(5);
const TARGET_SHARE: u32 = 8;

/// Share of the bytes in flight that remains after that, at most: less than the path holds, so that the queue drains and its empty
/// delay can be measured.
const DECREASE: f64 = 0.75;

/// Growth per round trip, as a share of the limit, and at least a part of a datagram: on a short and slow path, a whole one is
/// a long queue.
const GROWTH: f64 = 1.0 / 16.0;
const MIN_GROWTH: f64 = MAX_DATAGRAM as f64 / 8.0;

/// The same before the first queue: less than in a slow start, whose last round trip fills a queue as long as the path.
const START_GROWTH: f64 = 0.25;

/// First limit in bytes: the initial congestion window.
const START: f64 = 10.0 * MAX_DATAGRAM as f64;

/// Smallest limit in bytes: two datagrams.
const MIN_LIMIT: f64 = 2.0 * MAX_DATAGRAM as f64;

/// Number of datagrams with other messages for which reliable ones leave room in the congestion window.
const RESERVE: u64 = 2;

/// Whether a reliable message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkAdmission {
    Admitted,
    /// The congestion window has room only for messages that must not be late: it has to grow.
    WindowFull,
    /// More would make the queue of the path too long.
    QueueTooLong,
}

/// Limits reliable messages by delay, while it is needed.
#[derive(Debug, Default)]
pub(super) struct BulkLimit {
    /// Maximum number of bytes in flight.
    limit: Option<f64>,
    /// Whether there was a queue: the capacity of the path is known.
    has_found_queue: bool,
    reduced_at: Option<Instant>,
    grown_at: Option<Instant>,
}

impl BulkLimit {
    /// Adapts the limit to the measured delay.
    pub fn update(&mut self, now: Instant, connection: &Connection, traffic: &UrgentTraffic) {
        if !traffic.is_active() {
            *self = Self::default();
            return;
        }
        let rtt = connection.smoothed_rtt();
        let elapsed = self.grown_at.replace(now).map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let base = connection.base_rtt();
        let queue = connection.queue_delay();
        let used = connection.in_flight() as f64;
        // The time that a full datagram takes on a path that is in use.
        let datagram = rtt.mul_f64(MAX_DATAGRAM as f64 / used.max(MAX_DATAGRAM as f64));
        let target = ((base / TARGET_SHARE).max(MIN_TARGET) + datagram).min(MAX_TARGET);
        // The peer is probably polled as often.
        if queue > target + 2 * connection.poll_interval() {
            if self.reduced_at.is_none_or(|at| now >= at + rtt) {
                self.reduced_at = Some(now);
                self.has_found_queue = true;
                // A long queue, as after a slow start, is left at once.
                let drained = base.as_secs_f64() / (base + queue).as_secs_f64().max(0.001);
                let reduced = self.limit.map_or(used, |limit| limit.min(used)) * DECREASE.min(drained);
                self.limit = Some(reduced.max(MIN_LIMIT));
            }
        } else {
            let limit = self.limit.get_or_insert(used.max(START));
            let rounds = elapsed.as_secs_f64() / rtt.as_secs_f64().max(0.001);
            let share = if self.has_found_queue { GROWTH } else { START_GROWTH };
            let growth = (*limit * share).max(MIN_GROWTH) * rounds.min(1.0);
            // Above the window it does not keep that from growing.
            *limit = (*limit + growth).min(connection.window() as f64 * (1.0 + share));
        }
    }

    /// Whether a reliable message may be sent, with this many bytes in flight.
    pub fn check(&self, in_flight: u64, window: u64, traffic: &UrgentTraffic) -> BulkAdmission {
        if in_flight == 0 || !traffic.is_active() {
            return BulkAdmission::Admitted;
        }
        let next = (in_flight + MAX_DATAGRAM as u64) as f64;
        if self.limit.is_some_and(|limit| next > limit && limit < window as f64) {
            return BulkAdmission::QueueTooLong;
        }
        let has_reserve = in_flight + RESERVE * u64::from(traffic.size()) + MAX_DATAGRAM as u64 <= window;
        if has_reserve { BulkAdmission::Admitted } else { BulkAdmission::WindowFull }
    }
}
