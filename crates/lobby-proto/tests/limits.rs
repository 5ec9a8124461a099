//! Budgets: they limit floods, but not honest servers.

use crate::support;
use rallypoint_limit::{Budget, Rate};
use rallypoint_lobby_proto::{NetworkSet, RegistrationOutcome};
use support::*;

#[test]
fn an_honest_server_is_never_refused() {
    let mut lobby = Lobby::default();
    for minute in 0..60 {
        for join in 0..30 {
            let outcome = lobby.register("203.0.113.9", &udp(1).players(minute * 30 + join));
            assert!(outcome.is_listed(), "{outcome}");
            lobby.wait(secs(2));
        }
    }
}

#[test]
fn a_full_address_is_never_refused() {
    let mut lobby = Lobby::default();
    for round in 0..20 {
        for id in 0..32 {
            // All of them change their map at the same time.
            let server = udp(id).port(8000 + id as u16).players(round);
            let outcome = lobby.register("203.0.113.9", &server);
            assert!(outcome.is_listed(), "{outcome}");
        }
        lobby.wait(secs(30));
    }
    assert_eq!(lobby.stats().listed, 32);
}

#[test]
fn a_hoster_with_hundreds_of_servers_in_one_network_is_never_refused() {
    let mut lobby = Lobby::default();
    for round in 0..20 {
        for host in 1..=250u8 {
            for id in 0..3u16 {
                let server = udp(u128::from(host) * 3 + u128::from(id)).port(8000 + id).players(round);
                let outcome = lobby.register(std::net::IpAddr::from([203, 0, 113, host]), &server);
                assert!(outcome.is_listed(), "{outcome}");
            }
        }
        lobby.wait(secs(30));
    }
    assert_eq!(lobby.stats().listed, 750);
}

/// Checks have budgets of their own (L12): a whole network of servers that starts at once is listed after two registrations
/// at the latest, and stays listed while the checks are repeated.
#[test]
fn a_hoster_whose_servers_are_checked_is_never_refused() {
    let mut lobby = Lobby::default();
    for round in 0..60 {
        for host in 1..=250u8 {
            for id in 0..3u16 {
                let server = tcp(u128::from(host) * 3 + u128::from(id)).port(8000 + id).players(round / 10);
                let outcome = lobby.register(std::net::IpAddr::from([203, 0, 113, host]), &server);
                assert!(round < 2 || outcome.is_listed(), "{outcome} in round {round}");
            }
        }
        for _ in 0..120 {
            while lobby.settle(REACHABLE) > 0 {}
            lobby.wait(ms(250));
        }
    }
    assert_eq!(lobby.stats().listed, 750);
}

#[test]
fn registrations_beyond_the_budget_are_refused() {
    let mut lobby = Lobby::default();
    let refused = (0..1_000).filter(|n| !lobby.register("203.0.113.9", &udp(1).players(*n)).is_listed()).count();
    assert!((600..800).contains(&refused), "{refused}");
    assert_eq!(lobby.stats().outcomes[11], refused as u64);
    let past = lobby.recent_outcomes(ip("203.0.113.9"));
    assert_eq!(past.last().unwrap().outcome.code(), "over_budget");
    assert_eq!(past.last().unwrap().times as usize, refused);
    assert!(lobby.register("203.0.113.10", &udp(2)).is_listed(), "a neighbour has a budget of its own");
}

#[test]
fn w16_a_refresh_is_not_charged() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    for _ in 0..10_000 {
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
    }
}

#[test]
fn exempt_networks_have_no_budget() {
    let mut lobby = Lobby::default();
    assert!((0..2_000).all(|n| lobby.register("127.0.0.1", &udp(1).players(n)).is_listed()), "loopback by default");
    assert!((0..2_000).all(|n| lobby.register("::1", &udp(1).players(n)).is_listed()));
    lobby.set(|config| config.limit_exempt = NetworkSet::default());
    assert!(
        !(0..2_000).all(|n| lobby.register("127.0.0.1", &udp(1).players(n)).is_listed()),
        "unless that is turned off"
    );
    lobby.set(|config| config.limit_exempt = networks(&["203.0.113.0/24"]));
    assert!((0..2_000).all(|n| lobby.register("203.0.113.9", &udp(1).players(n)).is_listed()));
}

