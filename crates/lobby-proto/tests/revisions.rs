//! A registration with another player count or map, from the same server at the same endpoint, changes its entry in place, with
//! the same result as any other registration.

use crate::support;
use rallypoint_lobby_proto::{AddressMap, Ban, BanSubject, Mapping, RegistrationOutcome};
use support::*;

const HERE: &str = "9.9.9.9";

fn server(players: u16, map: &str) -> Server {
    udp(1).players(players).key("map", map)
}

#[test]
fn players_and_values_change_in_place() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register(HERE, &server(0, "a")), RegistrationOutcome::Listed);
    for (players, map) in [(1, "a"), (1, "b"), (2, "a longer map"), (0, "")] {
        assert_eq!(lobby.register(HERE, &server(players, map)), RegistrationOutcome::Changed);
        assert_eq!(lobby.register(HERE, &server(players, map)), RegistrationOutcome::Refreshed);
        assert_eq!(lobby.list().len(), 1);
        let snapshot = lobby.lists().snapshot();
        let shown = snapshot.lists().flat_map(|(_, list)| list.servers()).next().unwrap();
        assert_eq!(shown.block().occupancy.players, players);
        assert_eq!(shown.block().table.get(b"map"), Some(map.as_bytes()));
    }
    assert_eq!(lobby.recent_outcomes(ip(HERE)).last().unwrap().outcome, RegistrationOutcome::Changed);
    lobby.registry.check_invariants();
}

#[test]
fn a_change_extends_the_lease() {
    let mut lobby = Lobby::default();
    lobby.register(HERE, &server(0, "a"));
    for players in 1..=5 {
        lobby.wait(secs(60));
        assert_eq!(lobby.register(HERE, &server(players, "a")), RegistrationOutcome::Changed);
    }
    lobby.wait(secs(69));
    assert_eq!(lobby.stats().listed, 1);
    lobby.wait(secs(2));
    assert_eq!(lobby.stats().listed, 0);
}

/// L8: the last registration counts, whichever family it came from.
#[test]
fn l8_a_change_of_one_family_is_undone_by_the_other() {
    let mut lobby = Lobby::default();
    lobby.register(HERE, &server(1, "a"));
    lobby.register("2620:fe::9", &server(1, "a"));
    assert_eq!(lobby.register(HERE, &server(2, "a")), RegistrationOutcome::Changed);
    assert_eq!(lobby.register("2620:fe::9", &server(1, "a")), RegistrationOutcome::Changed);
    assert_eq!(lobby.register(HERE, &server(2, "a")), RegistrationOutcome::Changed);
    lobby.registry.check_invariants();
}

#[test]
fn what_can_have_other_effects_is_examined_in_full() {
    let mut lobby = Lobby::default();
    lobby.register(HERE, &server(1, "a"));
    let subject = BanSubject::Network("8.8.8.0/24".parse().unwrap());
    lobby.set(|config| config.bans = permanent([Ban { subject, reason: "".into(), until: None }]));
    assert_eq!(lobby.register("8.8.8.8", &server(2, "a")), RegistrationOutcome::Banned, "another source");
    assert_eq!(lobby.register("9.9.9.8", &server(2, "a")), RegistrationOutcome::Changed, "a new address");
    let mapping = Mapping { from: "9.9.9.8/32".parse().unwrap(), port: None, to: ip("9.9.9.7"), to_port: None };
    lobby.set(|config| config.address_map = AddressMap::from_iter([mapping]));
    lobby.register("9.9.9.8", &server(3, "a"));
    assert_eq!(lobby.list(), ["9.9.9.7:8190 udp server 1"], "a new address map");
    let mut elsewhere = server(4, "a");
    elsewhere = elsewhere.port(8191);
    lobby.register("9.9.9.8", &elsewhere);
    assert_eq!(lobby.list(), ["9.9.9.7:8191 udp server 1"], "another port");
    lobby.registry.check_invariants();
}

#[test]
fn a_change_that_exceeds_the_memory_is_refused() {
    let mut lobby = Lobby::with(|config| config.caps.memory = 1 << 20);
    lobby.register(HERE, &server(1, "a"));
    let large = |number: u128| udp(100 + number).key("x", "x".repeat(3_000));
    let mut number = 0;
    while lobby.register(ip(&format!("8.8.{number}.8")), &large(number)).is_listed() {
        number += 1;
        assert!(number < 255);
    }
    assert_eq!(lobby.register(HERE, &server(1, &"m".repeat(3_900))), RegistrationOutcome::MemoryFull);
    assert_eq!(lobby.register(HERE, &server(2, "b")), RegistrationOutcome::Changed);
    lobby.registry.check_invariants();
}
