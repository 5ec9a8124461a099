//! Which minutes are believed: a wall clock may be wrong for a while.
//!
//! Seen from next year everything is old, so a clock that is wrong for a minute could have everything deleted. But a lobby that
//! was switched off for months, or a machine that slept, takes the same step ahead, and at first nobody can tell which it is.
//! So the minutes after a step are recorded, and nothing is deleted until there are enough of them. A clock that comes back into
//! the time that was skipped says that the step was wrong: then what was recorded after it is taken back.

use crate::UnixSeconds;

/// A longer step is worth a doubt. What is wrong by less does no harm: neither is much deleted too early, nor is it long until
/// the time is there.
const STEP: i64 = 3_600;

/// After a step, time is believed when so many minutes were recorded.
const BELIEVED: u32 = 60;

/// After a sleep, clocks are often set right by a little. That says nothing against the step.
const CORRECTION: i64 = 300;

/// What is known of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// The last minute that was recorded; 0 if there is none.
    pub last: UnixSeconds,
    /// The last step ahead, if there was one.
    pub step: Option<Step>,
    /// For how many minutes in a row the clock has said that the step was wrong.
    against: u32,
}

/// The clock went ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The last minute before it.
    pub before: UnixSeconds,
    /// The first one after it.
    pub after: UnixSeconds,
    /// How many were recorded since.
    pub minutes: u32,
}

/// A minute that is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minute {
    /// Whatever was recorded after this is wrong.
    pub wrong_after: Option<UnixSeconds>,
}

impl Clock {
    /// A clock that goes on where a file ends.
    pub fn new(last: UnixSeconds, step: Option<Step>) -> Self {
        Self { last, step, against: 0 }
    }

    /// Whether what is old by this clock may be deleted.
    pub fn is_believed(&self) -> bool {
        self.step.is_none_or(|step| step.minutes >= BELIEVED)
    }

    /// Says whether a minute is to be recorded: not if it was already, or a later one was.
    pub fn handle_minute(&mut self, now: UnixSeconds) -> Option<Minute> {
        let wrong_after = self.wrong_step(now).map(|step| step.before);
        if let Some(before) = wrong_after {
            *self = Self::new(before, None);
        }
        if now <= self.last {
            return None;
        }
        if now - self.last > STEP {
            // A step out of a time that is in doubt is doubted together with the one that led there.
            let doubted = self.step.filter(|_| !self.is_believed());
            let step = doubted.unwrap_or(Step { before: self.last, after: now, minutes: 0 });
            self.step = Some(Step { after: now, ..step });
        }
        if let Some(step) = &mut self.step {
            step.minutes = step.minutes.saturating_add(1);
        }
        self.last = now;
        Some(Minute { wrong_after })
    }