#[test]
fn a_flood_of_forged_sources_does_not_affect_listed_servers() {
    let mut lobby = Lobby::with(|config| {
        config.limits.total = Budget { packets: Some(Rate::per_second(100, 400)), bytes: None };
        config.caps.total = 1_000;
    });
    lobby.register("203.0.113.9", &udp(1));
    // Nothing but refreshes, which the limiter does not see.
    for _ in 0..20 {
        lobby.wait(secs(30));
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
    }
    let mut refused = 0;
    for n in 0..50_000u32 {
        let outcome = lobby.register(address(n % 20_000), &udp(u128::from(n) + 10));
        refused += u32::from(outcome.code() == "over_budget");
        if n % 1_000 == 0 {
            lobby.wait(secs(1));
        }
        if n % 15_000 == 0 {
            let outcome = lobby.register("203.0.113.9", &udp(1).players(n as u16));
            assert!(outcome.is_listed(), "a map change after {n}: {outcome}");
        }
    }
    assert!(refused > 30_000, "it was a flood: {refused}");
}

/// Uses up the part of the budget that is not reserved for known sources.
fn flood(lobby: &mut Lobby, sources: u32, seed: u32) -> u32 {
    lobby.skips_invariants = true;
    let refused = (0..sources).filter(|n| {
        let server = udp(1_000 + u128::from(*n)).players(seed as u16);
        lobby.register(address(*n), &server).code() == "over_budget"
    });
    refused.count() as u32
}

#[test]
fn a_flood_does_not_affect_a_server_that_is_newly_listed() {
    let total = Budget { packets: Some(Rate::per_second(100, 400)), bytes: None };
    let mut lobby = Lobby::with(|config| config.limits.total = total);
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(5));
    assert!(flood(&mut lobby, 2_000, 0) > 1_000);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).players(1)), RegistrationOutcome::Changed, "it knows its secret");
    assert_eq!(lobby.register("203.0.113.10", &udp(2)).code(), "over_budget", "a new server has to wait");
}

#[test]
fn a_server_that_only_refreshes_keeps_its_share_when_all_others_are_taken() {
    let mut lobby = Lobby::with(|config| {
        config.limits.total = Budget { packets: Some(Rate::per_second(100, 400)), bytes: None };
        // Space for few sources.
        config.limits.max_entries = 64;
    });
    lobby.register("203.0.113.9", &udp(1));
    for minute in 0..20 {
        lobby.wait(secs(30));
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
        // Forged servers that keep returning, as honest ones do.
        if minute > 3 {
            flood(&mut lobby, 2_000, minute);
        }
    }
    assert!(flood(&mut lobby, 2_000, 99) > 1_000);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).players(1)), RegistrationOutcome::Changed);
}

#[test]
fn many_keys_are_charged_more_than_their_bytes() {
    let allowed = |server: &Server| {
        let mut lobby = Lobby::default();
        (0..300).filter(|n| lobby.register("203.0.113.9", &server.clone().players(*n)).is_listed()).count()
    };
    let few = udp(1).key("x-filler", vec![b'x'; 3_800]);
    let many = (0..600).fold(udp(1), |server, n| server.key(&format!("{n:03}"), ""));
    assert!(many.datagram().len() < few.datagram().len());
    assert_eq!(allowed(&few), 300, "what one address may send at once");
    assert!((80..120).contains(&allowed(&many)), "{}", allowed(&many));
    let usual = (0..10).fold(udp(1), |server, n| server.key(&format!("{n:03}"), "value"));
    assert_eq!(allowed(&usual), 300);
}
