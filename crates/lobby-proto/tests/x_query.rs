//! A server with `x-query` is checked by that query.

use crate::support;
use rallypoint_lobby_proto::{CheckKind, CheckResult, CheckTarget, RegistrationOutcome};
use rallypoint_wire::query::Protocol;
use support::*;

fn target(addr: &str, kind: CheckKind) -> CheckTarget {
    CheckTarget { addr: addr.parse().unwrap(), kind }
}

#[test]
fn e1_a_udp_server_with_x_query_is_listed_once_it_has_replied() {
    let mut lobby = Lobby::default();
    let server = udp(1).key("x-query", "bloodmasters");
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Checking);
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190", CheckKind::Query(Protocol::Bloodmasters))]);
    lobby.report(target("203.0.113.9:8190", CheckKind::Query(Protocol::Bloodmasters)), REACHABLE);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 udp server 1"]);
}

#[test]
fn e1_the_query_port_can_differ() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1).key("x-query", "session:45555"));
    lobby.register("2001:db8::9", &udp(1).key("x-query", "session:45555"));
    let checks =
        ["203.0.113.9:45555", "[2001:db8::9]:45555"].map(|addr| target(addr, CheckKind::Query(Protocol::Session)));
    assert_eq!(lobby.checks(), checks);
    lobby.report(checks[0], CheckResult::Unreachable);
    lobby.report(checks[1], REACHABLE);
    assert_eq!(lobby.list(), ["[2001:db8::9]:8190 udp server 1"], "listed is the registered port");
}

#[test]
fn e1_several_servers_can_share_a_query_port() {
    let mut lobby = Lobby::default();
    for id in 1..=32 {
        let server = udp(id).port(8000 + id as u16).key("x-query", "session:45555");
        assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Checking);
    }
    assert_eq!(lobby.settle(REACHABLE), 1);
    assert_eq!(lobby.list().len(), 32, "all of them get the result");
}

#[test]
fn e1_an_unknown_query_protocol_is_not_checked() {
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
fn e1_without_checks_it_is_listed_at_once() {
    let mut lobby = Lobby::unchecked();
    assert_eq!(lobby.register("203.0.113.9", &udp(1).key("x-query", "session")), RegistrationOutcome::Listed);
}

#[test]
fn w14_a_listed_server_with_a_new_x_query_is_checked_in_the_background() {
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
fn w14_both_families_are_checked_by_the_new_query() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("2001:db8::9", &udp(1));
    lobby.register("203.0.113.9", &udp(1).key("x-query", "session"));
    assert_eq!(lobby.settle(CheckResult::Unreachable), 2);
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn w14_a_new_port_is_not_listed_before_it_is_checked() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(
        lobby.register("203.0.113.9", &udp(1).port(9000).key("x-query", "session")),
        RegistrationOutcome::Checking
    );
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn e1_x_query_does_not_replace_the_connection_to_a_tcp_server() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &tcp(1).key("x-query", "session:45555"));
    assert_eq!(lobby.checks(), [target("203.0.113.9:8190", CheckKind::Connect)]);
}
