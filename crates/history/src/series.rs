//! What graphs are drawn from.

use crate::{UnixSeconds, layout::Level, sample::Sum};
use std::ops::Range;

/// The most points that a series can have: a bound on what one question can cost.
const MAX_POINTS: i64 = 50_000;

/// How fine a series is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Minutes for up to two days, hours for up to 40, days for longer.
    #[default]
    Auto,
    /// A point per minute.
    Minute,
    /// A point per hour.
    Hour,
    /// A point per day (UTC).
    Day,
}

/// The points of a subject within some time. There is a point for each step, also where nothing is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// How many seconds a point is for.
    pub step: i64,
    /// In order, without a hole.
    pub points: Vec<Point>,
}

/// What is known of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When the step begins.
    pub time: UnixSeconds,
    /// In how many of its minutes somebody looked since the subject has a history. If in none, nothing is known: the
    /// program did not run, or it is too long ago.
    pub observed: u32,
    /// In how many of them the subject was listed.
    pub up: u32,
    /// How full it was while it was listed; nothing if it was not.
    pub players: Option<Players>,
}

/// How full a subject was while it was listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Players {
    /// The fewest players.
    pub min: u32,
    /// Players on average.
    pub avg: f64,
    /// The most players.
    pub max: u32,
    /// Bots on average.
    pub bots: f64,
    /// Slots on average.
    pub slots: f64,
    /// Servers on average: 1 for a server.
    pub servers: f64,
}

impl Resolution {
    /// All of them, by name.
    pub const NAMES: [(&str, Self); 4] =
        [("auto", Self::Auto), ("minute", Self::Minute), ("hour", Self::Hour), ("day", Self::Day)];

    /// Whether a time has more steps than a series can have points.
    #[must_use]
    pub fn is_too_fine(self, range: &Range<UnixSeconds>) -> bool {
        let steps = self.steps(range);
        steps.end.saturating_sub(steps.start) > MAX_POINTS
    }

    /// The steps of a time, which is rounded outwards, counted from 1970.
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
            // A little more than the days themselves, for whoever rounds outwards.
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

    /// The share of the time for which it was listed; nothing if nobody looked.
    #[must_use]
    pub fn up_share(&self) -> Option<f64> {
        (self.observed > 0).then(|| f64::from(self.up) / f64::from(self.observed))
    }
}
