//! Samples wait while another program has locked the file; afterwards all of them are written.

use crate::common;

use common::*;
use rallypoint_history::{History, Resolution};

#[test]
fn samples_taken_while_the_file_is_locked_are_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    record(&history, START, &[(1, 1)]);

    let other = rusqlite::Connection::open(folder.path().join("history.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for minute in 1..10 {
        record(&history, START + 60 * minute, &[(1, 1), (2, 2)]);
    }
    let stats = history.reader().stats();
    assert_eq!((stats.is_writing, stats.written, stats.pending, stats.dropped), (false, 1, 9, 0));
    assert_eq!(stats.lag(START + 600), Some(600));

    other.execute_batch("ROLLBACK").unwrap();
    record(&history, START + 600, &[(1, 1)]);
    let stats = history.reader().stats();
    assert_eq!((stats.is_writing, stats.written, stats.pending, stats.dropped), (true, 11, 0, 0));
    let series = history.reader().series(&server(2), START..START + 660, Resolution::Minute).unwrap();
    assert_eq!(series.points.iter().map(|point| point.up).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    // Nothing is known about it before it was listed.
    assert!(series.points.iter().skip(1).all(|point| point.observed == 1));
}

#[test]
fn a_file_that_is_locked_at_the_start_is_opened_when_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    History::start(options(&folder)).unwrap().finish();
    let other = rusqlite::Connection::open(folder.path().join("history.db")).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let history = History::start(options(&folder)).unwrap();
    record(&history, START, &[(1, 1)]);
    assert!(!history.reader().stats().is_writing);
    assert!(history.reader().summary(&server(1), START).is_err());
    drop(other);
    record(&history, START + 60, &[(1, 1)]);
    assert!(history.reader().stats().is_writing);
    assert!(history.reader().summary(&server(1), START).unwrap().is_some());
}
