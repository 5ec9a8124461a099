//! When the disk is full, the program continues, reports it, and resumes recording when there is space.

use crate::common;

use common::*;
use rallypoint_history::{History, HistoryOptions, Resolution, Subject};

#[test]
fn while_the_disk_is_full_the_latest_minutes_are_kept_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..=255).map(|number| (number, 1)).collect();
    let mut history = History::start(HistoryOptions { max_bytes: 100_000, ..options(&folder) }).unwrap();
    let mut minute = 0;
    while minute == 0 || history.reader().stats().is_writing {
        record(&history, START + 60 * minute, &rows);
        minute += 1;
        assert!(minute < 1_000, "the limit should have been reached");
    }
    let stats = history.reader().stats();
    assert_eq!((stats.written as i64, stats.pending, stats.dropped), (minute - 1, 1, 0));
    assert!(std::fs::metadata(folder.path().join("history.db")).unwrap().len() <= 100_000);
    // Earlier rows can still be read.
    let series = |history: &History| {
        history.reader().series(&Subject::Total, START..START + 60 * minute, Resolution::Minute).unwrap()
    };
    assert_eq!(series(&history).points.iter().filter(|point| point.up > 0).count() as i64, minute - 1);
    // The memory for waiting minutes is bounded.
    for more in 0..100 {
        record(&history, START + 60 * (minute + more), &rows);
    }
    let stats = history.reader().stats();
    assert!(stats.pending <= 31 && stats.dropped >= 60, "{stats:?}");
    assert_eq!(stats.written as i64, minute - 1);

    // Space becomes available.
    history.finish();
    history = History::start(options(&folder)).unwrap();
    record(&history, START + 60 * (minute + 100), &rows);
    let stats = history.reader().stats();
    assert!(stats.is_writing && stats.written == 1, "{stats:?}");
}
