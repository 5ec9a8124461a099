//! Recent outcomes are kept by source address.

use crate::support;
use rallypoint_lobby_proto::RegistrationOutcome;
use support::*;

fn codes(lobby: &Lobby, from: &str) -> Vec<(&'static str, u32, Option<u16>)> {
    lobby.recent_outcomes(ip(from)).iter().map(|past| (past.outcome.code(), past.times, past.port)).collect()
}

#[test]
fn outcomes_are_in_order_with_port_and_repeats() {
    let mut lobby = Lobby::default();
    lobby.send("203.0.113.9", b"nonsense");
    lobby.wait(secs(1));
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(1));
    let last = lobby.now;
    lobby.unregister("203.0.113.9", 1);
    lobby.wait(secs(1));
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(
        codes(&lobby, "203.0.113.9"),
        [
            ("malformed", 1, None),
            ("listed", 1, Some(8190)),
            ("unregistered", 1, Some(8190)),
            ("just_unregistered", 2, Some(8190)),
        ]
    );
    assert_eq!(lobby.recent_outcomes(ip("203.0.113.9"))[2].at, last);
    assert_eq!(codes(&lobby, "203.0.113.10"), []);
}

#[test]
fn refreshes_are_not_kept() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(codes(&lobby, "203.0.113.9"), [("listed", 1, Some(8190))]);
}

#[test]
fn only_the_latest_outcomes_are_kept() {
    let mut lobby = Lobby::default();
    for port in 1..=20 {
        lobby.register("203.0.113.9", &udp(port.into()).port(port));
    }
    let ports: Vec<_> = lobby.recent_outcomes(ip("203.0.113.9")).iter().filter_map(|past| past.port).collect();
    assert_eq!(ports, (13..=20).collect::<Vec<_>>());
}

#[test]
fn a_flood_of_malformed_datagrams_does_not_displace_registrations() {
    let mut lobby = Lobby::with(|config| config.limit_exempt = networks(&["0.0.0.0/0"]));
    assert_eq!(lobby.register("203.0.113.9", &tcp(1)), RegistrationOutcome::Checking);
    for n in 0..20_000 {
        lobby.send(address(n), b"nonsense");
    }
    assert_eq!(codes(&lobby, "203.0.113.9"), [("checking", 1, Some(8190))]);
}
