//! Servers that do not register, and that the lobby queries.

use crate::support;
use rallypoint_lobby_proto::{
    Ban, BanSubject, Config, ListingOrigin, ProbedOutcome, ProbedServer, RegistrationOutcome, UnlistReason,
};
use rallypoint_wire::lobby::{Occupancy, TableBuf};
use support::*;

const HERE: &str = "203.0.113.9";

fn watched(label: &str, ips: &[&str]) -> ProbedServer {
    let mut table = TableBuf::new();
    table.push(b"name", label.as_bytes()).unwrap();
    table.push(b"x-query", b"bloodmasters").unwrap();
    ProbedServer {
        label: label.into(),
        origin: ListingOrigin::Watched,
        door: None,
        list: LOBBY,
        ips: ips.iter().map(|text| ip(text)).collect(),
        port: 6969.try_into().unwrap(),
        occupancy: Occupancy { players: 3, slots: 8, ..Occupancy::default() },
        table,
        latency: ms(20),
        lease: secs(100),
    }
}

fn watch(lobby: &mut Lobby, watched: &ProbedServer) -> ProbedOutcome {
    let watching = lobby.registry.handle_probed(lobby.now, watched);
    lobby.check_invariants();
    watching
}

#[test]
fn a_watched_server_is_listed_while_it_replies() {
    let mut lobby = Lobby::default();
    assert!(matches!(watch(&mut lobby, &watched("a", &[HERE])), ProbedOutcome::Listed(_)));
    assert_eq!(lobby.list(), ["203.0.113.9:6969 udp a"]);
    assert_eq!(lobby.events(), ["listed 203.0.113.9:6969 udp a"]);
    assert_eq!(lobby.checks(), [], "the caller queries it, not the registry");
    lobby.wait(secs(90));
    watch(&mut lobby, &watched("a", &[HERE]));
    lobby.wait(secs(90));
    assert_eq!(lobby.list().len(), 1);
    lobby.wait(secs(10) + GRAIN);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(lobby.unlisted(UnlistReason::Expired), 1);
}

