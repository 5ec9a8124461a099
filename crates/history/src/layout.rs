//! The rows of the file by time and subject.

use crate::{Retention, UnixSeconds, subject::Key};

/// The resolution of a row of the table `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The minutes of an hour.
    Minutes = 0,
    /// The hours of a day.
    Hours = 1,
    /// 32 days.
    Days = 2,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Minutes, Self::Hours, Self::Days];

    /// Seconds per sample or sum.
    pub const fn step(self) -> i64 {
        match self {
            Self::Minutes => 60,
            Self::Hours => 3_600,
            Self::Days => 86_400,
        }
    }

    /// Number of samples or sums per row.
    pub const fn per_slot(self) -> i64 {
        match self {
            Self::Minutes => 60,
            Self::Hours => 24,
            Self::Days => 32,
        }
    }

    /// The row that contains a time.
    pub const fn slot(self, time: UnixSeconds) -> i64 {
        time.div_euclid(self.step() * self.per_slot())
    }

    /// The first row that is kept.
    pub const fn first_slot(self, now: UnixSeconds, retention: &Retention) -> i64 {
        let days = match self {
            Self::Minutes => retention.minutes,
            Self::Hours => retention.hours,
            Self::Days => retention.days,
        };
        self.slot(now - days as i64 * 86_400)
    }
}

pub(crate) const fn hour(time: UnixSeconds) -> i64 {
    time.div_euclid(3_600)
}

pub(crate) const fn part(key: Key) -> i64 {
    (key >> 8) as i64
}

/// The row of the table `fresh` for a minute and a key.
pub(crate) const fn fresh(time: UnixSeconds, key: Key) -> i64 {
    fresh_of_hour(hour(time)) | part(key) << 6 | time.div_euclid(60).rem_euclid(60)
}

/// The last hour that can be stored.
pub(crate) const LAST_HOUR: i64 = i64::MAX >> 30;

/// The first row of an hour; greater than any row of earlier hours.
pub(crate) const fn fresh_of_hour(hour: i64) -> i64 {
    hour << 30
}

/// The last row of an hour.
pub(crate) const fn last_fresh_of_hour(hour: i64) -> i64 {
    hour << 30 | 0x3fff_ffff
}

pub(crate) const fn hour_of_fresh(at: i64) -> i64 {
    at >> 30
}

pub(crate) const fn part_of_fresh(at: i64) -> i64 {
    at >> 6 & 0xff_ffff
}

/// The minute of the hour. It is less than 60 in a valid file, and is clamped in a damaged one.
pub(crate) const fn minute_of_fresh(at: i64) -> usize {
    let minute = (at & 0x3f) as usize;
    if minute < 60 { minute } else { 59 }
}
