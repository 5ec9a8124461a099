//! A server that says how it can be queried is checked by that query.

mod support;
use rallypoint_lobby_proto::{CheckKind, CheckResult, CheckTarget, RegistrationOutcome};
use support::*;

fn target(addr: &str, kind: CheckKind) -> CheckTarget {
    CheckTarget { addr: addr.parse().unwrap(), kind }
}

#[test]
fn e1_a_udp_server_with_x_query_is_listed_once_it_answered() {
    let mut lobby = Lobby::default();
    let server = udp(1).key("x-query", "bloodmasters");
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Checking);
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190", CheckKind::Bloodmasters)]);
    lobby.verdict(target("203.0.113.9:8190", CheckKind::Bloodmasters), REACHABLE);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 1"]);
}

#[test]
fn e1_the_port_can_be_another_one() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1).key("x-query", "session:45555"));
    lobby.register("2001:db8::9", &udp(1).key("x-query", "session:45555"));
    let checks = ["203.0.113.9:45555", "[2001:db8::9]:45555"].map(|addr| target(addr, CheckKind::Session));
    assert_eq!(lobby.checks(), checks);
    lobby.verdict(checks[0], CheckResult::Unreachable);
    lobby.verdict(checks[1], REACHABLE);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 udp server 1"], "listed is the registered port");
}

#[test]
fn e1_several_servers_may_be_queried_at_one_port() {
    let mut lobby = Lobby::default();
    for id in 1..=32 {
        let server = udp(id).port(8000 + id as u16).key("x-query", "session:45555");
        assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Checking);
    }
    assert_eq!(lobby.settle(REACHABLE), 1);
    assert_eq!(lobby.list().len(), 32, "all of them are told");
}

#[test]
fn e1_what_is_not_a_query_we_know_is_not_checked() {
    let mut lobby = Lobby::default();
    for (id, query) in (1..).zip(["", "gamespy", "session:0", "session:99999", "session:+1", "bloodmasters:"]) {
        assert_eq!(
            lobby.register(address(id), &udp(id.into()).key("x-query", query)),
            RegistrationOutcome::Listed,
            "{query}"
        );
    }
    assert_eq!(lobby.checks(), []);
}

#[test]
fn e1_without_checking_it_is_listed_at_once() {
    let mut lobby = Lobby::unchecked();
    assert_eq!(lobby.register("203.0.113.9", &udp(1).key("x-query", "session")), RegistrationOutcome::Listed);
}

#[test]
fn w14_a_listed_server_that_says_something_new_about_its_queries_is_checked_in_the_background() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1).key("x-query", "session")), RegistrationOutcome::Changed);
    assert_eq!(lobby.list().len(), 1);
    assert_eq!(lobby.settle(REACHABLE), 1, "at once");
    assert_eq!(lobby.register("203.0.113.9", &udp(1).key("x-query", "session:7")), RegistrationOutcome::Changed);
    assert_eq!(lobby.settle(CheckResult::Unreachable), 1);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).key("x-query", "session:7")), RegistrationOutcome::Unreachable);
    assert_eq!(
        lobby.register("203.0.113.9", &udp(1).key("x-query", "session")),
        RegistrationOutcome::Listed,
        "that is known"
    );
    assert_eq!(
        lobby.register("203.0.113.9", &udp(1).key("x-query", "session:7")),
        RegistrationOutcome::Unreachable,
        "so is that"
    );
    assert_eq!(
        lobby.register("203.0.113.9", &udp(1)),
        RegistrationOutcome::Listed,
        "and without a query there is no check"
    );
}

#[test]
fn w14_both_families_are_checked_in_the_new_way() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    lobby.register("203.0.113.9", &udp(1).key("x-query", "session"));
    assert_eq!(lobby.settle(CheckResult::Unreachable), 2);
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn w14_another_port_is_not_listed_before_it_was_checked() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(
        lobby.register("203.0.113.9", &udp(1).port(9000).key("x-query", "session")),
        RegistrationOutcome::Checking
    );
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn e1_x_query_of_a_tcp_server_does_not_replace_the_look_at_its_port() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1).key("x-query", "session:45555"));
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190", CheckKind::Connect)]);
}
