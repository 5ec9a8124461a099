//! A clock that is wrong for a while costs nothing that was recorded before, and leaves nothing in the future.

mod common;

use common::*;
use rallypoint_history::{Handle, History, Resolution, Subject, UnixSeconds};

const YEAR: UnixSeconds = 365 * DAY;

/// Looks once a minute.
fn run(history: &History, from: UnixSeconds, minutes: i64, rows: &[(u8, u16)]) {
    (0..minutes).for_each(|minute| record(history, from + 60 * minute, rows));
}

/// For how many minutes the total is known.
fn known(handle: &Handle, from: UnixSeconds, until: UnixSeconds, resolution: Resolution) -> u32 {
    let series = handle.series(&Subject::Total, from..until, resolution).unwrap();
    series.points.iter().map(|point| point.up).sum()
}

#[test]
fn a_year_ahead_for_some_minutes_deletes_nothing_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::start(options(&folder)).unwrap();
    run(&history, START, 90, &[(1, 3)]);
    let now = START + 90 * 60;
    run(&history, now + YEAR, 20, &[(1, 3), (2, 9)]);
    let handle = history.handle();
    assert_eq!(known(&handle, START, now, Resolution::Minute), 90, "it may be wrong");
    assert_eq!(known(&handle, now + YEAR, now + YEAR + HOUR, Resolution::Hour), 20, "it may be right");
    // Also if the program is started again meanwhile.
    drop((handle, history));
    history = History::start(options(&folder)).unwrap();
    run(&history, now + YEAR + 1_200, 20, &[(1, 3), (2, 9)]);

    run(&history, now + 2_400, 60, &[(1, 3), (2, 4)]);
    let (handle, later) = (history.handle(), now + 2_400 + 60 * 60);
    for resolution in [Resolution::Minute, Resolution::Hour] {
        assert_eq!(known(&handle, START, START + DAY, resolution), 150);
    }
    assert_eq!(known(&handle, START, now + 2 * YEAR, Resolution::Day), 150);
    for number in [1, 2] {
        let summary = handle.summary(&server(number), later).unwrap().unwrap();
        let times = [summary.first, summary.peak.unwrap().time, summary.last];
        assert!(times.is_sorted() && times[2] == later - 60, "{times:?}");
        assert!(handle.events(&server(number), 100, None).unwrap().iter().all(|event| event.time <= later));
    }
    let two = handle.summary(&server(2), later).unwrap().unwrap();
    assert_eq!((two.first, two.peak.unwrap().players), (now + 2_400, 9));
    assert!(handle.stats().is_writing);
}

#[test]
fn a_clock_that_is_wrong_from_the_beginning_leaves_what_was_seen_as_of_now() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    run(&history, START + YEAR, 10, &[(1, 3)]);
    run(&history, START, 10, &[(2, 4)]);
    let handle = history.handle();
    let one = handle.summary(&server(1), START + 600).unwrap().unwrap();
    assert_eq!([one.first, one.last, one.peak.unwrap().time], [START; 3]);
    assert_eq!(known(&handle, 0, START + 2 * YEAR, Resolution::Day), 10);
}

#[test]
fn a_lobby_that_was_off_for_months_goes_on_at_once_and_deletes_an_hour_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::start(options(&folder)).unwrap();
    run(&history, START, 90, &[(1, 3)]);
    history.finish();
    history = History::start(options(&folder)).unwrap();
    let now = START + 100 * DAY;
    run(&history, now, 59, &[(1, 3)]);
    let handle = history.handle();
    assert_eq!(known(&handle, now, now + HOUR, Resolution::Minute), 59);
    assert_eq!(known(&handle, START, START + DAY, Resolution::Minute), 90);
    run(&history, now + 59 * 60, 1, &[(1, 3)]);
    assert_eq!(known(&handle, START, START + DAY, Resolution::Minute), 0);
    assert_eq!(known(&handle, START, START + DAY, Resolution::Day), 90);
    assert_eq!(known(&handle, now, now + HOUR, Resolution::Minute), 60);
}

#[test]
fn a_clock_that_was_wrong_for_hours_costs_minutes_but_not_days_and_the_history_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    run(&history, START, 90, &[(1, 3)]);
    run(&history, START + YEAR, 180, &[(1, 3)]);
    let now = START + 300 * 60;
    run(&history, now, 179, &[(1, 3)]);
    assert!(!history.handle().stats().is_writing, "nothing is recorded, and that can be seen");
    run(&history, now + 179 * 60, 60, &[(1, 3)]);
    let handle = history.handle();
    assert!(handle.stats().is_writing);
    assert_eq!(known(&handle, START, now + 2 * YEAR, Resolution::Day), 90 + 60);
    assert_eq!(known(&handle, now, now + DAY, Resolution::Minute), 60);
}
