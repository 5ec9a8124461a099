//! When a copy is written.

use std::time::{Duration, Instant};

/// Interval at which a list that does not change is written again: the time in a copy is then, to the minute, when its lobby
/// was last alive.
const REFRESH: Duration = Duration::from_secs(60);

/// How long an empty list does not replace the copy of an earlier run: servers that were listed register again within that time,
/// also if the saved list was lost.
const EMPTY_START: Duration = Duration::from_secs(90);

/// Minimum time after a failed attempt.
const RETRY: Duration = Duration::from_secs(10);

/// The part of the time (a tenth) that writing may take: a list of a hundred thousand servers takes seconds.
const MAX_LOAD: u32 = 10;

/// Decides when a copy is written: after each change, but not too often, and now and then without a change.
#[derive(Debug)]
pub(super) struct ExportSchedule {
    interval: Duration,
    not_before: Instant,
    /// The version of the table that was written last.
    written: Option<u64>,
    refresh_at: Instant,
    empty_from: Instant,
}

impl ExportSchedule {
    /// `has_copy`: whether there is a copy of an earlier run.
    pub fn new(interval: Duration, now: Instant, has_copy: bool) -> Self {
        let empty_from = if has_copy { now + EMPTY_START } else { now };
        Self { interval, not_before: now, written: None, refresh_at: now, empty_from }
    }

    /// Whether a copy of the table with this version has to be written now.
    pub fn is_due(&self, now: Instant, version: u64, is_empty: bool) -> bool {
        if now < self.not_before || (is_empty && self.written.is_none() && now < self.empty_from) {
            return false;
        }
        self.written != Some(version) || now >= self.refresh_at
    }

    /// Ends the waiting time: only a change decides whether a last copy is written.
    pub fn finish(&mut self, now: Instant) {
        self.not_before = self.not_before.min(now);
    }

    /// `is_empty`: the list had no servers. The first servers do not wait for the interval.
    pub fn handle_written(&mut self, started: Instant, finished: Instant, version: u64, is_empty: bool) {
        let cost = finished.saturating_duration_since(started);
        let interval = if is_empty { Duration::ZERO } else { self.interval };
        self.written = Some(version);
        self.not_before = started + interval.max(cost.saturating_mul(MAX_LOAD));
        self.refresh_at = started + REFRESH;
    }

    pub fn handle_failure(&mut self, now: Instant) {
        self.not_before = now + self.interval.max(RETRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn written_at(start: Instant, cost: Duration) -> ExportSchedule {
        let mut schedule = ExportSchedule::new(5 * S, start, true);
        assert!(schedule.is_due(start, 1, false), "the first copy is written at once");
        schedule.handle_written(start, start + cost, 1, false);
        schedule
    }

    #[test]
    fn a_change_is_written_after_the_interval() {
        let start = Instant::now();
        let schedule = written_at(start, S / 10);
        assert!(!schedule.is_due(start + 4 * S, 2, false), "not more often");
        assert!(schedule.is_due(start + 5 * S, 2, false));
        assert!(!schedule.is_due(start + 5 * S, 1, false), "nothing has changed");
    }

    #[test]
    fn an_unchanged_list_is_written_every_minute() {
        let start = Instant::now();
        let schedule = written_at(start, S / 10);
        assert!(!schedule.is_due(start + 59 * S, 1, false));
        assert!(schedule.is_due(start + 60 * S, 1, false));
    }

    #[test]
    fn writing_takes_at_most_a_tenth_of_the_time() {
        let start = Instant::now();
        let schedule = written_at(start, 3 * S);
        assert!(!schedule.is_due(start + 29 * S, 2, false));
        assert!(schedule.is_due(start + 30 * S, 2, false));
    }

    #[test]
    fn a_failure_is_retried_later() {
        let start = Instant::now();
        let mut schedule = ExportSchedule::new(5 * S, start, true);
        schedule.handle_failure(start);
        assert!(!schedule.is_due(start + 9 * S, 1, false));
        assert!(schedule.is_due(start + 10 * S, 1, false), "nothing has changed since, but nothing was written");
    }

    #[test]
    fn an_empty_list_does_not_replace_a_copy_at_the_start() {
        let start = Instant::now();
        let schedule = ExportSchedule::new(5 * S, start, true);
        assert!(!schedule.is_due(start + 89 * S, 3, true));
        assert!(schedule.is_due(start + S, 3, false), "servers are back");
        assert!(schedule.is_due(start + 90 * S, 3, true), "there are really none");
        let running = written_at(start, S / 10);
        assert!(running.is_due(start + 5 * S, 2, true), "a list that becomes empty later is written");
    }

    #[test]
    fn an_empty_list_is_written_at_once_if_there_is_no_copy() {
        let start = Instant::now();
        let mut schedule = ExportSchedule::new(5 * S, start, false);
        assert!(schedule.is_due(start, 3, true));
        schedule.handle_written(start, start + S / 20, 3, true);
        assert!(schedule.is_due(start + S, 4, false), "the first server does not wait");
    }

    #[test]
    fn the_last_copy_does_not_wait() {
        let start = Instant::now();
        let mut schedule = written_at(start, S);
        schedule.finish(start + S);
        assert!(schedule.is_due(start + S, 2, false));
        assert!(!schedule.is_due(start + S, 1, false), "it is written already");
    }
}
