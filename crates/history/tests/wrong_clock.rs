//! A clock that is wrong for a while deletes no earlier rows, and leaves no rows in the future.

use crate::common;

use common::*;
use rallypoint_history::{History, HistoryReader, Resolution, Subject, UnixSeconds};

const YEAR: UnixSeconds = 365 * DAY;

/// Records an observation per minute.
fn run(history: &History, from: UnixSeconds, minutes: i64, rows: &[(u8, u16)]) {
    (0..minutes).for_each(|minute| record(history, from + 60 * minute, rows));
}

/// Number of recorded minutes.
fn known(reader: &HistoryReader, from: UnixSeconds, until: UnixSeconds, resolution: Resolution) -> u32 {
    let series = reader.series(&Subject::Total, from..until, resolution).unwrap();
    series.points.iter().map(|point| point.up).sum()
}

#[test]
fn a_year_ahead_for_some_minutes_deletes_nothing_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::start(options(&folder)).unwrap();
    run(&history, START, 90, &[(1, 3)]);
    let now = START + 90 * 60;
    run(&history, now + YEAR, 20, &[(1, 3), (2, 9)]);
    let reader = history.reader();
    assert_eq!(known(&reader, START, now, Resolution::Minute), 90, "it may be wrong");
    assert_eq!(known(&reader, now + YEAR, now + YEAR + HOUR, Resolution::Hour), 20, "it may be right");
    // Also if the program is restarted in the meantime.
    drop((reader, history));
    history = History::start(options(&folder)).unwrap();
    run(&history, now + YEAR + 1_200, 20, &[(1, 3), (2, 9)]);

    run(&history, now + 2_400, 60, &[(1, 3), (2, 4)]);
    let reader = history.reader();
    let later = now + 2_400 + 60 * 60;
    for resolution in [Resolution::Minute, Resolution::Hour] {
        assert_eq!(known(&reader, START, START + DAY, resolution), 150);
    }
    assert_eq!(known(&reader, START, now + 2 * YEAR, Resolution::Day), 150);
    for number in [1, 2] {
        let summary = reader.summary(&server(number), later).unwrap().unwrap();
        let times = [summary.first, summary.peak.unwrap().time, summary.last];
        assert!(times.is_sorted() && times[2] == later - 60, "{times:?}");
        assert!(reader.events(&server(number), 100, None).unwrap().iter().all(|event| event.time <= later));
    }
    let two = reader.summary(&server(2), later).unwrap().unwrap();
    assert_eq!((two.first, two.peak.unwrap().players), (now + 2_400, 9));
    assert!(reader.stats().is_writing);
}

#[test]
fn subjects_recorded_by_a_clock_that_was_wrong_from_the_start_are_dated_now() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    run(&history, START + YEAR, 10, &[(1, 3)]);
    // It takes as many minutes to refute the first ones as there are of them.
    run(&history, START, 20, &[(2, 4)]);
    let reader = history.reader();
    let one = reader.summary(&server(1), START + 1_200).unwrap().unwrap();
    assert_eq!([one.first, one.last, one.peak.unwrap().time], [START + 540; 3]);
    assert_eq!(known(&reader, 0, START + 2 * YEAR, Resolution::Day), 11);
}

#[test]
fn a_lobby_that_was_off_for_months_records_at_once_and_deletes_an_hour_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::start(options(&folder)).unwrap();
    run(&history, START, 90, &[(1, 3)]);
    history.finish();
    history = History::start(options(&folder)).unwrap();
    let now = START + 100 * DAY;
    run(&history, now, 59, &[(1, 3)]);
    let reader = history.reader();
    assert_eq!(known(&reader, now, now + HOUR, Resolution::Minute), 59);
    assert_eq!(known(&reader, START, START + DAY, Resolution::Minute), 90);
    run(&history, now + 59 * 60, 1, &[(1, 3)]);
    assert_eq!(known(&reader, START, START + DAY, Resolution::Minute), 0);
    assert_eq!(known(&reader, START, START + DAY, Resolution::Day), 90);
    assert_eq!(known(&reader, now, now + HOUR, Resolution::Minute), 60);
}

#[test]
fn a_clock_that_was_wrong_for_hours_costs_minutes_but_not_days() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    run(&history, START, 90, &[(1, 3)]);
    run(&history, START + YEAR, 180, &[(1, 3)]);
    let now = START + 300 * 60;
    run(&history, now, 179, &[(1, 3)]);
    assert!(!history.reader().stats().is_writing, "the statistics show that nothing is recorded");
    run(&history, now + 179 * 60, 60, &[(1, 3)]);
    let reader = history.reader();
    assert!(reader.stats().is_writing);
    assert_eq!(known(&reader, START, now + 2 * YEAR, Resolution::Day), 90 + 60);
    assert_eq!(known(&reader, now, now + DAY, Resolution::Minute), 60);
}
