//! A TCP server is listed only if the lobby can reach it.

use crate::support;
use rallypoint_lobby_proto::{
    CheckKind, CheckRequest, CheckResult, CheckTarget, Config, RegistrationOutcome, UnlistReason,
};
use std::time::Instant;
use support::*;

fn target(addr: &str) -> CheckTarget {
    CheckTarget { addr: addr.parse().unwrap(), kind: CheckKind::Connect }
}

#[test]
fn l12_a_tcp_server_is_listed_after_a_successful_connection() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.check_requests(), [CheckRequest { target: target("203.0.113.9:8190"), timeout: ms(1_900) }]);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    lobby.report(target("203.0.113.9:8190"), REACHABLE);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 1"]);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Refreshed);
    assert_eq!(lobby.lists().list(&LOBBY).servers().next().unwrap().latency(), Some(ms(20)));
    let past: Vec<_> = lobby.recent_outcomes(ip("203.0.113.9")).iter().map(|past| past.outcome).collect();
    assert_eq!(past, [RegistrationOutcome::Checking, RegistrationOutcome::Listed]);
}

#[test]
fn l12_an_unreachable_server_is_not_listed_and_its_owner_can_see_why() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(CheckResult::Unreachable);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Unreachable);
    assert_eq!(lobby.checks(), []);
    assert_eq!(lobby.list(), [""; 0]);
    let past = lobby.recent_outcomes(ip("203.0.113.9"));
    assert_eq!(past.last().unwrap().outcome, RegistrationOutcome::Unreachable);
    assert_eq!(past.last().unwrap().port, Some(8190));
}

#[test]
fn l12_a_closed_port_is_told_apart_from_silence() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(CheckResult::Refused);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::PortClosed);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.recent_outcomes(ip("203.0.113.9")).last().unwrap().outcome, RegistrationOutcome::PortClosed);
    lobby.wait(secs(21));
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    lobby.settle(CheckResult::Unreachable);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Unreachable);
}

#[test]
fn l12_the_owner_can_see_how_old_a_failed_check_is_and_when_it_is_repeated() {
    let mut lobby = Lobby::default();
    let times = |lobby: &Lobby| {
        let past = lobby.recent_outcomes(ip("203.0.113.9"));
        lobby.failed_check_times(ip("203.0.113.9"), past.last().unwrap())
    };
    lobby.register("203.0.113.9", &tcp(1));
    assert_eq!(times(&lobby), None, "a check that has no result yet");
    lobby.settle(CheckResult::Refused);
    let failed_at = lobby.now;
    lobby.wait(secs(12));
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::PortClosed);
    let shown = times(&lobby).unwrap();
    let is_near = |one: Instant, other: Instant| one <= other + GRAIN && other <= one + GRAIN;
    assert!(is_near(shown.failed_at, failed_at) && is_near(shown.repeatable_at, failed_at + secs(20)), "{shown:?}");
    lobby.wait(secs(9));
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    assert_eq!(times(&lobby), None, "the server is listed");
}

#[test]
fn w11_an_unreachable_server_is_checked_again_after_20_s() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(CheckResult::Unreachable);
    lobby.wait(secs(20) - GRAIN);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Unreachable);
    lobby.wait(2 * GRAIN);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    assert_eq!(lobby.settle(REACHABLE), 1);
    assert_eq!(lobby.list().len(), 1);
}

#[test]
fn l12_a_udp_server_is_listed_at_once() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.checks(), []);
}

#[test]
fn l12_a_result_is_valid_for_5_minutes() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    for n in 0..10 {
        assert_eq!(lobby.checks(), [], "after {} s", 30 * n);
        assert!(lobby.register("203.0.113.9", &tcp(1)).is_listed());
        lobby.wait(secs(30) - ms(100));
    }
    assert_eq!(lobby.checks(), [], "before 5 minutes");
    lobby.wait(secs(1) + GRAIN);
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190")], "after 5 minutes");
}

/// A server that was listed 5 minutes ago, while its check is repeated.
fn being_checked_again() -> Lobby {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    for _ in 0..10 {
        lobby.wait(secs(30) + ms(25));
        assert!(lobby.register("203.0.113.9", &tcp(1)).is_listed());
    }
    lobby
}

#[test]
fn l12_a_server_stays_listed_while_it_is_checked_again() {
    let mut lobby = being_checked_again();
    assert_eq!(lobby.list().len(), 1);
    lobby.events();
    assert_eq!(lobby.stats().checks.in_flight, 1);
    lobby.report(target("203.0.113.9:8190"), CheckResult::Reachable(ms(99)));
    assert_eq!(lobby.list().len(), 1);
    assert_eq!(lobby.events(), [""; 0], "nothing has changed");
    assert_eq!(lobby.lists().list(&LOBBY).servers().next().unwrap().latency(), Some(ms(99)));
}