    /// The last step, if it has turned out to be wrong. When it is believed already, as much has to be said against it as for it.
    fn wrong_step(&mut self, now: UnixSeconds) -> Option<Step> {
        let skipped = self.step.filter(|step| step.before < now && now < step.after - CORRECTION);
        self.against = if skipped.is_some() { self.against.saturating_add(1) } else { 0 };
        skipped.filter(|step| !self.is_believed() || self.against >= step.minutes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const START: UnixSeconds = 1_800_000_000;
    const YEAR: i64 = 365 * 86_400;

    /// A clock, and all that is recorded by it.
    #[derive(Default)]
    struct Record {
        clock: Clock,
        minutes: BTreeSet<UnixSeconds>,
    }

    impl Record {
        /// Looks once a minute, from one moment to another.
        fn run(&mut self, times: std::ops::Range<UnixSeconds>) {
            for time in times.step_by(60) {
                let Some(minute) = self.clock.handle_minute(time) else { continue };
                if let Some(wrong_after) = minute.wrong_after {
                    self.minutes.split_off(&(wrong_after + 1));
                }
                assert!(self.minutes.last().is_none_or(|last| *last < time), "minutes come in order");
                self.minutes.insert(time);
            }
        }

        fn count(&self, times: std::ops::Range<UnixSeconds>) -> usize {
            self.minutes.range(times).count()
        }
    }

    #[test]
    fn a_step_ahead_is_believed_after_an_hour_of_minutes_however_they_come() {
        let mut record = Record::default();
        record.run(START..START + 59 * 60);
        assert!(!record.clock.is_believed(), "it may have been wrong from the beginning");
        record.run(START + 59 * 60..START + 86_400);
        assert!(record.clock.is_believed());
        // The machine sleeps, and is awake for ten minutes a day.
        for day in 2..7 {
            record.run(START + day * 86_400..START + day * 86_400 + 600);
            assert!(!record.clock.is_believed());
        }
        record.run(START + 7 * 86_400..START + 7 * 86_400 + 600);
        assert!(record.clock.is_believed());
        assert_eq!(record.minutes.len(), 1_440 + 60);
    }

    #[test]
    fn a_pause_of_an_hour_is_no_step() {
        let mut record = Record { clock: Clock::new(START, None), ..Record::default() };
        record.run(START + 3_600..START + 3_660);
        assert_eq!(record.clock, Clock::new(START + 3_600, None));
    }

    #[test]
    fn a_small_correction_after_a_step_takes_nothing_back() {
        let mut record = Record::default();
        record.run(START..START + 86_400);
        record.run(START + 2 * 86_400..START + 2 * 86_400 + 600);
        record.run(START + 3 * 86_400..START + 3 * 86_400 + 60);
        record.run(START + 3 * 86_400 - 180..START + 3 * 86_400 + 600);
        assert_eq!(record.minutes.len(), 1_440 + 10 + 10);
    }

    #[test]
    fn who_believed_a_wrong_time_for_long_takes_as_long_to_believe_another() {
        let mut record = Record::default();
        record.run(START..START + 86_400);
        record.run(START + YEAR..START + YEAR + 36_000);
        assert!(record.clock.is_believed());
        let now = START + 2 * 86_400;
        record.run(now..now + 36_000 - 60);
        assert_eq!(record.count(now..now + 86_400), 0);
        record.run(now + 36_000 - 60..now + 40_000);
        assert_eq!(record.count(START + YEAR..UnixSeconds::MAX), 0, "nothing is left in the future");
        assert_eq!(record.count(START..START + 86_400), 1_440);
    }

    #[test]
    fn a_clock_that_begins_in_1970_costs_nothing_that_was() {
        let mut record = Record::default();
        record.run(START..START + 86_400);
        record.run(0..10 * 3_600);
        record.run(START + 86_400..START + 2 * 86_400);
        assert_eq!(record.count(0..UnixSeconds::MAX), 2_880);
    }

    proptest! {
        /// Whatever a clock says for less than an hour, nothing is deleted by it, and nothing is left of it.
        #[test]
        fn a_clock_that_is_wrong_for_less_than_an_hour_costs_what_was_seen_meanwhile(
            wrongs in prop::collection::vec((60..600_i64, 1..60_i64, 66..2 * YEAR / 60), 1..6),
        ) {
            let (mut record, mut now, mut wrong_minutes) = (Record::default(), START, 0);
            for (right, wrong, ahead) in wrongs {
                record.run(now..now + 60 * right);
                prop_assert!(record.clock.is_believed());
                now += 60 * right;
                for minute in 0..wrong {
                    let time = now + 60 * (ahead + minute);
                    record.run(time..time + 60);
                    prop_assert!(!record.clock.is_believed());
                }
                now += 60 * wrong;
                wrong_minutes += wrong;
            }
            record.run(now..now + 60);
            prop_assert!(record.clock.is_believed());
            prop_assert_eq!(record.minutes.len() as i64, (now + 60 - START) / 60 - wrong_minutes);
            prop_assert_eq!(record.minutes.last(), Some(&now));
        }
    }
}
