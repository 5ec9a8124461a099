//! How much the delay of the path varies.

use std::time::Duration;

/// Number of recent minima over which their range is taken, twice that at most.
const RANGE_COUNT: u8 = 8;

/// Largest variation of a delay that counts as constant.
const MAX_VARIATION: Duration = Duration::from_micros(500);

/// The same as a share of the path's delay, 1/256, where that is more.
const MAX_VARIATION_SHARE: u32 = 256;

/// Number of samples that have to agree before the delay counts as constant: the acks of about twelve messages.
const MIN_SAMPLES: u8 = 6;

/// The smallest and the largest of some delays.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: Duration,
    max: Duration,
}

impl Range {
    const EMPTY: Self = Self { min: Duration::MAX, max: Duration::ZERO };

    fn including(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn add(&mut self, delay: Duration) {
        *self = self.including(Self { min: delay, max: delay });
    }

    fn is_narrow(self, base: Duration) -> bool {
        self.max.saturating_sub(self.min) <= MAX_VARIATION.max(base / MAX_VARIATION_SHARE)
    }
}

/// Range of the delays on this path.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayRange {
    /// That of the last complete [`RANGE_COUNT`] recent minima.
    complete: Range,
    /// That of the `count` recent minima since.
    current: Range,
    count: u8,
    /// That of all samples.
    all: Range,
    /// Number of those, up to the largest value.
    samples: u8,
}

impl Default for DelayRange {
    fn default() -> Self {
        Self { complete: Range::EMPTY, current: Range::EMPTY, count: 0, all: Range::EMPTY, samples: 0 }
    }
}

impl DelayRange {
    pub fn add_sample(&mut self, rtt: Duration) {
        self.all.add(rtt);
        self.samples = self.samples.saturating_add(1);
    }

    /// Adds the smallest of the last samples.
    pub fn add_recent_min(&mut self, delay: Duration) {
        self.current.add(delay);
        self.count += 1;
        if self.count >= RANGE_COUNT {
            self.complete = self.current;
            self.current = Range::EMPTY;
            self.count = 0;
        }
    }

    /// Whether the recent minima hardly differ, if there are enough of them; `base` is the path's delay.
    pub fn is_constant(&self, base: Duration) -> Option<bool> {
        if self.complete.max.is_zero() && self.count < 2 {
            return None;
        }
        Some(self.complete.including(self.current).is_narrow(base))
    }

    /// Whether the samples hardly differ, few as they may be.
    pub fn is_constant_so_far(&self, base: Duration) -> bool {
        !self.all.max.is_zero() && self.all.is_narrow(base)
    }

    /// The same if there are enough of them that they do not agree by chance.
    pub fn is_constant_with_enough_samples(&self, base: Duration) -> bool {
        self.samples >= MIN_SAMPLES && self.is_constant_so_far(base)
    }
}
