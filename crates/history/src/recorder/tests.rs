//! The recorder on virtual time.

use super::*;
use crate::Listed;
use rallypoint_lobby_proto::{PublicId, UnlistReason};
use std::sync::Arc;

/// A full hour.
const START: UnixSeconds = 1_800_000_000;
const LOBBY_ID: LobbyId = LobbyId::GANG_GARRISON_2;
const SMALL: Limits = Limits { warm_up: 5, servers: 3, lobbies: 2 };

/// Servers by number, with as many players.
#[derive(Debug)]
struct Rows(Vec<(u8, u16, &'static str)>);

impl Listed for Rows {
    fn each(&self, show: &mut dyn FnMut(Seen<'_>)) {
        for &(number, players, map) in &self.0 {
            show(Seen { id: id(number), lobby: LOBBY_ID, players, bots: 1, slots: 24, name: "Bacon Town", map });
        }
    }
}

fn id(number: u8) -> PublicId {
    PublicId::from_bytes([number; 16])
}

fn recorder(limits: Limits) -> Recorder {
    Recorder::new(limits, 730, Vec::new(), 1, Clock::new(START - 60, None))
}

fn sweep(minute: i64, servers: &[u8]) -> Sweep {
    sweep_of(minute, servers.iter().map(|number| (*number, 2, "ctf_square")).collect(), Vec::new())
}

fn sweep_of(minute: i64, rows: Vec<(u8, u16, &'static str)>, moves: Vec<Move>) -> Sweep {
    Sweep { time: START + 60 * minute + 7, listed: Arc::new(Rows(rows)), moves }
}

fn new_servers(batch: &Batch) -> Vec<Subject> {
    batch.new.iter().map(|new| new.subject).filter(|subject| matches!(subject, Subject::Server(_))).collect()
}

#[test]
fn a_server_gets_a_history_when_it_was_listed_for_five_minutes_in_a_row() {
    let mut recorder = recorder(SMALL);
    for minute in 0..5 {
        let batch = recorder.handle_sweep(&sweep(minute, &[1, 2])).unwrap();
        assert_eq!(new_servers(&batch), [], "minute {minute}");
        // Everything together has one from the beginning.
        assert_eq!(batch.samples, [(TOTAL, Sample { players: 4, bots: 2, slots: 48, servers: 2 })]);
    }
    // One of them was away for a minute.
    recorder.handle_sweep(&sweep(5, &[1])).unwrap();
    let batch = recorder.handle_sweep(&sweep(6, &[1, 2])).unwrap();
    assert_eq!((new_servers(&batch), recorder.servers()), (vec![], 1));
    for minute in 7..11 {
        recorder.handle_sweep(&sweep(minute, &[1, 2])).unwrap();
    }
    let batch = recorder.handle_sweep(&sweep(11, &[1, 2])).unwrap();
    assert_eq!(new_servers(&batch), [Subject::Server(id(2))]);
    assert_eq!(batch.new[0].first, START + 6 * 60);
    let came = Event { time: START + 6 * 60, what: What::Listed(LOBBY_ID) };
    assert_eq!(batch.events, [(batch.new[0].key, came)]);
    assert_eq!(batch.samples.len(), 4);
}

#[test]
fn a_million_fakes_do_not_take_the_place_of_one_that_stays() {
    let mut recorder = recorder(SMALL);
    let mut minute = 0;
    let mut run = |recorder: &mut Recorder, minutes: i64, servers: &[u8]| {
        for _ in 0..minutes {
            recorder.handle_sweep(&sweep(minute, servers)).unwrap();
            minute += 1;
        }
    };
    run(&mut recorder, 100, &[1]);
    for fake in 10..=250 {
        run(&mut recorder, 10, &[1, fake]);
        assert!(recorder.servers() <= 3);
    }
    // Somebody who stays longer than they did gets in, and whoever was there before stays, even when it is away.
    run(&mut recorder, 50, &[2]);
    let has = |recorder: &Recorder, number| recorder.tracked.contains_key(&Subject::Server(id(number)));
    assert!(has(&recorder, 1) && has(&recorder, 2));
    assert!(recorder.waiting.is_empty());
}

#[test]
fn while_all_are_listed_nobody_else_gets_a_history() {
    let mut recorder = recorder(SMALL);
    for minute in 0..100 {
        recorder.handle_sweep(&sweep(minute, &[1, 2, 3])).unwrap();
    }
    for minute in 100..300 {
        let batch = recorder.handle_sweep(&sweep(minute, &[1, 2, 3, 4])).unwrap();
        assert_eq!((new_servers(&batch), &batch.forgotten[..]), (vec![], &[][..]));
    }
    // Now one of them leaves, and was listed for longer than the one that waits...
    let batch = recorder.handle_sweep(&sweep(300, &[2, 3, 4])).unwrap();
    assert_eq!(new_servers(&batch), []);
    // ...until that has caught up.
    let mut waited = 0;
    while recorder.tracked.contains_key(&Subject::Server(id(1))) {
        waited += 1;
        recorder.handle_sweep(&sweep(300 + waited, &[2, 3, 4])).unwrap();
    }
    assert_eq!(waited, 100);
}

#[test]
fn lobbies_are_bounded_too() {
    let limits = Limits { warm_up: 0, servers: 3, lobbies: 0 };
    let batch = recorder(limits).handle_sweep(&sweep(0, &[1])).unwrap();
    assert!(batch.new.iter().all(|new| !matches!(new.subject, Subject::Lobby(_))));
    let batch = recorder(Limits { lobbies: 1, ..limits }).handle_sweep(&sweep(0, &[1])).unwrap();
    assert!(batch.new.iter().any(|new| new.subject == Subject::Lobby(LOBBY_ID)));
}

#[test]
fn events_say_why_if_somebody_told() {
    let mut recorder = recorder(Limits { warm_up: 0, ..SMALL });
    recorder.handle_sweep(&sweep(0, &[1, 2])).unwrap();
    let went = Move { id: id(1), time: START + 30, what: CameOrWent::Went(UnlistReason::Expired) };
    let batch = recorder.handle_sweep(&sweep_of(1, Vec::new(), vec![went])).unwrap();
    let whats = |batch: &Batch| batch.events.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>();
    let expected = [
        Event { time: START + 30, what: What::Unlisted(Some("expired")) },
        Event { time: START + 60, what: What::Unlisted(None) },
    ];
    assert_eq!(whats(&batch), expected);
    // It was back before anybody looked again, twice.
    let moves = vec![
        Move { id: id(1), time: START + 70, what: CameOrWent::Came(LOBBY_ID) },
        Move { id: id(1), time: START + 80, what: CameOrWent::Went(UnlistReason::Replaced) },
        Move { id: id(1), time: START + 90, what: CameOrWent::Came(LOBBY_ID) },
    ];
    let batch = recorder.handle_sweep(&sweep_of(2, vec![(1, 0, "koth_valley")], moves)).unwrap();
    let codes: Vec<_> = whats(&batch).iter().map(|event| (event.time - START, event.what.code())).collect();
    assert_eq!(codes, [(70, "listed"), (80, "unlisted"), (90, "listed"), (120, "map")]);
}

#[test]
fn one_server_cannot_fill_the_events() {
    let mut recorder = recorder(Limits { warm_up: 0, ..SMALL });
    recorder.handle_sweep(&sweep(0, &[1])).unwrap();
    let what = |n| if n % 2 == 0 { CameOrWent::Went(UnlistReason::Unregistered) } else { CameOrWent::Came(LOBBY_ID) };
    let moves = (0..1_000).map(|n| Move { id: id(1), time: START + 61, what: what(n) }).collect();
    let batch = recorder.handle_sweep(&sweep_of(1, vec![(1, 0, "")], moves)).unwrap();
    assert_eq!(batch.events.len(), usize::from(EVENTS_EACH));
    let batch = recorder.handle_sweep(&sweep_of(2, Vec::new(), Vec::new())).unwrap();
    assert_eq!(batch.events.len(), 1);
}

#[test]
fn a_peak_is_told_once() {
    let mut recorder = recorder(Limits { warm_up: 0, ..SMALL });
    let mut peaks = |minute, players| {
        let batch = recorder.handle_sweep(&sweep_of(minute, vec![(1, players, "")], Vec::new())).unwrap();
        batch.peaks.iter().map(|(_, players)| *players).collect::<Vec<_>>()
    };
    // Of the total, the lobby and the server.
    assert_eq!(peaks(0, 3), [3, 3, 3]);
    assert_eq!(peaks(1, 3), [0; 0]);
    assert_eq!(peaks(2, 2), [0; 0]);
    assert_eq!(peaks(3, 9), [9, 9, 9]);
}

#[test]
fn a_clock_that_is_set_back_changes_nothing_that_was() {
    let mut recorder = recorder(SMALL);
    assert!(recorder.handle_sweep(&sweep(10, &[1])).is_some());
    for minute in [10, 9, -1_000_000] {
        assert!(recorder.handle_sweep(&sweep(minute, &[1])).is_none());
    }
    assert!(recorder.handle_sweep(&sweep(11, &[1])).is_some());
}

#[test]
fn while_it_is_in_doubt_what_time_it_is_nobody_is_forgotten() {
    let mut recorder = recorder(Limits { warm_up: 0, servers: 1, ..SMALL });
    recorder.handle_sweep(&sweep(0, &[1])).unwrap();
    let three_years = 3 * 365 * 24 * 60;
    for minute in three_years..three_years + 59 {
        let batch = recorder.handle_sweep(&sweep(minute, &[2])).unwrap();
        assert!(batch.forgotten.is_empty() && !batch.clock.is_believed(), "neither for being old nor to make room");
    }
    let batch = recorder.handle_sweep(&sweep(three_years + 59, &[2])).unwrap();
    assert_eq!((batch.forgotten.len(), recorder.servers()), (1, 1));
}

#[test]
fn a_move_is_not_later_than_the_look_after_it() {
    let mut recorder = recorder(Limits { warm_up: 0, ..SMALL });
    recorder.handle_sweep(&sweep(0, &[1])).unwrap();
    // For a moment, the clock was wrong.
    let went = Move { id: id(1), time: 2 * START, what: CameOrWent::Went(UnlistReason::Expired) };
    let batch = recorder.handle_sweep(&sweep_of(1, Vec::new(), vec![went])).unwrap();
    assert_eq!(batch.events[0].1.time, START + 67);
}

#[test]
fn who_is_not_seen_for_two_years_is_forgotten() {
    let mut recorder = recorder(Limits { warm_up: 0, ..SMALL });
    recorder.handle_sweep(&sweep(0, &[1])).unwrap();
    let day = 24 * 60;
    let mut run = |minutes: std::ops::Range<i64>| {
        minutes.map(|minute| recorder.handle_sweep(&sweep(minute, &[2])).unwrap().forgotten.len()).sum::<usize>()
    };
    assert_eq!(run(730 * day - 60..730 * day + 60), 0);
    assert_eq!(run(730 * day + 60..730 * day + 61), 1);
    assert_eq!(recorder.servers(), 1);
}

#[test]
fn after_a_restart_it_goes_on() {
    let known = |key, number, listed| Known {
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
        Recorder::new(SMALL, 730, vec![known(7, 1, true), known(8, 2, true)], 9, Clock::new(START - 600, None));
    let batch = recorder.handle_sweep(&sweep(0, &[1, 3])).unwrap();
    assert_eq!(batch.events, [(8, Event { time: START, what: What::Unlisted(None) })]);
    assert!(batch.samples.iter().any(|(key, _)| *key == 7));
    for minute in 1..6 {
        recorder.handle_sweep(&sweep(minute, &[1, 3])).unwrap();
    }
    assert_eq!(recorder.tracked[&Subject::Server(id(3))].key, 9, "no key is used twice");
}

#[test]
fn long_names_are_cut_between_characters() {
    assert_eq!(cut("Bacon Town"), "Bacon Town");
    assert_eq!(cut(&"ü".repeat(300)), "ü".repeat(80));
}
