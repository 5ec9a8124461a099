//! The current delay, by the smallest of the last samples.

use crate::connection::ack_bursts::AckBursts;
use std::time::{Duration, Instant};

/// Number of samples over which the smallest is taken as the current delay, twice that at most: fewer would mistake jitter for
/// a queue.
const RECENT_SAMPLES: u8 = 4;

/// Number of groups that they have to come from. The acks of a burst are a group: a peer that is polled once per frame acks all at
/// once what has waited for the frame, and only the last of it has hardly waited.
const RECENT_GROUPS: u8 = 2;

/// Number of samples by which a thin stream notices a queue early.
const LAST_SAMPLES: usize = 3;

/// The last samples on this path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentSamples {
    /// The smallest of the last complete [`RECENT_SAMPLES`], and of those since.
    minima: [Duration; 2],
    count: u8,
    groups: u8,
    /// The last samples, the newest at the end; zero before there are as many.
    last: [Duration; LAST_SAMPLES],
    bursts: AckBursts,
}

impl Default for RecentSamples {
    fn default() -> Self {
        Self {
            minima: [Duration::MAX; 2],
            count: 0,
            groups: 0,
            last: [Duration::ZERO; _],
            bursts: AckBursts::default(),
        }
    }
}

impl RecentSamples {
    /// Adds a sample: see [`RttEstimator::sample_burst`](super::RttEstimator::sample_burst). Returns the smallest of the last
    /// ones if they are complete.
    pub fn add(&mut self, now: Instant, rtt: Duration, longest: Duration, count: u32) -> Option<Duration> {
        let mut complete = None;
        if self.bursts.on_ack(now, rtt, longest, count) {
            if self.count >= RECENT_SAMPLES && self.groups >= RECENT_GROUPS {
                complete = Some(self.minima[1]);
                self.minima = [self.minima[1], Duration::MAX];
                self.count = 0;
                self.groups = 0;
            }
            self.groups = self.groups.saturating_add(1);
        }
        self.last.rotate_left(1);
        self.last[LAST_SAMPLES - 1] = rtt;
        self.minima[1] = self.minima[1].min(rtt);
        self.count = self.count.saturating_add(1);
        complete
    }

    /// The smallest of the last samples, if there are any.
    pub fn min(&self) -> Option<Duration> {
        let [before, now] = self.minima;
        Some(before.min(now)).filter(|min| *min != Duration::MAX)
    }

    /// The smallest of the last [`LAST_SAMPLES`], which show a queue sooner, and jitter as well.
    pub fn last_min(&self) -> Duration {
        self.last.iter().min().copied().unwrap_or_default()
    }

    /// How long the peer holds acks back until its next frame.
    pub fn hold_time(&self) -> Duration {
        self.bursts.hold_time()
    }
}
