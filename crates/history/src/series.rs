//! Time series.

use crate::{UnixSeconds, layout::Level, sample::Sum};
use std::ops::Range;

/// Maximum number of points of a series: a bound on the cost of one request.
const MAX_POINTS: i64 = 50_000;

/// The resolution of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Minutes for up to two days, hours for up to 40 days, days for longer ranges.
    #[default]
    Auto,
    /// A point per minute.
    Minute,
    /// A point per hour.
    Hour,
    /// A point per day (UTC).
    Day,
}

/// The points of a subject in a time range: one for each step, also where nothing is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Length of a step in seconds.
    pub step: i64,
    /// The points in order, without gaps.
    pub points: Vec<Point>,
}

/// The state of a subject in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The beginning of the step.
    pub time: UnixSeconds,
    /// Number of minutes of the step that were recorded since the history of the subject began. If it is 0, nothing is known:
    /// the program did not run, or the data has been deleted.
    pub observed: u32,
    /// Number of these minutes in which the subject was listed.
    pub up: u32,
    /// Players while the subject was listed; `None` if it was not.
    pub players: Option<Players>,
}

/// Players of a subject while it was listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Players {
    /// Minimum number of players.
    pub min: u32,
    /// Average number of players.
    pub avg: f64,
    /// Maximum number of players.
    pub max: u32,
    /// Average number of bots.
    pub bots: f64,
    /// Average number of slots.
    pub slots: f64,
    /// Average number of servers: 1 for a server.
    pub servers: f64,
}

impl Resolution {
    /// All resolutions with their names.
    pub const NAMES: [(&str, Self); 4] =
        [("auto", Self::Auto), ("minute", Self::Minute), ("hour", Self::Hour), ("day", Self::Day)];

    /// Whether a time range has more steps than a series can have points.
    #[must_use]
    pub fn is_too_fine(self, range: &Range<UnixSeconds>) -> bool {
        let steps = self.steps(range);
        steps.end.saturating_sub(steps.start) > MAX_POINTS
    }

    /// The steps of a time range, which is rounded outwards, counted from 1970.
    pub(crate) fn steps(self, range: &Range<UnixSeconds>) -> Range<i64> {
        let step = self.level(range).step();
        range.start.div_euclid(step)..range.end.saturating_add(step - 1).div_euclid(step)
    }

    pub(crate) fn level(self, range: &Range<UnixSeconds>) -> Level {
        const DAY: i64 = 86_400;
        match self {
            Self::Minute => Level::Minutes,
            Self::Hour => Level::Hours,
            Self::Day => Level::Days,
            // A little more than the days themselves, for ranges that were rounded outwards.
            Self::Auto => match range.end.saturating_sub(range.start) {
                ..=176_400 => Level::Minutes,
                length if length <= 41 * DAY => Level::Hours,
                _ => Level::Days,
            },
        }
    }
}

impl Point {
    pub(crate) fn new(time: UnixSeconds, sum: &Sum, observed: u32) -> Self {
        let average = |of: u64| of as f64 / f64::from(sum.up);
        let players = (sum.up > 0).then(|| Players {
            min: sum.min,
            avg: average(sum.players),
            max: sum.max,
            bots: average(sum.bots),
            slots: average(sum.slots),
            servers: average(sum.servers),
        });
        Self { time, observed: observed.max(sum.up), up: sum.up, players }
    }

    /// The fraction of the recorded minutes in which the subject was listed; `None` if there are none.
    #[must_use]
    pub fn up_share(&self) -> Option<f64> {
        (self.observed > 0).then(|| f64::from(self.up) / f64::from(self.observed))
    }
}
