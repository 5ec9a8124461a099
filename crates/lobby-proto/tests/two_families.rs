//! IPv4 and IPv6 of one server are one entry.

use crate::support;
use rallypoint_lobby_proto::RegistrationOutcome;
use support::*;

const BOTH: &str = "[2001:db8::9]:8190 203.0.113.9:8190 udp server 1";

#[test]
fn l9_both_families_are_in_one_entry() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("2001:db8::9", &udp(1)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), [BOTH]);
    assert_eq!((lobby.stats().registered, lobby.stats().listed), (1, 1));
}

#[test]
fn l9_each_endpoint_has_its_own_port() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1).port(9000));
    assert_eq!(lobby.list(), ["[2001:db8::9]:9000 203.0.113.9:8190 udp server 1"]);
}

#[test]
fn l9_each_endpoint_has_its_own_lease() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(30));
    lobby.register("2001:db8::9", &udp(1));
    lobby.wait(secs(40) - ms(1));
    assert_eq!(lobby.list(), [BOTH]);
    lobby.wait(ms(1) + GRAIN);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 udp server 1"]);
    lobby.wait(secs(30) - ms(2) - GRAIN);
    assert_eq!(lobby.stats().listed, 1);
    lobby.wait(ms(2) + GRAIN);
    assert_eq!((lobby.stats().listed, lobby.stats().registered), (0, 0));
}

#[test]
fn l9_a_refresh_extends_only_its_own_endpoint() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    for _ in 0..4 {
        lobby.wait(secs(30));
        lobby.register("2001:db8::9", &udp(1));
    }
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 udp server 1"]);
    // It returns.
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), [BOTH]);
}

#[test]
fn l9_mapped_ipv4_counts_as_ipv4() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register("::ffff:203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 1"]);
    assert_eq!(lobby.recent_outcomes(ip("::ffff:203.0.113.9")).len(), 1);
}

#[test]
fn l9_one_family_is_listed_while_the_other_is_checked() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    assert_eq!(lobby.register("2001:db8::9", &tcp(1)), RegistrationOutcome::Checking);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 1"]);
    lobby.settle(rallypoint_lobby_proto::CheckResult::Unreachable);
    assert_eq!(lobby.register("2001:db8::9", &tcp(1)), RegistrationOutcome::Unreachable);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 1"]);
    // Its only listed endpoint expires, the other one is still registered.
    for _ in 0..3 {
        lobby.wait(secs(30));
        lobby.register("2001:db8::9", &tcp(1));
        lobby.settle(rallypoint_lobby_proto::CheckResult::Unreachable);
    }
    assert_eq!((lobby.stats().listed, lobby.stats().registered), (0, 1));
}
