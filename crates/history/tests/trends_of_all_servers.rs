//! The recent past of all servers is read at once.

use rallypoint_history::{History, HistoryOptions, Observation, ObservedServer, ServerSource};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::LobbyId;
use std::sync::Arc;

/// The beginning of a day, in UTC.
const MIDNIGHT: i64 = 1_800_057_600;

const BUSY: PublicId = PublicId::from_bytes([1; 16]);
const QUIET: PublicId = PublicId::from_bytes([2; 16]);

#[derive(Debug)]
struct Servers(Vec<(PublicId, u16)>);

impl ServerSource for Servers {
    fn for_each(&self, show: &mut dyn FnMut(ObservedServer<'_>)) {
        for (id, players) in &self.0 {
            let lobby = LobbyId::GANG_GARRISON_2;
            show(ObservedServer { id: *id, lobby, players: *players, bots: 0, slots: 16, name: "a", map: "b" });
        }
    }
}

#[test]
fn hours_and_the_average_of_the_week_are_those_of_the_recorded_minutes() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    for minute in 0..5 * 60 {
        // For two hours both are listed, then the busy one alone.
        let busy = if minute < 120 { 4 } else { 8 };
        let quiet = (minute < 120).then_some((QUIET, 1));
        let servers = Servers([(BUSY, busy)].into_iter().chain(quiet).collect());
        let time = MIDNIGHT + 60 * minute;
        history.record(Observation { time, servers: Arc::new(servers), changes: Vec::new() });
        if minute % 30 == 0 {
            history.flush();
        }
    }
    history.flush();
    let trends = history.reader().trends(MIDNIGHT + 4 * 3_600 + 60).unwrap();
    let busy = trends[&BUSY];
    let quiet = trends[&QUIET];
    assert_eq!(busy.hours[20..], [Some(4.0), Some(4.0), Some(8.0), Some(8.0)]);
    assert_eq!(quiet.hours[21..], [Some(1.0), None, None]);
    assert!(busy.hours[..20].iter().all(Option::is_none), "{busy:?}");
    // Nothing is recorded of a server in its first five minutes.
    assert!(busy.week > 5.8 && busy.week <= 6.0, "{busy:?}");
    assert!(quiet.week > 0.4 && quiet.week < 0.6, "half of the recorded time: {quiet:?}");
}
