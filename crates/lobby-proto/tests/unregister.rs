//! An unregistered server is removed at once, and late datagrams do not bring it back.

use crate::support;
use rallypoint_lobby_proto::{RegistrationOutcome, UnlistReason};
use support::*;

#[test]
fn l11_the_id_is_sufficient() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    assert_eq!(lobby.unregister("198.51.100.77", 1), RegistrationOutcome::Unregistered);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!((lobby.stats().registered, lobby.unlisted(UnlistReason::Unregistered)), (0, 1));
}

#[test]
fn l11_an_unknown_id_changes_nothing() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.unregister("203.0.113.9", 2), RegistrationOutcome::NotRegistered);
    assert_eq!(lobby.list().len(), 1);
    assert_eq!(lobby.register("203.0.113.10", &udp(2)), RegistrationOutcome::Listed, "and leaves no trace");
}

#[test]
fn l11_an_unregistration_has_exactly_32_bytes() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    let datagram = unregister(1);
    assert_eq!(datagram.len(), 32);
    assert_eq!(lobby.send("203.0.113.9", &datagram[..31]).code(), "malformed");
    assert_eq!(lobby.send("203.0.113.9", &[&datagram[..], b"!"].concat()).code(), "malformed");
    assert_eq!(lobby.list().len(), 1);
}

#[test]
fn l11_a_reordered_registration_does_not_revive_it() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.unregister("203.0.113.9", 1);
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::JustUnregistered);
    lobby.wait(secs(3) - ms(1));
    assert_eq!(lobby.register("2001:db8::9", &udp(1)), RegistrationOutcome::JustUnregistered);
    assert_eq!(lobby.list(), [""; 0]);
    lobby.wait(ms(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
}

#[test]
fn l11_ignored_registrations_do_not_prolong_the_wait() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.unregister("203.0.113.9", 1);
    for _ in 0..3 {
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::JustUnregistered);
        assert_eq!(lobby.unregister("203.0.113.9", 1), RegistrationOutcome::NotRegistered);
        lobby.wait(secs(1));
    }
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
}

#[test]
fn l11_a_restart_with_a_new_id_need_not_wait() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.unregister("203.0.113.9", 1);
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Listed);
}

#[test]
fn l11_a_server_that_is_being_checked_can_unregister() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    let checks = lobby.checks();
    assert_eq!(lobby.unregister("203.0.113.9", 1), RegistrationOutcome::Unregistered);
    lobby.report(checks[0], REACHABLE);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.unlisted(UnlistReason::Unregistered), 0, "it was never in the list");
}