#[test]
fn a_lease_of_zero_ends_at_the_next_timeout() {
    let mut lobby = Lobby::default();
    watch(&mut lobby, &watched("a", &[HERE]));
    lobby.wait(secs(1));
    watch(&mut lobby, &ProbedServer { lease: secs(0), ..watched("a", &[HERE]) });
    assert_eq!(lobby.list().len(), 1);
    lobby.wait(GRAIN);
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn both_families_are_one_entry_under_one_id() {
    let mut lobby = Lobby::default();
    let first = watch(&mut lobby, &watched("a", &[HERE]));
    assert_eq!(watch(&mut lobby, &watched("a", &[HERE, "2001:db8::9"])), first);
    assert_eq!(lobby.list(), ["[2001:db8::9]:6969 203.0.113.9:6969 udp a"]);
    assert_eq!(watch(&mut lobby, &watched("a", &["::ffff:203.0.113.9"])), first);
    assert_eq!(lobby.list(), ["[2001:db8::9]:6969 203.0.113.9:6969 udp a"], "a mapped address is an IPv4 one");
    assert_eq!(watch(&mut lobby, &watched("a", &["203.0.113.10"])), first, "its name resolves to another address now");
    lobby.wait(secs(50));
    watch(&mut lobby, &watched("a", &["203.0.113.10"]));
    lobby.wait(secs(60));
    assert_eq!(lobby.list(), ["203.0.113.10:6969 udp a"], "by IPv6 it does not answer any more");
}

#[test]
fn w38_a_watched_server_is_marked_and_not_charged() {
    let mut lobby = Lobby::with(|config| config.caps.per_address = 1);
    for (label, port) in [("a", 1), ("b", 2), ("c", 3)] {
        let watched = ProbedServer { port: port.try_into().unwrap(), ..watched(label, &[HERE]) };
        assert!(matches!(watch(&mut lobby, &watched), ProbedOutcome::Listed(_)));
    }
    assert_eq!(lobby.register(HERE, &udp(1)), RegistrationOutcome::Listed, "watched servers do not use its space");
    assert_eq!(lobby.register(HERE, &udp(2).port(9)), RegistrationOutcome::AddressFull);
    lobby.list();
    let list = lobby.lists().list(&LOBBY);
    assert_eq!(list.servers().filter(|listing| listing.origin() == ListingOrigin::Watched).count(), 3);
    assert_eq!(list.count(), 4);
}

#[test]
fn w38_an_announced_server_is_charged_and_its_refusal_is_reported() {
    let mut lobby = Lobby::with(|config| config.caps.per_address = 1);
    let announced = |label, port: u16| ProbedServer {
        origin: ListingOrigin::Announced,
        port: port.try_into().unwrap(),
        ..watched(label, &[HERE])
    };
    assert!(matches!(watch(&mut lobby, &announced("a", 1)), ProbedOutcome::Listed(_)));
    assert!(matches!(watch(&mut lobby, &announced("a", 1)), ProbedOutcome::Listed(_)));
    assert_eq!(watch(&mut lobby, &announced("b", 2)), ProbedOutcome::Refused(RegistrationOutcome::AddressFull));
    assert_eq!(lobby.register(HERE, &udp(1)), RegistrationOutcome::AddressFull);
    let past: Vec<_> = lobby.recent_outcomes(ip(HERE)).iter().map(|past| (past.outcome, past.port)).collect();
    assert!(past.contains(&(RegistrationOutcome::AddressFull, Some(2))), "{past:?}");
    let mut again = Lobby::with(|config| config.caps.per_address = 1);
    let now = again.now;
    assert_eq!(again.registry.restore(now, &lobby.save()), Ok(1));
    again.check_invariants();
    assert_eq!(again.register(HERE, &udp(1)), RegistrationOutcome::AddressFull, "also after a restart");
}

#[test]
fn w38_a_queried_server_is_not_replaced_by_a_registration() {
    for origin in [ListingOrigin::Watched, ListingOrigin::Announced] {
        let mut lobby = Lobby::default();
        let asked = ProbedServer { origin, ..watched("a", &[HERE, "2001:db8::9"]) };
        watch(&mut lobby, &asked);
        let list = lobby.list();
        let silent = udp(1).port(6969).key("x-query", "session:9");
        let honest = udp(2).port(6969).key("x-query", "bloodmasters");
        for server in [&udp(3).port(6969), &silent, &honest] {
            assert_eq!(lobby.register(HERE, server), RegistrationOutcome::ListedByQuery);
            assert_eq!(lobby.register("2001:db8::9", server), RegistrationOutcome::ListedByQuery);
        }
        assert_eq!((lobby.list(), lobby.checks()), (list, Vec::new()));
        assert_eq!(lobby.register(HERE, &udp(4)), RegistrationOutcome::Listed, "another port is another server");
        let past: Vec<_> = lobby.recent_outcomes(ip(HERE)).iter().map(|past| (past.outcome, past.port)).collect();
        assert!(past.contains(&(RegistrationOutcome::ListedByQuery, Some(6969))), "{past:?}");
        // When it no longer replies, a registration is accepted.
        lobby.wait(secs(100) + GRAIN);
        assert_eq!(lobby.register(HERE, &udp(3).port(6969)), RegistrationOutcome::Listed);
    }
}

#[test]
fn w38_a_reply_replaces_a_registration_and_watched_servers_take_precedence() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register(HERE, &udp(1).port(6969)), RegistrationOutcome::Listed);
    lobby.register("2001:db8::9", &udp(1).port(6969));
    let announced = |label| ProbedServer { origin: ListingOrigin::Announced, ..watched(label, &[HERE, "2001:db8::9"]) };
    assert!(matches!(watch(&mut lobby, &announced("a")), ProbedOutcome::Listed(_)));
    assert_eq!(lobby.list(), ["[2001:db8::9]:6969 203.0.113.9:6969 udp a"], "one line for one server");
    assert_eq!(lobby.unlisted(UnlistReason::Replaced), 1);
    assert_eq!(watch(&mut lobby, &announced("b")), ProbedOutcome::Taken);
    assert!(matches!(watch(&mut lobby, &watched("c", &[HERE])), ProbedOutcome::Listed(_)));
    assert_eq!(lobby.list(), ["203.0.113.9:6969 udp c"]);
    assert_eq!(watch(&mut lobby, &announced("a")), ProbedOutcome::Taken);
    assert_eq!(watch(&mut lobby, &watched("d", &["2001:db8::9", HERE])), ProbedOutcome::Taken, "already watched");
    assert_eq!(lobby.list(), ["203.0.113.9:6969 udp c"]);
}

#[test]
fn w38_replacing_a_registration_frees_its_space() {
    let mut lobby = Lobby::with(|config| (config.caps.total, config.caps.per_address) = (1, 1));
    lobby.register(HERE, &udp(1).port(6969));
    assert!(matches!(
        watch(&mut lobby, &ProbedServer { origin: ListingOrigin::Announced, ..watched("a", &[HERE]) }),
        ProbedOutcome::Listed(_)
    ));
    assert!(matches!(watch(&mut lobby, &watched("b", &[HERE])), ProbedOutcome::Listed(_)));
    assert_eq!(lobby.list(), ["203.0.113.9:6969 udp b"]);
}