#[test]
fn l12_a_server_is_unlisted_if_a_later_check_fails() {
    let mut lobby = being_checked_again();
    assert_eq!(lobby.settle(CheckResult::Unreachable), 1);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.unlisted(UnlistReason::Unreachable), 1);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Unreachable);
    lobby.wait(secs(30) + GRAIN);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    lobby.settle(REACHABLE);
    assert_eq!(lobby.list().len(), 1);
}

#[test]
fn l12_a_udp_server_that_turns_into_a_tcp_server_is_checked() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    assert_eq!(lobby.list(), [""; 0], "neither endpoint was ever reached by TCP");
    assert_eq!(lobby.settle(REACHABLE), 2);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 203.0.113.9:8190 tcp server 1"]);
}

#[test]
fn l12_another_port_or_address_is_another_check() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    assert_eq!(lobby.register("203.0.113.9", &tcp(1).port(8191)), RegistrationOutcome::Checking);
    assert_eq!(lobby.checks(), [target("203.0.113.9:8191")]);
    assert_eq!(lobby.register("203.0.113.10", &tcp(1).port(8191)), RegistrationOutcome::Checking);
    assert_eq!(lobby.checks(), [target("203.0.113.10:8191")]);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(
        lobby.register("203.0.113.9", &tcp(1)),
        RegistrationOutcome::Listed,
        "back at an address with a known result"
    );
    // The results of the others arrive, but no entry waits for them any more.
    lobby.report(target("203.0.113.9:8191"), CheckResult::Unreachable);
    lobby.report(target("203.0.113.10:8191"), CheckResult::Unreachable);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 1"]);
}

#[test]
fn l12_exempt_networks_and_a_lobby_that_does_not_check_list_at_once() {
    let mut lobby = Lobby::with(|config| config.checks.exempt = networks(&["10.0.0.0/8"]));
    assert_eq!(lobby.register("10.1.2.3", &tcp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("203.0.113.9", &tcp(2)), RegistrationOutcome::Checking);
    lobby.set(|config| config.checks.enabled = false);
    assert_eq!(lobby.register("203.0.113.9", &tcp(2)), RegistrationOutcome::Listed);
}

#[test]
fn l12_a_target_has_one_check_however_many_servers_wait_for_it() {
    let mut lobby = Lobby::default();
    for id in 1..=20 {
        lobby.register("203.0.113.9", &tcp(id));
    }
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190")]);
    lobby.report(target("203.0.113.9:8190"), REACHABLE);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp server 20"]);
}

#[test]
fn l12_checks_in_flight_and_waiting_are_bounded() {
    let mut lobby = Lobby::with(|config| {
        (config.checks.in_flight, config.checks.waiting) = (3, 20);
        config.caps.per_address = 1_000;
    });
    let outcomes: Vec<_> = (0..10).map(|n| lobby.register("203.0.113.9", &tcp(n).port(1 + n as u16)).code()).collect();
    assert_eq!(outcomes[..5], ["checking"; 5], "a quarter of the places is for new targets");
    assert_eq!(outcomes[5..], ["check_busy"; 5]);
    assert_eq!(
        lobby.register("198.51.100.9", &tcp(100)),
        RegistrationOutcome::Checking,
        "a network that has none takes one"
    );
    assert_eq!(lobby.register("192.0.2.9", &tcp(101)), RegistrationOutcome::Checking);
    assert_eq!(lobby.stats().checks.waiting, 5);
    let first = lobby.checks();
    assert_eq!(first.len(), 3, "one of each network");
    assert_eq!((lobby.stats().checks.in_flight, lobby.stats().checks.waiting), (3, 2));
    lobby.report(target("203.0.113.9:1"), REACHABLE);
    assert_eq!(lobby.checks(), [target("203.0.113.9:2")], "one is done, the next one starts");
    // Those beyond the bound are checked with their next registration, although it is unchanged.
    assert_eq!(lobby.register("203.0.113.9", &tcp(9).port(10)), RegistrationOutcome::Checking);
    assert_eq!(lobby.stats().checks.refused, 7);
}

#[test]
fn l12_checks_per_minute_are_bounded_by_address_and_network() {
    let mut lobby = Lobby::with(|config| {
        (config.checks.per_address, config.checks.per_network) = (5, 20);
        config.caps.per_address = 1_000;
    });
    let per_address = (0..20)
        .filter(|n| lobby.register("203.0.113.9", &tcp(*n).port(8000 + *n as u16)) == RegistrationOutcome::Checking);
    assert_eq!(per_address.count(), 5);
    let per_network = (10..100u8)
        .filter(|n| {
            lobby.register(std::net::IpAddr::from([203, 0, 113, *n]), &tcp(1_000 + u128::from(*n)))
                == RegistrationOutcome::Checking
        })
        .count();
    assert_eq!(per_network, 15, "five of the twenty were used up by the first address");
    assert_eq!(lobby.register("198.51.100.9", &tcp(5_000)), RegistrationOutcome::Checking, "another network");
    lobby.wait(secs(61));
    assert_eq!(lobby.register("203.0.113.9", &tcp(6_000).port(9_000)), RegistrationOutcome::Checking, "a minute later");
}

#[test]
fn l12_a_known_result_needs_no_check() {
    let mut lobby = Lobby::with(|config| (config.checks.per_address, config.checks.per_network) = (1, 1));
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(REACHABLE);
    for id in 2..10 {
        assert_eq!(lobby.register("203.0.113.9", &tcp(id)), RegistrationOutcome::Listed);
    }
}

#[test]
fn l12_a_busy_lobby_keeps_listed_servers() {
    let mut lobby = Lobby::default();
    for n in 0..10 {
        lobby.register(address(n), &tcp(n.into()));
    }
    lobby.settle(REACHABLE);
    // One check in flight, and one place for repeated checks: too few for ten servers.
    lobby.set(|config| (config.checks.in_flight, config.checks.waiting) = (1, 4));
    let refused = lobby.stats().checks.refused;
    for _ in 0..40 {
        lobby.wait(secs(30));
        lobby.checks().into_iter().for_each(|target| lobby.report(target, REACHABLE));
        for n in 0..10 {
            assert!(lobby.register(address(n), &tcp(n.into())).is_listed());
        }
    }
    assert_eq!(lobby.list().len(), 10);
    assert!(lobby.stats().checks.refused > refused, "it was busy");
}

#[test]
fn l12_checks_without_waiting_entries_are_skipped() {
    let mut lobby = Lobby::with(|config| config.checks.in_flight = 1);
    (0..100).for_each(|n| assert_eq!(lobby.register(address(n), &tcp(n.into())), RegistrationOutcome::Checking));
    assert_eq!(lobby.checks().len(), 1);
    lobby.wait(secs(71));
    assert_eq!(lobby.stats().registered, 0, "a flood that has passed");
    lobby.register("203.0.113.9", &tcp(1_000));
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190")]);
    assert_eq!(lobby.stats().checks.waiting, 0);
}

#[test]
fn l12_a_check_without_a_report_counts_as_failed() {
    let mut lobby = Lobby::with(|config| config.checks.in_flight = 1);
    lobby.register("203.0.113.9", &tcp(1));
    assert_eq!(lobby.checks().len(), 1);
    lobby.wait(secs(20));
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Unreachable);
    lobby.register("198.51.100.9", &tcp(2));
    assert_eq!(lobby.checks(), [target("198.51.100.9:8190")], "and does not block the others");
    lobby.report(target("203.0.113.9:8190"), REACHABLE);
    assert_eq!(lobby.list(), [""; 0], "too late");
}

