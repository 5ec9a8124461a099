//! A server gets a history when it was listed for some minutes: what was before is not held against it.

mod common;

use common::*;
use rallypoint_history::{History, Limits, Options, Resolution, Subject};

#[test]
fn a_server_that_was_always_there_was_always_up() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { warm_up: 5, ..Limits::default() };
    let history = History::start(Options { limits, ..options(&folder) }).unwrap();
    // The program runs for ten minutes before the server comes.
    for minute in 0..20 {
        record(&history, START + 60 * minute, if minute < 10 { &[] } else { &[(1, 4)] });
    }
    let (handle, now) = (history.handle(), START + 19 * 60);
    for subject in [server(1), Subject::Lobby(LOBBY)] {
        let summary = handle.summary(&subject, now).unwrap().unwrap();
        assert_eq!((summary.first, summary.uptime), (START + 10 * 60, [Some(1.0); 3]), "{subject:?}");
        let minutes = handle.series(&subject, START..now + 60, Resolution::Minute).unwrap();
        let seen: Vec<_> = minutes.points.iter().map(|point| (point.observed, point.up)).collect();
        assert_eq!(seen, [vec![(0, 0); 15], vec![(1, 1); 5]].concat(), "{subject:?}");
        for resolution in [Resolution::Hour, Resolution::Day] {
            let whole = handle.series(&subject, START..now + 60, resolution).unwrap();
            assert_eq!(whole.points[0].up_share(), Some(1.0), "{subject:?} {resolution:?}");
        }
    }
    // Then it is away for half as long as it was seen.
    for minute in 20..25 {
        record(&history, START + 60 * minute, &[(1, 4)]);
    }
    for minute in 25..30 {
        record(&history, START + 60 * minute, &[]);
    }
    let summary = history.handle().summary(&server(1), START + 29 * 60).unwrap().unwrap();
    assert_eq!(summary.uptime, [Some(10.0 / 15.0); 3]);
}
