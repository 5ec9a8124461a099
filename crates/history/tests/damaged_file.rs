//! A file that cannot be used is moved aside, and a new history begins.

use crate::common;

use common::*;
use rallypoint_history::{History, HistoryError, HistoryReader, Resolution};
use std::{
    fs::{self, OpenOptions},
    io::{Seek, SeekFrom, Write},
};

#[test]
fn a_file_that_is_not_a_history_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    for number in 1..=2 {
        fs::write(&path, "this is no database, but it is long enough to be taken for one".repeat(100)).unwrap();
        let history = History::start(options(&folder)).unwrap();
        record(&history, START, &[(1, 1)]);
        assert!(history.reader().summary(&server(1), START).unwrap().is_some());
        assert!(folder.path().join(format!("history.db.damaged-{number}")).exists());
    }
}

#[test]
fn damage_that_a_reader_finds_later_is_handled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let history = History::start(options(&folder)).unwrap();
    for hour in 0..30 {
        record(&history, START + HOUR * hour, &[(1, 1), (2, 2)]);
    }
    history.finish();
    // Everything but the first page, where SQLite would notice at once.
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.seek(SeekFrom::End(0)).unwrap();
    file.seek(SeekFrom::Start(4_096)).unwrap();
    file.write_all(&vec![0xab; usize::try_from(length).unwrap() - 4_096]).unwrap();
    drop(file);

    let history = History::start(options(&folder)).unwrap();
    record(&history, START + DAY * 2, &[(1, 1)]);
    record(&history, START + DAY * 2 + 60, &[(1, 1)]);
    assert!(history.reader().stats().is_writing);
    let series = history.reader().series(&server(1), START..START + DAY * 3, Resolution::Hour).unwrap();
    assert_eq!(series.points.iter().map(|point| point.up).sum::<u32>(), 2);
    assert!(folder.path().join("history.db.damaged-1").exists());
}

#[test]
fn a_history_of_a_newer_version_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 1_000).unwrap();
    drop(other);
    let history = History::start(options(&folder)).unwrap();
    record(&history, START, &[(1, 1)]);
    let stats = history.reader().stats();
    assert!(!stats.is_writing && stats.dropped == 1);
    assert!(matches!(HistoryReader::open(&path), Err(HistoryError::Newer { found: 1_000, .. })));
    assert_eq!(
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|file| { file.as_ref().unwrap().file_name().to_string_lossy().contains("damaged") })
            .count(),
        0
    );
}

#[test]
fn an_unwritable_folder_is_tolerated() {
    let folder = tempfile::tempdir().unwrap();
    // A directory where the file should be.
    fs::create_dir(folder.path().join("history.db")).unwrap();
    let history = History::start(options(&folder)).unwrap();
    record(&history, START, &[(1, 1)]);
    assert!(!history.reader().stats().is_writing);
    fs::remove_dir(folder.path().join("history.db")).unwrap();
    record(&history, START + 60, &[(1, 1)]);
    assert!(history.reader().stats().is_writing);
}
