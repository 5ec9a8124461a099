//! Which registration replaces which server.

use crate::support;
use rallypoint_lobby_proto::{RegistrationOutcome, UnlistReason};
use support::*;

#[test]
fn l8_a_known_id_replaces_its_data() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1).name("renamed")), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp renamed"]);
    assert_eq!(lobby.stats().registered, 1);
    assert_eq!(lobby.events(), ["listed 203.0.113.9:8190 udp server 1", "changed 203.0.113.9:8190 udp renamed"]);
}

#[test]
fn l8_a_known_id_may_move_to_another_port_or_address() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1).port(9000)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["203.0.113.9:9000 udp server 1"]);
    assert_eq!(lobby.register("198.51.100.1", &udp(1).port(9000)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["198.51.100.1:9000 udp server 1"]);
    // Its old endpoint is free.
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.stats().listed, 2);
}

#[test]
fn l8_a_restarted_server_with_a_new_id_is_visible_at_once() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 2"]);
    assert_eq!(lobby.unlisted(UnlistReason::Replaced), 1);
    let events = lobby.events();
    assert_eq!(events[1..], ["replaced 203.0.113.9:8190 udp server 1", "listed 203.0.113.9:8190 udp server 2"]);
}

#[test]
fn l8_a_restarted_server_with_a_known_check_result_is_visible_at_once() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    assert_eq!(lobby.register("203.0.113.9", &tcp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 2"]);
}

#[test]
fn l8_another_port_or_transport_is_another_server() {
    let mut lobby = Lobby::unchecked();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &tcp(2));
    lobby.register("203.0.113.9", &udp(3).port(8191));
    assert_eq!(lobby.stats().listed, 3);
}

#[test]
fn w12_a_new_id_at_one_endpoint_replaces_the_whole_old_entry() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    assert_eq!(lobby.register("2001:db8::9", &udp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 udp server 2"]);
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 203.0.113.9:8190 udp server 2"]);
}

#[test]
fn l8_one_registration_can_replace_another_server_and_move_its_own() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &udp(2).port(9000));
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 2"]);
    assert_eq!(lobby.stats().registered, 1);
}

#[test]
fn l8_the_last_registration_counts_regardless_of_its_family() {
    let mut lobby = Lobby::default();
    let (old, new) = (udp(1).players(5), udp(1).players(6));
    lobby.register("203.0.113.9", &old);
    lobby.register("2001:db8::9", &old);
    lobby.register("2001:db8::9", &new);
    // The same bytes as before from this address, but no longer the current data of the server.
    assert_eq!(lobby.register("203.0.113.9", &old), RegistrationOutcome::Changed);
    lobby.list();
    let list = lobby.lists().list(&LOBBY);
    assert_eq!(list.servers().next().unwrap().block().occupancy.players, 5);
    assert_eq!(lobby.register("203.0.113.9", &old), RegistrationOutcome::Refreshed);
}

#[test]
fn a_known_server_that_names_another_lobby_moves_there() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1).lobby(support::lobby(7))), RegistrationOutcome::Listed);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.list_of(support::lobby(7)), ["[2001:db8::9]:8190 203.0.113.9:8190 udp server 1"]);
    assert_eq!((lobby.stats().lists, lobby.unlisted(UnlistReason::Moved)), (1, 1));
    // The other family repeats its old registration, which is now the last one.
    assert_eq!(lobby.register("2001:db8::9", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.list().len(), 1);
}

#[test]
fn a_new_transport_applies_to_the_other_endpoint_too() {
    let mut lobby = Lobby::unchecked();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 203.0.113.9:8190 tcp server 1"]);
    assert_eq!(lobby.register("2001:db8::9", &udp(2)), RegistrationOutcome::Listed, "the place is free");
    assert_eq!(lobby.stats().listed, 2);
}

#[test]
fn a_new_transport_does_not_take_the_endpoint_of_another_server() {
    let mut lobby = Lobby::unchecked();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    lobby.register("2001:db8::9", &tcp(2));
    lobby.register("203.0.113.9", &tcp(1));
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 1", "[2001:db8::9]:8190 tcp server 2"]);
}

#[test]
fn a_server_that_changes_port_and_transport_replaces_no_other() {
    let mut lobby = Lobby::unchecked();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &tcp(2));
    lobby.register("203.0.113.9", &tcp(1).port(9000));
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 2", "203.0.113.9:9000 tcp server 1"]);
}

#[test]
fn w100_two_servers_at_one_port_are_reported_to_both() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(10));
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Listed, "it may be a restart");
    lobby.wait(secs(20));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Contested);
    lobby.wait(secs(10));
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Contested);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 2"]);
    assert_eq!((lobby.unlisted(UnlistReason::Replaced), lobby.unlisted(UnlistReason::Contested)), (1, 2));
    let past = lobby.recent_outcomes(ip("203.0.113.9"));
    let last = past.last().unwrap();
    assert_eq!((last.outcome, last.port, last.times), (RegistrationOutcome::Contested, Some(8190), 2));
}

#[test]
fn w100_a_server_that_returns_long_after_its_successor_came_is_not_contested() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &udp(2));
    for _ in 0..5 {
        lobby.wait(secs(30));
        assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Refreshed);
    }
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
}
