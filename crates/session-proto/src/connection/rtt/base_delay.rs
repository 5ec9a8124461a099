//! The delay of the path without a queue.

use crate::connection::ack_effect::RepeatedAck;
use std::time::{Duration, Instant};

/// How long a measured minimum stays valid. Paths change, and a full queue must not hide the true delay forever.
pub(super) const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

/// How much the path's delay may grow per [`MIN_RTT_WINDOW`] in which nothing was faster: 1/64. Several flows can keep a queue
/// full for minutes, and none of them sees the empty path in that time.
const BASE_DRIFT: u32 = 64;

/// How many times the path's delay the fastest round trip of a [`MIN_RTT_WINDOW`] can take.
const MAX_BASE_RATIO: u32 = 4;

/// A sample that lowers the path's delay by more than this share, 1/16, may turn out to be forged.
const MAX_UNDOUBTED: u32 = 16;

/// Time within which such a sample may turn out to be forged.
const DOUBT_TIME: Duration = Duration::from_secs(1);

/// The same in round trips, where these take long.
const DOUBT_ROUND_TRIPS: u32 = 4;

/// Estimates the delay of the path without a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BaseDelay {
    base: Option<Base>,
}

#[derive(Clone, Copy, Debug)]
struct Base {
    delay: Duration,
    /// The smallest sample since a time.
    latest: Duration,
    since: Instant,
    /// The delay before a sample lowered it by more than `MAX_UNDOUBTED`, and the time of that.
    before: Option<Duration>,
    lowered_at: Instant,
}

impl Base {
    fn new(now: Instant, delay: Duration) -> Self {
        Self { delay, latest: delay, since: now, before: None, lowered_at: now }
    }
}

impl BaseDelay {
    /// The delay, if anything was measured on this path.
    pub fn delay(&self) -> Option<Duration> {
        self.base.map(|base| base.delay)
    }

    pub fn add(&mut self, now: Instant, rtt: Duration) {
        let base = self.base.get_or_insert(Base::new(now, rtt));
        base.latest = base.latest.min(rtt);
        if rtt < base.delay - base.delay / MAX_UNDOUBTED {
            if base.before.is_none() || now.saturating_duration_since(base.lowered_at) > DOUBT_TIME {
                base.before = Some(base.delay);
            }
            base.lowered_at = now;
        }
        base.delay = base.delay.min(rtt);
        if now.saturating_duration_since(base.since) > MIN_RTT_WINDOW {
            // A delay far below all samples of a whole window was measured on another path, or was forged.
            base.delay = base.latest.min((base.delay + base.delay / BASE_DRIFT).max(base.latest / MAX_BASE_RATIO));
            base.latest = rtt;
            base.since = now;
        }
    }

    /// The first of two acks of a message was forged. If it has lowered the delay, that is undone, and the new delay is returned.
    pub fn on_forged_sample(&mut self, now: Instant, acks: RepeatedAck) -> Option<Duration> {
        let base = self.base.as_mut()?;
        // The second ack may be forged as well, so the delay never becomes longer than it was.
        let before = base.before.filter(|before| base.delay < *before)?;
        let doubt = DOUBT_TIME.max(DOUBT_ROUND_TRIPS * before);
        if now.saturating_duration_since(base.lowered_at) > doubt || acks.first > base.delay * 9 / 8 {
            return None;
        }
        base.delay = acks.second.min(before);
        base.latest = base.delay;
        base.since = now;
        Some(base.delay)
    }

    /// Replaces a delay below `floor` by `delay`. Returns whether it did.
    pub fn raise(&mut self, now: Instant, floor: Duration, delay: Duration) -> bool {
        let base = self.base.as_mut().filter(|base| base.delay < floor && delay >= floor);
        let is_raised = base.is_some();
        if let Some(base) = base {
            *base = Base::new(now, delay);
        }
        is_raised
    }
}
