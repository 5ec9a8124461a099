//! Rows are deleted when their retention has passed, and not before.

use crate::common;

use common::*;
use rallypoint_history::{History, HistoryError, HistoryOptions, Resolution, Retention, Subject};

#[test]
fn minutes_hours_and_days_have_their_own_retention() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Retention { minutes: 1, hours: 3, days: 40 };
    let history = History::start(HistoryOptions { retention, ..options(&folder) }).unwrap();
    let hours = 100 * 24;
    for hour in 0..=hours {
        record(&history, START + HOUR * hour, &[(1, 1)]);
    }
    let reader = history.reader();
    let now = START + HOUR * hours;
    let known = |resolution, days: i64| {
        let series = reader.series(&server(1), now - days * DAY..now + 60, resolution).unwrap();
        series.points.iter().map(|point| point.up).sum::<u32>()
    };
    assert_eq!(known(Resolution::Minute, 1), 25);
    assert_eq!(known(Resolution::Minute, 30), 25);
    assert_eq!(known(Resolution::Hour, 3), 3 * 24 + 1);
    assert_eq!(known(Resolution::Hour, 90), 3 * 24 + 1);
    assert_eq!(known(Resolution::Day, 40), 40 * 24 + 1);
    // Days are deleted 32 at a time.
    assert!((40 * 24..=73 * 24).contains(&known(Resolution::Day, 99)));
    assert!(matches!(reader.series(&server(1), 0..now, Resolution::Minute), Err(HistoryError::TooMany)));
}

#[test]
fn a_deleted_server_leaves_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Retention { minutes: 1, hours: 3, days: 10 };
    let history = History::start(HistoryOptions { retention, ..options(&folder) }).unwrap();
    record(&history, START, &[(1, 1), (2, 2)]);
    for day in 1..=80 {
        record(&history, START + DAY * day, &[(2, 2)]);
    }
    let reader = history.reader();
    assert_eq!(reader.summary(&server(1), START).unwrap(), None);
    assert_eq!(reader.events(&server(1), 10, None).unwrap(), []);
    assert_eq!(reader.subjects(None, 10).unwrap(), [Subject::Total, Subject::List(LIST), server(2)]);
    assert_eq!(reader.subjects(Some(&Subject::List(LIST)), 10).unwrap(), [server(2)]);
    drop(history);
    let file = rusqlite::Connection::open(folder.path().join("history.db")).unwrap();
    let rows = "SELECT count(*) FROM block WHERE subject NOT IN (SELECT key FROM subject)";
    assert_eq!(file.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}
