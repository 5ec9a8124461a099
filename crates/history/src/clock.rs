//! Plausibility of the wall clock, which may be wrong for a while.
//!
//! To a clock that is a year ahead everything is old, so a clock that is wrong for one minute could cause everything to be
//! deleted. But the clock of a lobby that was switched off for months, or of a machine that was suspended, makes the same step
//! ahead, and at first the two cases cannot be told apart. So the minutes after a step are recorded, and nothing is deleted
//! until there are enough of them. A clock that returns into the skipped time shows that the step was wrong: then everything
//! recorded after it is deleted.

use crate::UnixSeconds;

/// Steps longer than this, in seconds, are suspect. A smaller error is harmless: little is deleted too early, and the time
/// is soon reached.
const STEP: i64 = 3_600;

/// Number of minutes that have to be recorded after a step before the clock is trusted.
const TRUSTED_AFTER: u32 = 60;

/// Corrections up to this many seconds are usual after a suspend, and are no evidence against the step.
const CORRECTION: i64 = 300;

/// The state of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// The last minute that was recorded; 0 if there is none.
    pub last: UnixSeconds,
    /// The last step ahead, if there was one.
    pub step: Option<Step>,
    /// Number of consecutive minutes in which the clock contradicted the step.
    against: u32,
}

/// A step of the clock ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The last minute before it.
    pub before: UnixSeconds,
    /// The first one after it.
    pub after: UnixSeconds,
    /// Number of minutes recorded since.
    pub minutes: u32,
}

/// A minute that should be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minute {
    /// Everything recorded after this time is wrong.
    pub wrong_after: Option<UnixSeconds>,
}

impl ClockState {
    /// A clock that continues where a file ends.
    pub fn new(last: UnixSeconds, step: Option<Step>) -> Self {
        Self { last, step, against: 0 }
    }

    /// Whether rows that are old by this clock may be deleted.
    pub fn is_trusted(&self) -> bool {
        self.step.is_none_or(|step| step.minutes >= TRUSTED_AFTER)
    }

    /// Decides whether a minute is recorded: not if it, or a later one, has been recorded already.
    pub fn handle_minute(&mut self, now: UnixSeconds) -> Option<Minute> {
        let wrong_after = self.wrong_step(now).map(|step| step.before);
        if let Some(before) = wrong_after {
            *self = Self::new(before, None);
        }
        if now <= self.last {
            return None;
        }
        if now - self.last > STEP {
            // A step from a doubted time is doubted together with the step that led there.
            let doubted = self.step.filter(|_| !self.is_trusted());
            let step = doubted.unwrap_or(Step { before: self.last, after: now, minutes: 0 });
            self.step = Some(Step { after: now, ..step });
        }
        if let Some(step) = &mut self.step {
            step.minutes = step.minutes.saturating_add(1);
        }
        self.last = now;
        Some(Minute { wrong_after })
    }

