//! Keeps the queue of the path short while droppable messages share it with reliable ones.
//!
//! The congestion controller fills the queue of a bottleneck, as TCP does: fair, but then a position waits behind the
//! download of its own session. So while a droppable channel is in use, reliable messages are limited by delay
//! (as in LEDBAT, RFC 6817): when the queue delays by more than a target, the bytes in flight shrink so far that the queue
//! drains, and grow again after that. The congestion window applies as well.
//!
//! Not every delay is a queue that these messages have made: jitter, frames of the peer, and traffic of others or in the other
//! direction delay as well, and reliable messages that back off for those would starve without any gain. What remains of a delay
//! although the bytes in flight have shrunk is not theirs.

use super::droppable_traffic::DroppableTraffic;
use crate::Connection;
use rallypoint_wire::session::MAX_DATAGRAM;
use std::time::{Duration, Instant};

/// Queueing delay above which reliable messages back off: an eighth of the path's delay within these bounds, since on a short path
/// a short queue matters as well; and the time that one of their datagrams takes, within the upper bound.
const MIN_TARGET: Duration = Duration::from_millis(1);
const MAX_TARGET: Duration = Duration::from_millis(5);
const TARGET_SHARE: u32 = 8;

/// Half of the variation of the round-trip time is not taken as a queue, up to this share of the path's delay.
const MAX_JITTER_SHARE: u32 = 32;

/// Share of the bytes in flight that remains after that, at most: less than the path holds, so that the queue drains and its empty
/// delay can be measured.
const DECREASE: f64 = 0.8;

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

/// Number of datagrams with droppable messages for which reliable ones leave room in the congestion window.
const RESERVE: u64 = 2;

/// Round trips after a reduction from and until which the delay is measured that remains: what was sent before it has arrived.
const DRAINED_FROM: f64 = 1.25;
const DRAINED_UNTIL: f64 = 2.25;

/// Share of what the path holds at the highest rate of the last seconds to which the bytes in flight shrink at most: then reliable
/// messages have no queue, whatever else delays.
const FLOOR_SHARE: f64 = 0.75;
const PEAK_INTERVAL: Duration = Duration::from_secs(2);

/// With a delay above this many times that of the path, it has become slower, and that rate is not to be had any more.
const MAX_FLOOR_DELAY: u32 = 2;

/// Share of the path's delay up to which a delay is that of others: if it is that of this session after all, it does little harm.
const MAX_FOREIGN_SHARE: u32 = 2;

/// How long it counts: it may have been a part of their own queue.
const FOREIGN_VALID: Duration = Duration::from_secs(5);

/// Time in which a delay of others that has become shorter is forgotten.
const FOREIGN_DECAY: Duration = Duration::from_secs(1);

/// Whether a reliable message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReliableAdmission {
    Admitted,
    /// The congestion window has room only for droppable messages: it has to grow.
    WindowFull,
    /// More would make the queue of the path too long.
    QueueTooLong,
}

/// Limits reliable messages by delay, while it is needed.
#[derive(Debug, Default)]
pub(super) struct ReliableLimit {
    /// Maximum number of bytes in flight.
    limit: Option<f64>,
    /// Whether there was a queue: the capacity of the path is known.
    has_found_queue: bool,
    reduced_at: Option<Instant>,
    grown_at: Option<Instant>,
    /// The measurement after the last reduction.
    drained: Option<Drained>,
    /// The delay that reliable messages of this session do not cause.
    foreign: Duration,
    foreign_since: Option<Instant>,
    /// The highest rates in bytes per second in the current [`PEAK_INTERVAL`] and the one before, and the beginning of the current.
    peaks: [f64; 2],
    peak_since: Option<Instant>,
}

/// A measurement of the delay that remains although the bytes in flight have shrunk.
#[derive(Clone, Copy, Debug)]
struct Drained {
    from: Instant,
    until: Instant,
    /// Sum and number of the delays that were measured.
    sum: Duration,
    count: u32,
    /// The delay before.
    before: Duration,
    /// Whether the bytes in flight have shrunk so far that nothing of them waits.
    is_valid: bool,
}

