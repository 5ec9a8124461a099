//! What is allowed: rates and budgets, and the arithmetic of one bucket.

use crate::Unit;
use std::{fmt, time::Duration};

/// A token bucket: it holds `burst` at most, and `count` flow back into it in every `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How much may pass in every [`per`](Self::per), in the long run. At least 1.
    pub count: u64,
    /// The time in which [`count`](Self::count) may pass. From 1 ns to a day.
    pub per: Duration,
    /// How much may pass at once after a quiet time. At least 1, and it must be back within a day. What is larger than
    /// this in one piece never passes: a burst in bytes has to have room for the largest datagram.
    pub burst: u64,
}

/// What one source, one network or all together may do. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Datagrams.
    pub packets: Option<Rate>,
    /// Bytes in them.
    pub bytes: Option<Rate>,
}

/// What is wrong with a [`Rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// [`Rate::count`] is 0.
    ZeroCount,
    /// [`Rate::burst`] is 0.
    ZeroBurst,
    /// [`Rate::per`] is 0 or longer than a day.
    Period,
    /// [`Rate::burst`] takes longer than a day to come back.
    SlowRefill,
}

/// The longest [`Rate::per`], and the longest time in which a bucket may fill: whoever used it up is told "later", and
/// that has to mean something to a person.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Rate {
    /// `count` in every second.
    pub const fn per_second(count: u64, burst: u64) -> Self {
        Self { count, per: Duration::from_secs(1), burst }
    }

    /// `count` in every minute.
    pub const fn per_minute(count: u64, burst: u64) -> Self {
        Self { count, per: Duration::from_secs(60), burst }
    }

    /// Whether every field is in its range.
    pub fn validate(&self) -> Result<(), RateError> {
        if self.count == 0 {
            return Err(RateError::ZeroCount);
        }
        if self.burst == 0 {
            return Err(RateError::ZeroBurst);
        }
        if self.per.is_zero() || self.per > LONGEST {
            return Err(RateError::Period);
        }
        if u128::from(self.burst) * self.per.as_nanos() / u128::from(self.count) > LONGEST.as_nanos() {
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
            Self::Period => "the period must be longer than nothing and at most a day",
            Self::SlowRefill => "the burst takes longer than a day to come back: lower it or raise the rate",
        })
    }
}

impl std::error::Error for RateError {}

/// A [`Rate`], ready for arithmetic. The state of a bucket is one number: the time, in nanoseconds, at which it will be
/// full again. That makes a bucket that was never touched a full one, costs no work while time passes, and loses
/// nothing to rounding, however often it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The time in which one token comes back, in 2^-16 ns. 0 is no limit.
    interval: u64,
    /// The time in which an empty bucket becomes full, in ns.
    depth: u64,
}

impl Pace {
    /// Takes what [`Rate::validate`] refuses as the nearest that it accepts.
    pub fn new(rate: Option<Rate>) -> Self {
        let Some(Rate { count, per, burst }) = rate else {
            return Self { interval: 0, depth: 0 };
        };
        let per = per.clamp(Duration::from_nanos(1), LONGEST).as_nanos() as u64;
        let interval = ((u128::from(per) << 16) / u128::from(count.max(1))).max(1) as u64;
        let depth = scaled(interval, burst.max(1)).min(LONGEST.as_nanos() as u64);
        Self { interval, depth }
    }

    /// When the bucket is full again if `amount` is taken now; `None` if that would leave it with less than `spare`,
    /// which is a time too.
    pub fn take(&self, full_at: u64, now: u64, amount: u64, spare: u64) -> Option<u64> {
        let missing = full_at.saturating_sub(now).saturating_add(self.cost(amount));
        (missing <= self.depth - spare.min(self.depth)).then(|| now.saturating_add(missing))
    }

    /// Rounded down, so that the parts of a burst never cost more than the burst.
    pub fn cost(&self, amount: u64) -> u64 {
        scaled(self.interval, amount)
    }

    pub fn depth(&self) -> u64 {
        self.depth
    }

    /// How many are in the bucket, and how long it takes until there is one.
    fn level(&self, full_at: u64, now: u64) -> (u64, u64) {
        let missing = full_at.saturating_sub(now);
        let there = u128::from(self.depth.saturating_sub(missing)) << 16;
        let left = there.checked_div(self.interval.into()).unwrap_or(u128::MAX);
        let wait = missing.saturating_add(self.cost(1)).saturating_sub(self.depth);
        (u64::try_from(left).unwrap_or(u64::MAX), wait)
    }
}

/// A [`Budget`], ready for arithmetic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paces {
    pub packets: Pace,
    pub bytes: Pace,
}

/// The state of a bucket for packets and one for bytes: when each will be full again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    packets: u64,
    bytes: u64,
}

impl Paces {
    pub fn new(budget: Budget) -> Self {
        Self { packets: Pace::new(budget.packets), bytes: Pace::new(budget.bytes) }
    }

    /// One packet is taken out of `meter`; `reserved` percent of the depth must stay in it.
    pub fn take(&self, meter: Meter, now: u64, bytes: u64, reserved: u64) -> Result<Meter, Unit> {
        let spare = |pace: Pace| pace.depth / 100 * reserved;
        Ok(Meter {
            packets: self.packets.take(meter.packets, now, 1, spare(self.packets)).ok_or(Unit::Packets)?,
            bytes: self.bytes.take(meter.bytes, now, bytes, spare(self.bytes)).ok_or(Unit::Bytes)?,
        })
    }

    /// How many packets are left, and how long it takes until there is one.
    pub fn packets_left(&self, meter: Meter, now: u64) -> (u64, u64) {
        self.packets.level(meter.packets, now)
    }

    /// The same meter after a change of paces, under which a bucket can't be more than empty.
    pub fn adopt(&self, meter: Meter, now: u64) -> Meter {
        Meter {
            packets: meter.packets.min(now.saturating_add(self.packets.depth)),
            bytes: meter.bytes.min(now.saturating_add(self.bytes.depth)),
        }
    }
}

impl Meter {
    /// When both buckets are full again.
    pub fn full_at(&self) -> u64 {
        self.packets.max(self.bytes)
    }

    /// Makes it a meter that was used now.
    pub fn touch(&mut self, now: u64) {
        self.packets = self.packets.max(now);
    }
}

/// A number of intervals (in 2^-16 ns), in ns.
fn scaled(interval: u64, times: u64) -> u64 {
    u64::try_from((u128::from(interval) * u128::from(times)) >> 16).unwrap_or(u64::MAX)
}
