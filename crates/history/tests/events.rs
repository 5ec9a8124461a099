//! The events of a server: latest first, and bounded in number.

use crate::common;

use common::*;
use rallypoint_history::{EventKind, History, HistoryEvent, ListChange, ListChangeKind, Observation};
use rallypoint_lobby_proto::UnlistReason;

#[test]
fn events_are_read_latest_first_and_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    for minute in 0..300 {
        let rows: &[(u8, u16)] = if minute % 2 == 0 { &[(1, 1)] } else { &[] };
        let went = ListChange {
            id: id(1),
            time: START + 60 * minute - 5,
            kind: ListChangeKind::Unlisted(UnlistReason::Expired),
        };
        let changes = if minute % 2 == 0 { Vec::new() } else { vec![went] };
        history.record(Observation { changes, ..observation(START + 60 * minute, rows) });
        history.flush();
    }
    let reader = history.reader();
    let all = reader.events(&server(1), 1_000, None).unwrap();
    assert_eq!(all.len(), 100);
    let expected = [
        HistoryEvent { time: START + 60 * 299 - 5, kind: EventKind::Unlisted(Some("expired")) },
        HistoryEvent { time: START + 60 * 298, kind: EventKind::Listed(LIST) },
    ];
    assert_eq!(all[..2], expected);
    // Page by page.
    let first = reader.events(&server(1), 10, None).unwrap();
    let second = reader.events(&server(1), 10, Some(first[9].time)).unwrap();
    assert_eq!([first, second].concat(), all[..20]);
    let summary = reader.summary(&server(1), START + 60 * 299).unwrap().unwrap();
    assert_eq!((summary.listed, summary.name.as_str(), summary.map.as_str()), (false, "Bacon Town", "ctf_square"));
}