impl ReliableLimit {
    /// Adapts the limit to the measured delay.
    pub fn update(&mut self, now: Instant, connection: &Connection, traffic: &DroppableTraffic) {
        if !traffic.is_active() {
            *self = Self::default();
            return;
        }
        let rtt = connection.smoothed_rtt();
        let elapsed = self.grown_at.replace(now).map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let base = connection.base_rtt();
        let measured = connection.queue_delay();
        let is_measuring = self.measure_foreign(now, elapsed, base, measured);
        let queue = measured.saturating_sub(self.foreign);
        let used = connection.in_flight() as f64;
        self.measure_rate(now, used / rtt.as_secs_f64().max(0.001));
        // The time that a full datagram takes on a path that is in use.
        let datagram = rtt.mul_f64(MAX_DATAGRAM as f64 / used.max(MAX_DATAGRAM as f64));
        let target = ((base / TARGET_SHARE).max(MIN_TARGET) + datagram).min(MAX_TARGET);
        // The peer is probably polled as often.
        let jitter = (connection.rtt_variation() / 2).min(base / MAX_JITTER_SHARE);
        if queue > target + jitter.max(connection.poll_interval() / 2) {
            // While the queue drains, only one that is longer than before is a reason to shrink further.
            let is_draining = self.drained.is_some_and(|drained| measured <= drained.before);
            if !is_draining && self.reduced_at.is_none_or(|at| now >= at + rtt) {
                self.reduced_at = Some(now);
                self.has_found_queue = true;
                // A long queue, as after a slow start, is left at once.
                let drained = base.as_secs_f64() / (base + queue).as_secs_f64().max(0.001);
                let reduced = self.limit.map_or(used, |limit| limit.min(used)) * DECREASE.min(drained);
                let is_slower = measured > MAX_FLOOR_DELAY * base;
                let peak = if is_slower { 0.0 } else { self.peak_rate() };
                let floor = FLOOR_SHARE * peak * (base + self.foreign).as_secs_f64();
                self.limit = Some(reduced.max(floor.min(used)).max(MIN_LIMIT));
                self.drained = Some(Drained {
                    from: now + rtt.mul_f64(DRAINED_FROM),
                    until: now + rtt.mul_f64(DRAINED_UNTIL),
                    sum: Duration::ZERO,
                    count: 0,
                    before: measured,
                    is_valid: reduced >= floor,
                });
            }
        } else if !is_measuring {
            let limit = self.limit.get_or_insert(used.max(START));
            let rounds = elapsed.as_secs_f64() / rtt.as_secs_f64().max(0.001);
            let share = if self.has_found_queue { GROWTH } else { START_GROWTH };
            let growth = (*limit * share).max(MIN_GROWTH) * rounds.min(1.0);
            // Above the window it does not keep that from growing.
            *limit = (*limit + growth).min(connection.window() as f64 * (1.0 + share));
        }
    }

    fn measure_rate(&mut self, now: Instant, rate: f64) {
        if self.peak_since.is_none_or(|since| now >= since + PEAK_INTERVAL) {
            self.peak_since = Some(now);
            self.peaks = [0.0, self.peaks[0]];
        }
        self.peaks[0] = self.peaks[0].max(rate);
    }

    fn peak_rate(&self) -> f64 {
        self.peaks[0].max(self.peaks[1])
    }

    /// Measures the delay that reliable messages of this session do not cause. Returns whether it is about to do so.
    fn measure_foreign(&mut self, now: Instant, elapsed: Duration, base: Duration, measured: Duration) -> bool {
        let Some(drained) = &mut self.drained else {
            if self.foreign_since.is_some_and(|since| now >= since + FOREIGN_VALID) {
                self.foreign = Duration::ZERO;
            }
            let excess = self.foreign.saturating_sub(measured);
            self.foreign -= excess.mul_f64((elapsed.as_secs_f64() / FOREIGN_DECAY.as_secs_f64()).min(1.0));
            return false;
        };
        if now >= drained.from {
            drained.sum += measured;
            drained.count += 1;
        }
        if now >= drained.until {
            if drained.is_valid {
                self.foreign = (drained.sum / drained.count.max(1)).min(base / MAX_FOREIGN_SHARE);
                self.foreign_since = Some(now);
            }
            self.drained = None;
        }
        self.drained.is_some()
    }

    /// Whether a reliable message may be sent, with this many bytes in flight.
    pub fn check(&self, in_flight: u64, window: u64, traffic: &DroppableTraffic) -> ReliableAdmission {
        if in_flight == 0 || !traffic.is_active() {
            return ReliableAdmission::Admitted;
        }
        let next = (in_flight + MAX_DATAGRAM as u64) as f64;
        if self.limit.is_some_and(|limit| next > limit && limit < window as f64) {
            return ReliableAdmission::QueueTooLong;
        }
        let has_reserve = in_flight + RESERVE * u64::from(traffic.size()) + MAX_DATAGRAM as u64 <= window;
        if has_reserve { ReliableAdmission::Admitted } else { ReliableAdmission::WindowFull }
    }
}
