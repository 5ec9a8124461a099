//! Rates and budgets, and the arithmetic of a token bucket.

use crate::Unit;
use std::{fmt, time::Duration};

/// The rate of a token bucket: it holds at most `burst` tokens, and is refilled with `count` tokens per `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of packets or bytes that may pass per [`per`](Self::per), in the long run. At least 1.
    pub count: u64,
    /// Period in which [`count`](Self::count) may pass. From 1 ns to a day.
    pub per: Duration,
    /// Number of packets or bytes that may pass at once after a quiet time. At least 1, and it must be refilled within a day.
    /// A datagram larger than a burst in bytes never passes.
    pub burst: u64,
}

/// The rates at which one source, one network and all sources together may send or receive. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Limit of datagrams.
    pub packets: Option<Rate>,
    /// Limit of payload bytes.
    pub bytes: Option<Rate>,
}

/// A field of a [`Rate`] that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// [`Rate::count`] is 0.
    ZeroCount,
    /// [`Rate::burst`] is 0.
    ZeroBurst,
    /// [`Rate::per`] is 0 or longer than a day.
    Period,
    /// [`Rate::burst`] takes longer than a day to refill.
    SlowRefill,
}

/// Maximum of [`Rate::per`], and maximum time in which a bucket refills: a source that is told to retry later should be able
/// to wait for it.
const MAX_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

impl Rate {
    /// `count` per second.
    pub const fn per_second(count: u64, burst: u64) -> Self {
        Self { count, per: Duration::from_secs(1), burst }
    }

    /// `count` per minute.
    pub const fn per_minute(count: u64, burst: u64) -> Self {
        Self { count, per: Duration::from_secs(60), burst }
    }

    /// Checks that every field is in its range.
    ///
    /// # Errors
    /// The first field that is not.
    pub fn validate(&self) -> Result<(), RateError> {
        if self.count == 0 {
            return Err(RateError::ZeroCount);
        }
        if self.burst == 0 {
            return Err(RateError::ZeroBurst);
        }
        if self.per.is_zero() || self.per > MAX_PERIOD {
            return Err(RateError::Period);
        }
        if u128::from(self.burst) * self.per.as_nanos() / u128::from(self.count) > MAX_PERIOD.as_nanos() {
            return Err(RateError::SlowRefill);
        }
        Ok(())
    }
}

impl Budget {
    /// No limit at all.
    pub const UNLIMITED: Self = Self { packets: None, bytes: None };
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroCount => "a rate of 0 lets nothing through: use at least 1, or a longer period",
            Self::ZeroBurst => "a burst of 0 lets nothing through: use at least 1",
            Self::Period => "the period must be longer than 0 and at most a day",
            Self::SlowRefill => "the burst takes longer than a day to refill: lower it or raise the rate",
        })
    }
}

impl std::error::Error for RateError {}

/// The parameters of a token bucket, made from a [`Rate`]. The state of a bucket is one number: the time, in nanoseconds, at
/// which it will be full again (GCRA). So a bucket that was never used is full, there is nothing to do while time passes, and
/// no precision is lost, however often the bucket is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketParams {
    /// Time in which one token is refilled, in 2^-16 ns. 0 is no limit.
    interval: u64,
    /// Time in which an empty bucket becomes full, in ns.
    depth: u64,
}

impl BucketParams {
    /// Uses the nearest valid values of a rate that [`Rate::validate`] rejects.
    pub fn new(rate: Option<Rate>) -> Self {
        let Some(Rate { count, per, burst }) = rate else {
            return Self { interval: 0, depth: 0 };
        };
        let per = per.clamp(Duration::from_nanos(1), MAX_PERIOD).as_nanos() as u64;
        let interval = ((u128::from(per) << 16) / u128::from(count.max(1))).max(1) as u64;
        let depth = scaled(interval, burst.max(1)).min(MAX_PERIOD.as_nanos() as u64);
        Self { interval, depth }
    }

    /// When the bucket is full again if `amount` is taken now; `None` if that would leave it with less than `spare`, which is
    /// a refill time in ns.
    pub fn take(&self, full_at: u64, now: u64, amount: u64, spare: u64) -> Option<u64> {
        let missing = full_at.saturating_sub(now).saturating_add(self.cost(amount));
        (missing <= self.depth - spare.min(self.depth)).then(|| now.saturating_add(missing))
    }

    /// Refill time of an amount, in ns. It is rounded down, so that the parts of a burst never cost more than the burst.
    pub fn cost(&self, amount: u64) -> u64 {
        scaled(self.interval, amount)
    }

    pub fn depth(&self) -> u64 {
        self.depth
    }

    /// Number of tokens in the bucket, and time in ns until there is at least one.
    fn level(&self, full_at: u64, now: u64) -> (u64, u64) {
        let missing = full_at.saturating_sub(now);
        let filled = u128::from(self.depth.saturating_sub(missing)) << 16;
        let tokens = filled.checked_div(self.interval.into()).unwrap_or(u128::MAX);
        let wait = missing.saturating_add(self.cost(1)).saturating_sub(self.depth);
        (u64::try_from(tokens).unwrap_or(u64::MAX), wait)
    }
}

/// The parameters of the two buckets of a [`Budget`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetParams {
    pub packets: BucketParams,
    pub bytes: BucketParams,
}

/// The state of a bucket for packets and of one for bytes: when each will be full again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BucketStates {
    packets: u64,
    bytes: u64,
}

impl BudgetParams {
    pub fn new(budget: Budget) -> Self {
        Self { packets: BucketParams::new(budget.packets), bytes: BucketParams::new(budget.bytes) }
    }

    /// Takes one packet of this size; `reserved` percent of each bucket must stay in it. Fails with the unit that is exceeded.
    pub fn take(&self, buckets: BucketStates, now: u64, bytes: u64, reserved: u64) -> Result<BucketStates, Unit> {
        let spare = |params: BucketParams| params.depth / 100 * reserved;
        Ok(BucketStates {
            packets: self.packets.take(buckets.packets, now, 1, spare(self.packets)).ok_or(Unit::Packets)?,
            bytes: self.bytes.take(buckets.bytes, now, bytes, spare(self.bytes)).ok_or(Unit::Bytes)?,
        })
    }

    /// Number of packets that may pass now, and time in ns until there is at least one.
    pub fn packets_remaining(&self, buckets: BucketStates, now: u64) -> (u64, u64) {
        self.packets.level(buckets.packets, now)
    }

    /// Adapts a state to these parameters after a change: a bucket cannot be more than empty.
    pub fn adapt(&self, buckets: BucketStates, now: u64) -> BucketStates {
        BucketStates {
            packets: buckets.packets.min(now.saturating_add(self.packets.depth)),
            bytes: buckets.bytes.min(now.saturating_add(self.bytes.depth)),
        }
    }
}

impl BucketStates {
    /// When both buckets are full again.
    pub fn full_at(&self) -> u64 {
        self.packets.max(self.bytes)
    }

    /// Marks the state as used now.
    pub fn touch(&mut self, now: u64) {
        self.packets = self.packets.max(now);
    }
}

/// Duration of a number of intervals (in 2^-16 ns), in ns.
fn scaled(interval: u64, times: u64) -> u64 {
    u64::try_from((u128::from(interval) * u128::from(times)) >> 16).unwrap_or(u64::MAX)
}