#[test]
fn a_banned_server_that_announces_itself_is_refused_before_it_is_queried() {
    let ban =
        Ban { subject: BanSubject::Network("203.0.113.0/24".parse().unwrap()), reason: "floods".into(), until: None };
    let mut lobby = Lobby::with(|config| {
        config.bans = permanent([ban.clone()]);
        config.allow_private = false;
    });
    let (now, port) = (lobby.now, 6969.try_into().unwrap());
    assert_eq!(lobby.registry.precheck_announced(now, ip(HERE), port), Some(RegistrationOutcome::Banned));
    assert_eq!(
        lobby.registry.precheck_announced(now, ip("192.168.1.9"), port),
        Some(RegistrationOutcome::PrivateSource)
    );
    assert_eq!(lobby.registry.precheck_announced(now, ip("9.9.9.9"), port), None);
    let past = lobby.recent_outcomes(ip(HERE));
    assert_eq!(
        (past[0].outcome, past[0].port, past[0].reason.as_deref()),
        (RegistrationOutcome::Banned, Some(6969), Some("floods"))
    );
    assert_eq!(lobby.recent_outcomes(ip("9.9.9.9")).len(), 0);
}

#[test]
fn a_refused_server_is_not_listed() {
    let ban = |subject| Ban { subject, reason: "".into(), until: None };
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut lobby = Lobby::with(|config| change(config));
        watch(&mut lobby, &watched("a", &["192.168.1.9"]))
    };
    let network = BanSubject::Network("192.168.1.0/24".parse().unwrap());
    let by_address = |config: &mut Config| config.bans = permanent([ban(network.clone())]);
    assert_eq!(refused(&by_address), ProbedOutcome::Refused(RegistrationOutcome::Banned));
    assert_eq!(
        refused(&|config| config.allow_private = false),
        ProbedOutcome::Refused(RegistrationOutcome::PrivateSource)
    );
    let mut lobby = Lobby::with(|config| config.caps.total = 1);
    lobby.register(HERE, &tcp(1));
    lobby.settle(REACHABLE);
    assert_eq!(watch(&mut lobby, &watched("a", &[HERE])), ProbedOutcome::Refused(RegistrationOutcome::RegistryFull));
    for nowhere in [&[][..], &["0.0.0.0"], &[HERE, "ff02::1"]] {
        assert_eq!(
            watch(&mut lobby, &watched("a", nowhere)),
            ProbedOutcome::Refused(RegistrationOutcome::InvalidSource)
        );
    }
}

/// A server that has replied is no forgery.
#[test]
fn w45_an_unproven_server_gives_way_to_one_that_has_replied() {
    let mut lobby = Lobby::with(|config| config.caps.total = 1);
    lobby.register("198.51.100.7", &udp(1));
    assert!(matches!(watch(&mut lobby, &watched("a", &[HERE])), ProbedOutcome::Listed(_)));
    assert_eq!(lobby.stats().registered, 1);
    assert_eq!(lobby.register("198.51.100.7", &udp(1)), RegistrationOutcome::RegistryFull);
}

#[test]
fn a_later_ban_removes_a_watched_server() {
    let mut lobby = Lobby::default();
    watch(&mut lobby, &watched("a", &[HERE]));
    let ban = Ban { subject: BanSubject::Network("203.0.113.9/32".parse().unwrap()), reason: "".into(), until: None };
    lobby.set(|config| config.bans = permanent([ban]));
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn a_server_that_is_no_longer_watched_is_removed_at_once() {
    let mut lobby = Lobby::default();
    watch(&mut lobby, &watched("a", &[HERE]));
    lobby.events();
    let now = lobby.now;
    lobby.remove_probed(now, "b", UnlistReason::Unwatched);
    lobby.remove_probed(now, "a", UnlistReason::Unwatched);
    lobby.check_invariants();
    assert_eq!(lobby.events(), ["unwatched 203.0.113.9:6969 udp a"]);
    assert_eq!(lobby.list(), [""; 0]);
}

#[test]
fn a_watched_server_is_restored_as_watched() {
    let mut lobby = Lobby::with(|config| config.caps.per_address = 1);
    let id = watch(&mut lobby, &watched("a", &[HERE]));
    watch(&mut lobby, &ProbedServer { list: support::lobby(1), ..watched("b", &["2001:db8::9"]) });
    lobby.register(HERE, &udp(1));
    let mut again = Lobby::with(|config| config.caps.per_address = 1);
    let now = again.now;
    assert_eq!(again.registry.restore(now, &lobby.save()), Ok(3));
    again.check_invariants();
    assert_eq!(again.list(), lobby.list());
    assert_eq!(again.checks(), []);
    assert_eq!(watch(&mut again, &watched("a", &[HERE])), id);
    assert_eq!(
        again.lists().list(&LOBBY).servers().filter(|listing| listing.origin() == ListingOrigin::Watched).count(),
        1
    );
}
