//! When there is no more room, the program goes on, says so, and records again when there is room.

mod common;

use common::*;
use rallypoint_history::{History, Options, Resolution, Subject};

#[test]
fn when_there_is_no_room_the_latest_minutes_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..=255).map(|number| (number, 1)).collect();
    let mut history = History::start(Options { max_bytes: 100_000, ..options(&folder) }).unwrap();
    let mut minute = 0;
    while minute == 0 || history.handle().stats().is_writing {
        record(&history, START + 60 * minute, &rows);
        minute += 1;
        assert!(minute < 1_000, "so much does not fit in so little");
    }
    let stats = history.handle().stats();
    assert_eq!((stats.written as i64, stats.pending, stats.dropped), (minute - 1, 1, 0));
    assert!(std::fs::metadata(folder.path().join("history.db")).unwrap().len() <= 100_000);
    // What is there can still be read.
    let series = |history: &History| {
        history.handle().series(&Subject::Total, START..START + 60 * minute, Resolution::Minute).unwrap()
    };
    assert_eq!(series(&history).points.iter().filter(|point| point.up > 0).count() as i64, minute - 1);
    // It does not wait for ever: memory is finite, too.
    for more in 0..100 {
        record(&history, START + 60 * (minute + more), &rows);
    }
    let stats = history.handle().stats();
    assert!(stats.pending <= 31 && stats.dropped >= 60, "{stats:?}");
    assert_eq!(stats.written as i64, minute - 1);

    // Somebody makes room.
    history.finish();
    history = History::start(options(&folder)).unwrap();
    record(&history, START + 60 * (minute + 100), &rows);
    let stats = history.handle().stats();
    assert!(stats.is_writing && stats.written == 1, "{stats:?}");
}
