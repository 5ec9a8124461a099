//! A program that was halted for a while loses no servers: after a gap in time there is a grace as after a restart.

use crate::support;
use rallypoint_lobby_proto::{CheckResult, RegistrationOutcome};
use support::*;

/// Advances the time without calling the registry, then calls it whenever its timeout is due.
fn halt(lobby: &mut Lobby, seconds: u64) {
    lobby.now += secs(seconds);
    lobby.wait(secs(0));
}

#[test]
fn l10_servers_stay_listed_for_35_seconds_after_a_halt() {
    let mut lobby = Lobby::default();
    lobby.skips_invariants = true;
    for n in 0..5_000 {
        lobby.register(address(n), &udp(n.into()));
    }
    lobby.wait(secs(20));
    halt(&mut lobby, 90);
    assert_eq!((lobby.stats().listed, lobby.stats().gaps), (5_000, 1));
    // Half of them refresh within the 30 seconds that servers have, the others are gone.
    lobby.wait(secs(30));
    (0..2_500).for_each(|n| assert_eq!(lobby.register(address(n), &udp(n.into())), RegistrationOutcome::Refreshed));
    lobby.wait(secs(4));
    assert_eq!(lobby.stats().listed, 5_000);
    lobby.wait(secs(2));
    assert_eq!(lobby.stats().listed, 2_500);
    lobby.check_invariants();
    lobby.wait(secs(65));
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn leases_end_in_time_if_the_registry_is_called_in_time_or_had_no_servers() {
    let mut lobby = Lobby::default();
    lobby.now += secs(1_000);
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(69));
    assert_eq!(lobby.stats().listed, 1);
    lobby.wait(secs(1) + GRAIN);
    assert_eq!((lobby.stats().listed, lobby.stats().gaps), (0, 0));
}

#[test]
fn a_check_that_was_in_flight_during_a_halt_fails_nothing() {
    let mut lobby = Lobby::with(|config| config.checks.keep = secs(10));
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    lobby.wait(secs(30));
    lobby.register("203.0.113.9", &tcp(1));
    let renewed = lobby.checks();
    assert_eq!(renewed.len(), 1);
    halt(&mut lobby, 90);
    lobby.report(renewed[0], CheckResult::Unreachable);
    assert_eq!(lobby.list().len(), 1);
    // It is checked again, and that counts.
    lobby.wait(secs(30));
    assert_eq!(lobby.settle(CheckResult::Unreachable), 1);
    assert_eq!(lobby.list().len(), 0);
}

/// Reports lost datagrams every second.
fn overload(lobby: &mut Lobby, seconds: u64) {
    for _ in 0..seconds {
        lobby.wait(secs(1));
        let now = lobby.now;
        lobby.handle_lost_datagrams(now);
    }
}

#[test]
fn w86_servers_stay_listed_while_the_receive_buffer_overflows_and_35_seconds_longer() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(60));
    overload(&mut lobby, 200);
    lobby.wait(secs(34));
    assert_eq!((lobby.stats().listed, lobby.stats().gaps), (1, 0));
    lobby.wait(secs(2));
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn w86_an_overload_that_does_not_end_extends_leases_by_ten_minutes() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    overload(&mut lobby, 600);
    assert_eq!(lobby.stats().listed, 1);
    overload(&mut lobby, 40);
    assert_eq!(lobby.stats().listed, 0);
    lobby.register("203.0.113.9", &udp(1));
    overload(&mut lobby, 75);
    assert_eq!(lobby.stats().listed, 0, "there is no second time of grace without a pause");
}
