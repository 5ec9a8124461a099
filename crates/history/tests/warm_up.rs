//! The history of a server begins after a warm-up, which does not lower its uptime.

use crate::common;

use common::*;
use rallypoint_history::{History, HistoryOptions, Resolution, Subject, SubjectLimits};

#[test]
fn a_server_that_was_always_listed_has_full_uptime() {
    let folder = tempfile::tempdir().unwrap();
    let limits = SubjectLimits { warm_up: 5, ..SubjectLimits::default() };
    let history = History::start(HistoryOptions { limits, ..options(&folder) }).unwrap();
    // The program runs for ten minutes before the server is listed.
    for minute in 0..20 {
        record(&history, START + 60 * minute, if minute < 10 { &[] } else { &[(1, 4)] });
    }
    let reader = history.reader();
    let now = START + 19 * 60;
    for subject in [server(1), Subject::List(LIST)] {
        let summary = reader.summary(&subject, now).unwrap().unwrap();
        assert_eq!((summary.first, summary.uptime), (START + 10 * 60, [Some(1.0); 3]), "{subject:?}");
        let minutes = reader.series(&subject, START..now + 60, Resolution::Minute).unwrap();
        let seen: Vec<_> = minutes.points.iter().map(|point| (point.observed, point.up)).collect();
        assert_eq!(seen, [vec![(0, 0); 15], vec![(1, 1); 5]].concat(), "{subject:?}");
        for resolution in [Resolution::Hour, Resolution::Day] {
            let whole = reader.series(&subject, START..now + 60, resolution).unwrap();
            assert_eq!(whole.points[0].up_share(), Some(1.0), "{subject:?} {resolution:?}");
        }
    }
    // Then it is not listed for half as long as it was listed.
    for minute in 20..25 {
        record(&history, START + 60 * minute, &[(1, 4)]);
    }
    for minute in 25..30 {
        record(&history, START + 60 * minute, &[]);
    }
    let summary = history.reader().summary(&server(1), START + 29 * 60).unwrap().unwrap();
    assert_eq!(summary.uptime, [Some(10.0 / 15.0); 3]);
}
