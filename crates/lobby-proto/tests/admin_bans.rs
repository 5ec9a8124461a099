//! Bans that the operator adds while the lobby runs.

use crate::support;
use rallypoint_lobby_proto::{Ban, BanList, BanSubject, Config, RegistrationOutcome, UnlistReason, UnlistedServer};
use rallypoint_wire::lobby::Transport;
use std::net::SocketAddr;
use support::*;

fn bans(network: &str) -> BanList {
    let subject = BanSubject::Network(network.parse().unwrap());
    permanent([Ban { subject, reason: "spam".into(), until: None }])
}

#[test]
fn bans_of_the_operator_and_of_the_configuration_are_independent() {
    let mut lobby = Lobby::new(Config { bans: bans("203.0.113.0/24"), ..Config::default() });
    assert_eq!(lobby.register("198.51.100.7", &udp(1)), RegistrationOutcome::Listed);
    lobby.registry.set_admin_bans(lobby.now, bans("198.51.100.0/24"));
    assert_eq!((lobby.registry.stats().listed, lobby.unlisted(UnlistReason::Banned)), (0, 1), "it is removed at once");
    assert_eq!(lobby.register("198.51.100.7", &udp(1)), RegistrationOutcome::Banned);
    let past = lobby.registry.recent_outcomes(ip("198.51.100.7"));
    assert_eq!(past.last().unwrap().reason.as_deref(), Some("spam"), "the reason is reported");
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Banned);
    lobby.set(|config| config.bans = BanList::default());
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("198.51.100.7", &udp(1)), RegistrationOutcome::Banned, "a reload does not touch these");
    lobby.registry.set_admin_bans(lobby.now, BanList::default());
    assert_eq!(lobby.register("198.51.100.7", &udp(1)), RegistrationOutcome::Listed);
}

/// Its owner need not wait for the next registration to find out.
#[test]
fn a_ban_is_an_outcome_of_the_servers_that_it_removes() {
    let mut lobby = Lobby::default();
    lobby.register("198.51.100.7", &udp(1).port(8_190));
    lobby.register("198.51.100.7", &udp(2).port(8_191));
    lobby.register("203.0.113.9", &udp(3));
    lobby.registry.set_admin_bans(lobby.now, bans("198.51.100.0/24"));
    let past = lobby.registry.recent_outcomes(ip("198.51.100.7"));
    let banned = past.iter().filter(|past| past.outcome == RegistrationOutcome::Banned);
    let mut banned: Vec<_> = banned.map(|past| (past.port, past.reason.as_deref())).collect();
    banned.sort_unstable();
    assert_eq!(banned, [(Some(8_190), Some("spam")), (Some(8_191), Some("spam"))]);
    assert_eq!(lobby.registry.recent_outcomes(ip("203.0.113.9")).len(), 1, "other servers have no further outcome");
}

/// Until the server registers again, its last outcome is that it is banned.
#[test]
fn a_ban_that_was_lifted_is_not_shown_as_one_that_is_in_force() {
    let mut lobby = Lobby::default();
    let refusals = |lobby: &Lobby| -> Vec<(Option<u16>, bool)> {
        let mut past = lobby.registry.recent_outcomes(ip("198.51.100.7"));
        lobby.registry.mark_former_bans(lobby.now, ip("198.51.100.7"), &mut past);
        let banned = past.iter().filter(|past| past.outcome == RegistrationOutcome::Banned);
        banned.map(|past| (past.port, past.is_refusal())).collect()
    };
    lobby.registry.set_admin_bans(lobby.now, bans("198.51.100.0/24"));
    lobby.wait(secs(1));
    assert_eq!(lobby.register("198.51.100.7", &udp(1).port(8_190)), RegistrationOutcome::Banned);
    assert_eq!(refusals(&lobby), [(Some(8_190), true)], "other servers at the address have other ports");
    lobby.wait(secs(1));
    // Another ban is lifted, or the configuration is loaded again.
    lobby.registry.set_admin_bans(lobby.now, bans("198.51.100.0/25"));
    assert_eq!(refusals(&lobby), [(Some(8_190), true)]);
    lobby.registry.set_admin_bans(lobby.now, BanList::default());
    assert_eq!(refusals(&lobby), [(Some(8_190), false)]);
    let named = Ban { subject: BanSubject::name("casino").unwrap(), reason: "".into(), until: None };
    lobby.registry.set_admin_bans(lobby.now, permanent([named]));
    lobby.wait(secs(1));
    assert_eq!(lobby.register("198.51.100.7", &udp(1).port(8_190).name("casino")), RegistrationOutcome::Banned);
    assert_eq!(refusals(&lobby), [(Some(8_190), false), (Some(8_190), true)]);
}

#[test]
fn a_banned_server_can_return_when_the_ban_ends() {
    let mut lobby = Lobby::default();
    let (server, neighbour) = (udp(1).port(8_190), udp(2).port(8_191));
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("203.0.113.9", &neighbour), RegistrationOutcome::Listed);
    let at: SocketAddr = "203.0.113.9:8190".parse().unwrap();
    lobby.registry.publish(lobby.now);
    let directory = lobby.registry.lists().snapshot();
    let mut all = directory.lists().flat_map(|(_, list)| list.servers());
    let id = all.find(|listing| listing.block().endpoints().any(|endpoint| endpoint == at)).unwrap().public_id();
    let banned = UnlistedServer { id, name: String::new(), transport: Transport::Udp, addresses: vec![at] };
    let ban = Ban { subject: BanSubject::Server(banned), reason: "wrong game".into(), until: Some(UTC + secs(600)) };
    lobby.registry.set_admin_bans(lobby.now, BanList::new([ban], lobby.now, UTC));
    assert_eq!((lobby.registry.stats().listed, lobby.unlisted(UnlistReason::Banned)), (1, 1));
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Banned);
    let again = udp(77).port(8_190);
    assert_eq!(
        lobby.register("203.0.113.9", &again),
        RegistrationOutcome::Banned,
        "it was restarted at the same endpoint"
    );
    assert_eq!(lobby.register("203.0.113.10", &server), RegistrationOutcome::Banned, "the same server elsewhere");
    for source in ["203.0.113.9", "203.0.113.10"] {
        let past = lobby.registry.recent_outcomes(ip(source));
        assert_eq!(past.last().unwrap().reason.as_deref(), Some("wrong game"), "the reason is reported");
    }
    assert_eq!(lobby.register("203.0.113.10", &again), RegistrationOutcome::Listed, "another server");
    assert_eq!(lobby.register("203.0.113.9", &neighbour), RegistrationOutcome::Refreshed);
    lobby.wait(secs(601));
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Listed);
}
