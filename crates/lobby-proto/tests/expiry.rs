//! A server that stops refreshing expires, and not before its lease ends.

use crate::support;
use rallypoint_lobby_proto::{RegistrationOutcome, UnlistReason};
use support::*;

#[test]
fn l10_a_server_expires_70_s_after_its_last_registration() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
    lobby.wait(secs(70) - ms(1));
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 1"]);
    lobby.wait(ms(1));
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.stats().registered, 0);
    assert_eq!(lobby.unlisted(UnlistReason::Expired), 1);
}

#[test]
fn l10_a_server_expires_at_most_a_quarter_of_a_second_late() {
    let mut lobby = Lobby::default();
    lobby.wait(ms(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
    lobby.wait(secs(70));
    assert_eq!(lobby.stats().listed, 1);
    lobby.wait(GRAIN - ms(1));
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn l10_a_refresh_extends_the_lease() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    for _ in 0..100 {
        lobby.wait(secs(69));
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
    }
    assert_eq!(lobby.stats().listed, 1);
    lobby.wait(secs(70) + GRAIN);
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn l10_a_changed_registration_extends_the_lease() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    for players in 1..10 {
        lobby.wait(secs(60));
        assert_eq!(lobby.register("203.0.113.9", &udp(1).players(players)), RegistrationOutcome::Changed);
    }
}

#[test]
fn l10_a_refused_registration_does_not_extend_the_lease() {
    let mut lobby = Lobby::with(|config| config.max_registration = 200);
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(60));
    assert_eq!(lobby.register("203.0.113.9", &udp(1).name(&"x".repeat(200))), RegistrationOutcome::TooLarge);
    assert_eq!(lobby.send("203.0.113.9", &udp(1).datagram()[..60]).code(), "malformed");
    lobby.wait(secs(10) + GRAIN);
    assert_eq!(lobby.stats().registered, 0);
}

#[test]
fn l10_the_lease_can_be_configured() {
    for lease in [secs(1), secs(10), secs(500), secs(86_400)] {
        let mut lobby = Lobby::with(|config| config.lease = lease);
        lobby.register("203.0.113.9", &udp(1));
        lobby.wait(lease - ms(1));
        assert_eq!(lobby.stats().listed, 1, "{lease:?}");
        lobby.wait(ms(1) + GRAIN);
        assert_eq!(lobby.stats().listed, 0, "{lease:?}");
    }
}

#[test]
fn a_server_that_returns_after_a_long_pause_has_a_full_lease() {
    let mut lobby = Lobby::default();
    for _ in 0..3 {
        // There is nothing to do, so the registry is not called.
        lobby.now += secs(1_000);
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
        lobby.wait(secs(70) - ms(1));
        assert_eq!(lobby.stats().listed, 1);
        lobby.wait(ms(1) + GRAIN);
        assert_eq!(lobby.stats().listed, 0);
    }
}

#[test]
fn after_a_late_timeout_all_leases_end_together() {
    let mut lobby = Lobby::default();
    for n in 0..1_000 {
        lobby.register(address(n), &udp(n.into()));
    }
    lobby.now += secs(10_000);
    lobby.wait(secs(35) + GRAIN);
    assert_eq!(lobby.stats().registered, 0);
    assert_eq!(lobby.unlisted(UnlistReason::Expired), 1_000);
}

#[test]
fn thousands_of_leases_that_end_together_expire_within_a_grain() {
    let mut lobby = Lobby::default();
    let now = lobby.now;
    for n in 0..10_000 {
        let from = std::net::SocketAddr::new(address(n), 9);
        lobby.registry.handle_datagram(now, from, &udp(n.into()).datagram());
    }
    lobby.wait(secs(70) - ms(1));
    assert_eq!(lobby.stats().listed, 10_000);
    lobby.wait(ms(1) + GRAIN);
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn a_reused_slot_gets_a_full_lease() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(69));
    lobby.unregister("203.0.113.9", 1);
    lobby.register("203.0.113.9", &udp(2));
    lobby.wait(secs(70) - ms(1));
    assert_eq!(lobby.stats().listed, 1);
    lobby.wait(ms(1) + GRAIN);
    assert_eq!(lobby.stats().listed, 0);
}
