//! The recorder on virtual time.

use super::*;
use crate::ServerSource;
use rallypoint_lobby_proto::{PublicId, UnlistReason};
use std::sync::Arc;

/// A full hour.
const START: UnixSeconds = 1_800_000_000;
const LIST_ID: ListId = ListId::GANG_GARRISON_2;
const SMALL: SubjectLimits = SubjectLimits { warm_up: 5, servers: 3, lists: 2 };

/// Servers by number, with as many players.
#[derive(Debug)]
struct Rows(Vec<(u8, u16, &'static str)>);

impl ServerSource for Rows {
    fn for_each(&self, f: &mut dyn FnMut(ObservedServer<'_>)) {
        for &(number, players, map) in &self.0 {
            f(ObservedServer { id: id(number), list: LIST_ID, players, bots: 1, slots: 24, name: "Bacon Town", map });
        }
    }
}

fn id(number: u8) -> PublicId {
    PublicId::from_bytes([number; 16])
}

fn recorder(limits: SubjectLimits) -> Recorder {
    Recorder::new(limits, 730, Vec::new(), 1, ClockState::new(START - 60, None))
}

fn observation(minute: i64, servers: &[u8]) -> Observation {
    observation_of(minute, servers.iter().map(|number| (*number, 2, "ctf_square")).collect(), Vec::new())
}

fn observation_of(minute: i64, rows: Vec<(u8, u16, &'static str)>, changes: Vec<ListChange>) -> Observation {
    Observation { time: START + 60 * minute + 7, servers: Arc::new(Rows(rows)), changes }
}

fn new_servers(batch: &RowBatch) -> Vec<Subject> {
    batch.new.iter().map(|new| new.subject).filter(|subject| matches!(subject, Subject::Server(_))).collect()
}

#[test]
fn the_history_of_a_server_begins_after_five_consecutive_minutes() {
    let mut recorder = recorder(SMALL);
    for minute in 0..5 {
        let batch = recorder.handle_observation(&observation(minute, &[1, 2])).unwrap();
        assert_eq!(new_servers(&batch), [], "minute {minute}");
        // That of the total begins at once.
        assert_eq!(batch.samples, [(TOTAL, Sample { players: 4, bots: 2, slots: 48, servers: 2 })]);
    }
    // One of them was not listed for a minute.
    recorder.handle_observation(&observation(5, &[1])).unwrap();
    let batch = recorder.handle_observation(&observation(6, &[1, 2])).unwrap();
    assert_eq!((new_servers(&batch), recorder.servers()), (vec![], 1));
    for minute in 7..11 {
        recorder.handle_observation(&observation(minute, &[1, 2])).unwrap();
    }
    let batch = recorder.handle_observation(&observation(11, &[1, 2])).unwrap();
    assert_eq!(new_servers(&batch), [Subject::Server(id(2))]);
    assert_eq!(batch.new[0].first, START + 6 * 60);
    let came = HistoryEvent { time: START + 6 * 60, kind: EventKind::Listed(LIST_ID) };
    assert_eq!(batch.events, [(batch.new[0].key, came)]);
    assert_eq!(batch.samples.len(), 4);
}

#[test]
fn fake_servers_do_not_displace_a_server_that_stays() {
    let mut recorder = recorder(SMALL);
    let mut minute = 0;
    let mut run = |recorder: &mut Recorder, minutes: i64, servers: &[u8]| {
        for _ in 0..minutes {
            recorder.handle_observation(&observation(minute, servers)).unwrap();
            minute += 1;
        }
    };
    run(&mut recorder, 100, &[1]);
    for fake in 10..=250 {
        run(&mut recorder, 10, &[1, fake]);
        assert!(recorder.servers() <= 3);
    }
    // A server that stays longer than the fakes gets a history, and the older one keeps its own even while it is not listed.
    run(&mut recorder, 50, &[2]);
    let has = |recorder: &Recorder, number| recorder.tracked.contains_key(&Subject::Server(id(number)));
    assert!(has(&recorder, 1) && has(&recorder, 2));
    assert!(recorder.waiting.is_empty());
}

#[test]
fn while_all_tracked_servers_are_listed_no_other_history_begins() {
    let mut recorder = recorder(SMALL);
    for minute in 0..100 {
        recorder.handle_observation(&observation(minute, &[1, 2, 3])).unwrap();
    }
    for minute in 100..300 {
        let batch = recorder.handle_observation(&observation(minute, &[1, 2, 3, 4])).unwrap();
        assert_eq!((new_servers(&batch), &batch.deleted[..]), (vec![], &[][..]));
    }
    // Now one of them leaves, which was listed for longer than the one that waits...
    let batch = recorder.handle_observation(&observation(300, &[2, 3, 4])).unwrap();
    assert_eq!(new_servers(&batch), []);
    // ...until the latter has caught up.
    let mut waited = 0;
    while recorder.tracked.contains_key(&Subject::Server(id(1))) {
        waited += 1;
        recorder.handle_observation(&observation(300 + waited, &[2, 3, 4])).unwrap();
    }
    assert_eq!(waited, 100);
}

#[test]
fn lists_are_bounded_too() {
    let limits = SubjectLimits { warm_up: 0, servers: 3, lists: 0 };
    let batch = recorder(limits).handle_observation(&observation(0, &[1])).unwrap();
    assert!(batch.new.iter().all(|new| !matches!(new.subject, Subject::List(_))));
    let batch = recorder(SubjectLimits { lists: 1, ..limits }).handle_observation(&observation(0, &[1])).unwrap();
    assert!(batch.new.iter().any(|new| new.subject == Subject::List(LIST_ID)));
}

#[test]
fn events_have_a_reason_if_the_changes_have_one() {
    let mut recorder = recorder(SubjectLimits { warm_up: 0, ..SMALL });
    recorder.handle_observation(&observation(0, &[1, 2])).unwrap();
    let went = ListChange { id: id(1), time: START + 30, kind: ListChangeKind::Unlisted(UnlistReason::Expired) };
    let batch = recorder.handle_observation(&observation_of(1, Vec::new(), vec![went])).unwrap();
    let events_of = |batch: &RowBatch| batch.events.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>();
    let expected = [
        HistoryEvent { time: START + 30, kind: EventKind::Unlisted(Some("expired")) },
        HistoryEvent { time: START + 60, kind: EventKind::Unlisted(None) },
    ];
    assert_eq!(events_of(&batch), expected);
    // It returned twice before the next observation.
    let changes = vec![
        ListChange { id: id(1), time: START + 70, kind: ListChangeKind::Listed(LIST_ID) },
        ListChange { id: id(1), time: START + 80, kind: ListChangeKind::Unlisted(UnlistReason::Replaced) },
        ListChange { id: id(1), time: START + 90, kind: ListChangeKind::Listed(LIST_ID) },
    ];
    let batch = recorder.handle_observation(&observation_of(2, vec![(1, 0, "koth_valley")], changes)).unwrap();
    let codes: Vec<_> = events_of(&batch).iter().map(|event| (event.time - START, event.kind.code())).collect();
    assert_eq!(codes, [(70, "listed"), (80, "unlisted"), (90, "listed"), (120, "map")]);
}

#[test]
fn one_server_cannot_use_up_the_events() {
    let mut recorder = recorder(SubjectLimits { warm_up: 0, ..SMALL });
    recorder.handle_observation(&observation(0, &[1])).unwrap();
    let kind = |n| {
        if n % 2 == 0 { ListChangeKind::Unlisted(UnlistReason::Unregistered) } else { ListChangeKind::Listed(LIST_ID) }
    };
    let changes = (0..1_000).map(|n| ListChange { id: id(1), time: START + 61, kind: kind(n) }).collect();
    let batch = recorder.handle_observation(&observation_of(1, vec![(1, 0, "")], changes)).unwrap();
    assert_eq!(batch.events.len(), usize::from(MAX_EVENTS_PER_SERVER));
    let batch = recorder.handle_observation(&observation_of(2, Vec::new(), Vec::new())).unwrap();
    assert_eq!(batch.events.len(), 1);
}

#[test]
fn a_peak_is_recorded_once() {
    let mut recorder = recorder(SubjectLimits { warm_up: 0, ..SMALL });
    let mut peaks = |minute, players| {
        let batch = recorder.handle_observation(&observation_of(minute, vec![(1, players, "")], Vec::new())).unwrap();
        batch.peaks.iter().map(|(_, players)| *players).collect::<Vec<_>>()
    };
    // For the total, the list and the server.
    assert_eq!(peaks(0, 3), [3, 3, 3]);
    assert_eq!(peaks(1, 3), [0; 0]);
    assert_eq!(peaks(2, 2), [0; 0]);
    assert_eq!(peaks(3, 9), [9, 9, 9]);
}

#[test]
fn a_clock_that_is_set_back_changes_no_recorded_minute() {
    let mut recorder = recorder(SMALL);
    assert!(recorder.handle_observation(&observation(10, &[1])).is_some());
    for minute in [10, 9, -1_000_000] {
        assert!(recorder.handle_observation(&observation(minute, &[1])).is_none());
    }
    assert!(recorder.handle_observation(&observation(11, &[1])).is_some());
}

#[test]
fn while_the_clock_is_doubted_no_subject_is_deleted() {
    let mut recorder = recorder(SubjectLimits { warm_up: 0, servers: 1, ..SMALL });
    recorder.handle_observation(&observation(0, &[1])).unwrap();
    let three_years = 3 * 365 * 24 * 60;
    for minute in three_years..three_years + 59 {
        let batch = recorder.handle_observation(&observation(minute, &[2])).unwrap();
        assert!(batch.deleted.is_empty() && !batch.clock.is_trusted(), "neither for being old nor to make room");
    }
    let batch = recorder.handle_observation(&observation(three_years + 59, &[2])).unwrap();
    assert_eq!((batch.deleted.len(), recorder.servers()), (1, 1));
}

#[test]
fn a_change_is_not_later_than_the_observation_after_it() {
    let mut recorder = recorder(SubjectLimits { warm_up: 0, ..SMALL });
    recorder.handle_observation(&observation(0, &[1])).unwrap();
    // The clock was wrong for a moment.
    let went = ListChange { id: id(1), time: 2 * START, kind: ListChangeKind::Unlisted(UnlistReason::Expired) };
    let batch = recorder.handle_observation(&observation_of(1, Vec::new(), vec![went])).unwrap();
    assert_eq!(batch.events[0].1.time, START + 67);
}

#[test]
fn a_server_that_is_not_listed_for_two_years_is_deleted() {
    let mut recorder = recorder(SubjectLimits { warm_up: 0, ..SMALL });
    recorder.handle_observation(&observation(0, &[1])).unwrap();
    let day = 24 * 60;
    let mut run = |minutes: std::ops::Range<i64>| {
        minutes
            .map(|minute| recorder.handle_observation(&observation(minute, &[2])).unwrap().deleted.len())
            .sum::<usize>()
    };
    assert_eq!(run(730 * day - 60..730 * day + 60), 0);
    assert_eq!(run(730 * day + 60..730 * day + 61), 1);
    assert_eq!(recorder.servers(), 1);
}

#[test]
fn recording_continues_after_a_restart() {
    let known = |key, number, listed| KnownSubject {
        key,
        subject: Subject::Server(id(number)),
        last: START - 600,
        minutes: 100,
        peak: 5,
        listed,
        name: "Bacon Town".into(),
        map: "ctf_square".into(),
    };
    let mut recorder =
        Recorder::new(SMALL, 730, vec![known(7, 1, true), known(8, 2, true)], 9, ClockState::new(START - 600, None));
    let batch = recorder.handle_observation(&observation(0, &[1, 3])).unwrap();
    assert_eq!(batch.events, [(8, HistoryEvent { time: START, kind: EventKind::Unlisted(None) })]);
    assert!(batch.samples.iter().any(|(key, _)| *key == 7));
    for minute in 1..6 {
        recorder.handle_observation(&observation(minute, &[1, 3])).unwrap();
    }
    assert_eq!(recorder.tracked[&Subject::Server(id(3))].key, 9, "keys are not reused");
}

#[test]
fn long_names_are_truncated_between_characters() {
    assert_eq!(truncated("Bacon Town"), "Bacon Town");
    assert_eq!(truncated(&"ü".repeat(300)), "ü".repeat(80));
}