    /// The last step, if it has turned out to be wrong. Once it is trusted, this takes as many minutes against it as for it; and so
    /// it does for the first minutes of a file, before which there is nothing that would speak against them.
    fn wrong_step(&mut self, now: UnixSeconds) -> Option<Step> {
        let skipped = self.step.filter(|step| step.before < now && now < step.after - CORRECTION);
        self.against = if skipped.is_some() { self.against.saturating_add(1) } else { 0 };
        let is_doubted = |step: &Step| step.before > 0 && !self.is_trusted();
        skipped.filter(|step| is_doubted(step) || self.against >= step.minutes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const START: UnixSeconds = 1_800_000_000;
    const YEAR: i64 = 365 * 86_400;

    /// A clock and the minutes that are recorded by it.
    #[derive(Default)]
    struct Record {
        clock: ClockState,
        minutes: BTreeSet<UnixSeconds>,
    }

    impl Record {
        /// Handles every minute of a time range.
        fn run(&mut self, times: std::ops::Range<UnixSeconds>) {
            for time in times.step_by(60) {
                let Some(minute) = self.clock.handle_minute(time) else { continue };
                if let Some(wrong_after) = minute.wrong_after {
                    self.minutes.split_off(&(wrong_after + 1));
                }
                assert!(self.minutes.last().is_none_or(|last| *last < time), "minutes are in order");
                self.minutes.insert(time);
            }
        }

        fn count(&self, times: std::ops::Range<UnixSeconds>) -> usize {
            self.minutes.range(times).count()
        }
    }

    #[test]
    fn a_step_ahead_is_trusted_after_an_hour_of_recorded_minutes() {
        let mut record = Record::default();
        record.run(START..START + 59 * 60);
        assert!(!record.clock.is_trusted(), "it may have been wrong from the beginning");
        record.run(START + 59 * 60..START + 86_400);
        assert!(record.clock.is_trusted());
        // The machine is suspended except for ten minutes a day.
        for day in 2..7 {
            record.run(START + day * 86_400..START + day * 86_400 + 600);
            assert!(!record.clock.is_trusted());
        }
        record.run(START + 7 * 86_400..START + 7 * 86_400 + 600);
        assert!(record.clock.is_trusted());
        assert_eq!(record.minutes.len(), 1_440 + 60);
    }

    #[test]
    fn a_pause_of_an_hour_is_not_a_step() {
        let mut record = Record { clock: ClockState::new(START, None), ..Record::default() };
        record.run(START + 3_600..START + 3_660);
        assert_eq!(record.clock, ClockState::new(START + 3_600, None));
    }

    #[test]
    fn a_small_correction_after_a_step_deletes_nothing() {
        let mut record = Record::default();
        record.run(START..START + 86_400);
        record.run(START + 2 * 86_400..START + 2 * 86_400 + 600);
        record.run(START + 3 * 86_400..START + 3 * 86_400 + 60);
        record.run(START + 3 * 86_400 - 180..START + 3 * 86_400 + 600);
        assert_eq!(record.minutes.len(), 1_440 + 10 + 10);
    }

    #[test]
    fn a_wrong_time_that_was_trusted_for_long_takes_as_long_to_be_refuted() {
        let mut record = Record::default();
        record.run(START..START + 86_400);
        record.run(START + YEAR..START + YEAR + 36_000);
        assert!(record.clock.is_trusted());
        let now = START + 2 * 86_400;
        record.run(now..now + 36_000 - 60);
        assert_eq!(record.count(now..now + 86_400), 0);
        record.run(now + 36_000 - 60..now + 40_000);
        assert_eq!(record.count(START + YEAR..UnixSeconds::MAX), 0, "nothing is left in the future");
        assert_eq!(record.count(START..START + 86_400), 1_440);
    }

    #[test]
    fn a_clock_that_is_behind_for_a_while_costs_a_young_file_nothing() {
        let mut record = Record::default();
        record.run(START..START + 30 * 60);
        record.run(START - 86_400..START - 86_400 + 5 * 60);
        record.run(START + 35 * 60..START + 60 * 60);
        assert_eq!(record.minutes.len(), 30 + 25);
        // A file that begins with a wrong time takes as many minutes to be refuted as it has.
        let mut record = Record::default();
        record.run(START + YEAR..START + YEAR + 5 * 60);
        record.run(START..START + 60 * 60);
        assert_eq!((record.count(START + YEAR..UnixSeconds::MAX), record.minutes.len()), (0, 56));
    }

    #[test]
    fn a_clock_that_starts_in_1970_deletes_nothing() {
        let mut record = Record::default();
        record.run(START..START + 86_400);
        record.run(0..10 * 3_600);
        record.run(START + 86_400..START + 2 * 86_400);
        assert_eq!(record.count(0..UnixSeconds::MAX), 2_880);
    }

    proptest! {
        /// A clock that is wrong for less than an hour causes no deletions and leaves no rows.
        #[test]
        fn a_clock_that_is_wrong_for_less_than_an_hour_costs_only_those_minutes(
            wrongs in prop::collection::vec((60..600_i64, 1..60_i64, 66..2 * YEAR / 60), 1..6),
        ) {
            let mut record = Record::default();
            let mut now = START;
            let mut wrong_minutes = 0;
            for (right, wrong, ahead) in wrongs {
                record.run(now..now + 60 * right);
                prop_assert!(record.clock.is_trusted());
                now += 60 * right;
                for minute in 0..wrong {
                    let time = now + 60 * (ahead + minute);
                    record.run(time..time + 60);
                    prop_assert!(!record.clock.is_trusted());
                }
                now += 60 * wrong;
                wrong_minutes += wrong;
            }
            record.run(now..now + 60);
            prop_assert!(record.clock.is_trusted());
            prop_assert_eq!(record.minutes.len() as i64, (now + 60 - START) / 60 - wrong_minutes);
            prop_assert_eq!(record.minutes.last(), Some(&now));
        }
    }
}
