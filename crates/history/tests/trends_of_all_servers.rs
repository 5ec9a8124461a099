//! The recent past of all servers is read at once.

use crate::common;

use common::{HOUR, START, id, options, record};
use rallypoint_history::History;

#[test]
fn hours_and_the_average_of_the_week_are_those_of_the_recorded_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    // For two hours both are listed, then the busy one alone.
    (0..120).for_each(|minute| record(&history, START + 60 * minute, &[(1, 4), (2, 1)]));
    (120..241).for_each(|minute| record(&history, START + 60 * minute, &[(1, 8)]));
    let trends = history.reader().trends(START + 4 * HOUR + 60).unwrap();
    let busy = trends[&id(1)];
    let quiet = trends[&id(2)];
    assert_eq!(busy.hours[20..], [Some(4.0), Some(4.0), Some(8.0), Some(8.0)]);
    assert_eq!(quiet.hours[21..], [Some(1.0), None, None]);
    assert!(busy.hours[..20].iter().all(Option::is_none), "{busy:?}");
    assert_eq!((busy.week, quiet.week), (6.0, 0.5));
}

#[test]
fn the_revision_changes_only_when_the_trends_do() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    let revision = || history.reader().stats().revision;
    let before = revision();
    (0..60).for_each(|minute| record(&history, START + 60 * minute, &[(1, 4)]));
    assert_eq!(revision(), before, "no hour is over");
    (60..120).for_each(|minute| record(&history, START + 60 * minute, &[(1, 4)]));
    assert_eq!(revision(), before + 1, "one hour was rolled up");
}
