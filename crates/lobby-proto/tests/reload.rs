//! A new configuration removes only what it has to.

use crate::support;
use rallypoint_lobby_proto::{AddressMap, Config, Mapping, RegistrationOutcome, RegistryConfigError, UnlistReason};
use support::*;

#[test]
fn the_same_configuration_changes_nothing() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    lobby.register("203.0.113.10", &tcp(2));
    lobby.settle(REACHABLE);
    lobby.register("203.0.113.11", &tcp(3));
    lobby.events();
    let (list, stats) = (lobby.list(), lobby.stats());
    lobby.set(|_| {});
    assert_eq!(lobby.list(), list);
    assert_eq!(lobby.stats().registered, stats.registered);
    assert_eq!(lobby.events(), [""; 0]);
    for (from, server) in [("203.0.113.9", udp(1)), ("2001:db8::9", udp(1)), ("203.0.113.10", tcp(2))] {
        assert_eq!(lobby.register(from, &server), RegistrationOutcome::Refreshed);
    }
    assert_eq!(lobby.register("203.0.113.11", &tcp(3)), RegistrationOutcome::Checking);
    assert_eq!(lobby.settle(REACHABLE), 1, "the check that was requested before is made");
    assert_eq!(lobby.list().len(), 3);
}

#[test]
fn an_invalid_configuration_is_rejected_as_a_whole() {
    let mut lobby = Lobby::default();
    let mut wrong = Config { allow_private: false, ..Config::default() };
    wrong.caps.total = 0;
    let error = lobby.registry.set_config(lobby.now, wrong).unwrap_err();
    assert_eq!(error.to_string(), "caps.total must be between 1 and 16000000");
    assert_eq!(*lobby.config(), Config::default());
}

#[test]
fn every_field_has_its_range() {
    let wrong = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        match config.validate() {
            Err(RegistryConfigError::OutOfRange { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(wrong(|config| config.lease = ms(999)), "lease");
    assert_eq!(wrong(|config| config.lease = secs(86_401)), "lease");
    assert_eq!(wrong(|config| config.max_registration = 60), "max_registration");
    assert_eq!(wrong(|config| config.caps.per_address = 0), "caps.per_address");
    assert_eq!(wrong(|config| config.caps.per_list = 0), "caps.per_list");
    assert_eq!(wrong(|config| config.caps.total = 16_000_001), "caps.total");
    assert_eq!(wrong(|config| config.caps.lists = 0), "caps.lists");
    assert_eq!(wrong(|config| config.checks.timeout = ms(99)), "checks.timeout");
    assert_eq!(wrong(|config| config.checks.keep = secs(0)), "checks.keep");
    assert_eq!(wrong(|config| config.checks.retry = secs(0)), "checks.retry");
    assert_eq!(wrong(|config| config.checks.in_flight = 0), "checks.in_flight");
    assert_eq!(wrong(|config| config.checks.waiting = 0), "checks.waiting");
    assert_eq!(wrong(|config| config.checks.per_address = 0), "checks.per_address");
    assert_eq!(wrong(|config| config.checks.per_network = 0), "checks.per_network");
    assert_eq!(Config::default().validate(), Ok(()));
}

#[test]
fn l10_a_new_lease_applies_from_the_next_registration() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.10", &udp(2));
    lobby.set(|config| config.lease = secs(10));
    assert_eq!(lobby.register("203.0.113.10", &udp(2)), RegistrationOutcome::Refreshed);
    lobby.wait(secs(10) - ms(1));
    assert_eq!(lobby.stats().listed, 2);
    lobby.wait(ms(1) + GRAIN);
    assert_eq!(lobby.stats().listed, 1, "the shorter one is as exact as the longer one");
    lobby.wait(secs(60));
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn l10_a_lease_can_become_much_shorter() {
    let mut lobby = Lobby::with(|config| config.lease = secs(86_400));
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(1));
    lobby.set(|config| config.lease = secs(1));
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(1) + GRAIN);
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn a_lobby_that_becomes_public_removes_private_endpoints() {
    let mut lobby = Lobby::default();
    lobby.register("192.168.0.1", &udp(1));
    lobby.register("192.168.0.2", &udp(2));
    lobby.register("2620:fe::2", &udp(2));
    lobby.set(|config| config.allow_private = false);
    assert_eq!(lobby.list(), ["[2620:fe::2]:8190 udp server 2"]);
    assert_eq!((lobby.stats().registered, lobby.unlisted(UnlistReason::Banned)), (1, 1));
}

#[test]
fn a_new_address_map_applies_from_the_next_registration() {
    let mut lobby = Lobby::default();
    lobby.register("192.168.0.1", &udp(1));
    let mapping = Mapping { from: "192.168.0.0/16".parse().unwrap(), port: None, to: ip("203.0.113.5"), to_port: None };
    lobby.set(|config| config.address_map = [mapping].into_iter().collect());
    assert_eq!(lobby.list(), ["192.168.0.1:8190 udp server 1"]);
    assert_eq!(lobby.register("192.168.0.1", &udp(1)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["203.0.113.5:8190 udp server 1"]);
    lobby.set(|config| config.address_map = AddressMap::default());
    assert_eq!(lobby.register("192.168.0.1", &udp(1)), RegistrationOutcome::Changed);
    assert_eq!(lobby.list(), ["192.168.0.1:8190 udp server 1"]);
}

#[test]
fn l12_a_new_address_map_needs_no_new_check() {
    let mut lobby = Lobby::with(|config| config.checks.keep = secs(1));
    lobby.register("192.168.0.1", &tcp(1));
    lobby.settle(REACHABLE);
    lobby.wait(secs(2));
    let mapping = Mapping { from: "192.168.0.0/16".parse().unwrap(), port: None, to: ip("203.0.113.5"), to_port: None };
    lobby.set(|config| config.address_map = [mapping].into_iter().collect());
    assert_eq!(lobby.register("192.168.0.1", &tcp(1)), RegistrationOutcome::Changed);
}

#[test]
fn budgets_that_were_used_stay_used() {
    let mut lobby = Lobby::default();
    assert!((0..1_000).any(|n| !lobby.register("203.0.113.9", &udp(1).players(n)).is_listed()));
    lobby.set(|_| {});
    assert_eq!(lobby.register("203.0.113.9", &udp(1).players(9_999)).code(), "over_budget");
}

#[test]
fn l11_tombstones_survive_a_reload() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.unregister("203.0.113.9", 1);
    lobby.set(|_| {});
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::JustUnregistered);
}