#[test]
fn l12_a_lost_check_of_a_removed_server_is_forgotten() {
    let mut lobby = Lobby::with(|config| config.checks.in_flight = 1);
    lobby.register("203.0.113.9", &tcp(1));
    assert_eq!(lobby.checks().len(), 1);
    lobby.unregister("203.0.113.9", 1);
    lobby.wait(secs(20));
    assert_eq!(lobby.stats().checks.in_flight, 0);
}

#[test]
fn l12_a_result_that_was_not_requested_is_ignored() {
    let mut lobby = Lobby::default();
    lobby.report(target("203.0.113.9:8190"), REACHABLE);
    lobby.register("203.0.113.9", &tcp(1));
    lobby.report(target("203.0.113.9:8190"), REACHABLE);
    assert_eq!(lobby.list(), [""; 0], "it was asked for, but the request was not even taken");
    assert_eq!(lobby.settle(REACHABLE), 1);
    assert_eq!(lobby.list().len(), 1);
}

#[test]
fn l12_enabling_checks_keeps_listed_servers() {
    let mut lobby = Lobby::unchecked();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.set(|config| config.checks = Config::default().checks);
    for _ in 0..3 {
        lobby.wait(secs(30));
        assert!(lobby.register("203.0.113.9", &tcp(1)).is_listed());
    }
    assert_eq!(lobby.settle(CheckResult::Unreachable), 1, "but they are checked in the background");
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn l12_a_check_that_could_not_be_made_has_no_result() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1));
    lobby.settle(CheckResult::Unknown);
    assert_eq!(lobby.recent_outcomes(ip("203.0.113.9")).last().unwrap().outcome, RegistrationOutcome::CheckBusy);
    assert_eq!(lobby.list(), [""; 0]);
    // The next registration requests a check at once.
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    assert_eq!(lobby.settle(REACHABLE), 1);
    assert_eq!(lobby.list().len(), 1);
    // A listed server stays listed, and is checked again in the background.
    let mut tries = 0;
    for _ in 0..20 {
        lobby.wait(secs(30));
        lobby.register("203.0.113.9", &tcp(1));
        tries += lobby.settle(CheckResult::Unknown);
    }
    assert!((3..=20).contains(&tries), "{tries}");
    assert_eq!(lobby.list().len(), 1);
    assert_eq!(lobby.stats().checks.unreachable, 0);
}
