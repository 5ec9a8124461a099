//! What happened to a server is told, the latest first, and not without end.

mod common;

use common::*;
use rallypoint_history::{CameOrWent, Event, History, Move, Sweep, What};
use rallypoint_lobby_proto::UnlistReason;

#[test]
fn events_come_back_the_latest_first_and_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::start(options(&folder)).unwrap();
    for minute in 0..300 {
        let rows: &[(u8, u16)] = if minute % 2 == 0 { &[(1, 1)] } else { &[] };
        let went = Move { id: id(1), time: START + 60 * minute - 5, what: CameOrWent::Went(UnlistReason::Expired) };
        let moves = if minute % 2 == 0 { Vec::new() } else { vec![went] };
        history.record(Sweep { moves, ..sweep(START + 60 * minute, rows) });
        history.flush();
    }
    let handle = history.handle();
    let all = handle.events(&server(1), 1_000, None).unwrap();
    assert_eq!(all.len(), 100);
    let expected = [
        Event { time: START + 60 * 299 - 5, what: What::Unlisted(Some("expired")) },
        Event { time: START + 60 * 298, what: What::Listed(LOBBY) },
    ];
    assert_eq!(all[..2], expected);
    // Page by page.
    let first = handle.events(&server(1), 10, None).unwrap();
    let second = handle.events(&server(1), 10, Some(first[9].time)).unwrap();
    assert_eq!([first, second].concat(), all[..20]);
    let summary = handle.summary(&server(1), START + 60 * 299).unwrap().unwrap();
    assert_eq!((summary.listed, summary.name.as_str(), summary.map.as_str()), (false, "Bacon Town", "ctf_square"));
}
