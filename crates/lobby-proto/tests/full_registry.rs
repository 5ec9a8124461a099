//! A full registry shuts out no honest server: unproven entries give way (W45).

use crate::support;
use rallypoint_lobby_proto::{RegistrationOutcome, UnlistReason};
use std::net::{IpAddr, Ipv6Addr};
use support::*;

/// A lobby without budgets, as for an attacker that forges any source.
fn lobby_of(total: usize) -> Lobby {
    let mut lobby = Lobby::with(|config| {
        config.limit_exempt = networks(&["0.0.0.0/0", "::/0"]);
        config.caps.total = total;
    });
    lobby.skips_invariants = true;
    lobby
}

/// An address of a /48, each in a LAN of its own.
fn in_site(site: u16, lan: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, site, lan, 0, 0, 0, 1).into()
}

/// A server of the attacker.
fn forged(n: u32) -> (IpAddr, Server) {
    (address(100_000 + n), udp(u128::from(1_000_000 + n)).name("forged"))
}

fn is_listed(lobby: &mut Lobby, server: &Server) -> bool {
    let name = format!("udp server {}", server.id);
    lobby.list_of(server.lobby).iter().any(|line| line.ends_with(&name))
}

#[test]
fn w45_a_network_has_a_share_of_the_whole_and_a_hoster_fits() {
    let mut lobby = lobby_of(20_000);
    for n in 0..2_000u16 {
        assert_eq!(lobby.register(in_site(1, n), &udp(n.into())), RegistrationOutcome::Listed, "{n}");
    }
    assert_eq!(lobby.register(in_site(1, 5_000), &udp(5_000)), RegistrationOutcome::NetworkFull);
    assert_eq!(lobby.register(in_site(2, 1), &udp(5_000)), RegistrationOutcome::Listed, "another network");
    // 750 servers in a /24 are real, whatever the cap is.
    let mut lobby = lobby_of(2_000);
    for n in 0..750u32 {
        let from = IpAddr::from([203, 0, 113, (n % 50) as u8 + 1]);
        assert_eq!(lobby.register(from, &udp(n.into()).port(1 + n as u16)), RegistrationOutcome::Listed, "{n}");
    }
    lobby.check_invariants();
}

#[test]
fn w45_in_a_full_network_a_server_that_was_listed_before_gets_its_place_back() {
    let mut lobby = lobby_of(10_000);
    let honest = udp(7);
    lobby.register(in_site(1, 7), &honest);
    lobby.wait(secs(30));
    lobby.register(in_site(1, 7), &honest);
    lobby.wait(secs(71));
    assert!(!is_listed(&mut lobby, &honest));
    (0..1_000).for_each(|n| {
        lobby.register(in_site(1, 100 + n), &udp(u128::from(n) + 1_000));
    });
    assert_eq!(lobby.register(in_site(1, 50), &udp(50)), RegistrationOutcome::NetworkFull);
    assert_eq!(lobby.register(in_site(1, 7), &honest), RegistrationOutcome::Listed);
    assert_eq!(lobby.stats().registered, 1_000);
    lobby.check_invariants();
}

/// Without forging: all addresses of a few networks.
#[test]
fn w45_the_largest_network_loses_unproven_entries() {
    let mut lobby = lobby_of(4_000);
    let honest = |n: u32| (address(n), udp(n.into()));
    for n in 0..500 {
        let (from, server) = honest(n);
        lobby.register(from, &server);
    }
    for n in 0..3_500u16 {
        lobby.register(in_site(n % 4, n), &udp(10_000 + u128::from(n)).name("attacker"));
    }
    assert_eq!(lobby.stats().registered, 4_000);
    for n in 500..700 {
        let (from, server) = honest(n);
        assert_eq!(lobby.register(from, &server), RegistrationOutcome::Listed, "at its first registration");
    }
    assert_eq!(lobby.list().iter().filter(|line| !line.contains("attacker")).count(), 700);
    lobby.check_invariants();
}

/// Networks that fill the registry together, and whose servers return more often than honest ones.
#[test]
fn w45_large_networks_evict_each_other_and_no_smaller_one() {
    let mut lobby = lobby_of(4_000);
    for round in 0..12 {
        if round % 3 == 0 {
            for n in 0..50 {
                assert!(lobby.register(address(n), &udp(n.into())).is_listed(), "round {round}");
            }
        }
        for n in 0..6_000u16 {
            lobby.register(in_site(n % 6, n), &udp(10_000 + u128::from(n)).name("attacker"));
        }
        assert_eq!(lobby.stats().registered, 4_000);
        assert_eq!(lobby.list().iter().filter(|line| !line.contains("attacker")).count(), 50, "round {round}");
        lobby.wait(secs(10));
    }
    lobby.check_invariants();
}

/// Forged sources fill the registry, each in a network of its own, and hold it by refreshing.
#[test]
fn w45_forged_sources_do_not_shut_out_servers_that_were_listed_or_return() {
    const TOTAL: u32 = 2_000;
    let mut lobby = lobby_of(TOTAL as usize);
    let established: Vec<_> = (0..50).map(|n| (address(n), udp(n.into()))).collect();
    let (absent_from, absent) = (address(60), udp(60));
    for round in 0..24 {
        for (from, server) in &established {
            lobby.register(*from, server);
        }
        if round < 20 {
            lobby.register(absent_from, &absent);
        }
        lobby.wait(secs(30));
    }
    assert!(!is_listed(&mut lobby, &absent), "it has expired");
    let hold = |lobby: &mut Lobby| {
        for n in 0..TOTAL {
            let (from, server) = forged(n);
            lobby.register(from, &server);
        }
    };
    let (late_from, late) = (address(61), udp(61));
    let mut returns = 0;
    for round in 0..20u32 {
        hold(&mut lobby);
        // New forgeries all the time.
        for n in 0..500 {
            let (from, server) = forged(10_000 + 500 * round + n);
            lobby.register(from, &server);
        }
        assert_eq!(lobby.stats().registered, TOTAL as usize);
        if round == 2 {
            assert_eq!(lobby.register(absent_from, &absent), RegistrationOutcome::Listed, "listed before");
            assert_eq!(lobby.register(late_from, &late), RegistrationOutcome::RegistryFull, "a newcomer");
        }
        if round > 2 {
            assert!(lobby.register(absent_from, &absent).is_listed());
            assert!(lobby.register(late_from, &late).is_listed(), "it has returned");
            returns += usize::from(is_listed(&mut lobby, &late));
        }
        for (from, server) in &established {
            assert_eq!(lobby.register(*from, server), RegistrationOutcome::Refreshed, "round {round}");
        }
        lobby.wait(secs(30));
    }
    assert_eq!(returns, 17);
    assert!(lobby.unlisted(UnlistReason::Evicted) > 0);
    lobby.check_invariants();
}

#[test]
fn w45_proven_servers_never_give_way() {
    let mut lobby = lobby_of(10);
    for n in 0..10 {
        lobby.register(address(n), &tcp(n.into()));
    }
    lobby.settle(REACHABLE);
    for _ in 0..5 {
        for n in 100..150 {
            assert_eq!(lobby.register(address(n), &udp(n.into())), RegistrationOutcome::RegistryFull);
        }
        lobby.wait(secs(30));
        (0..10).for_each(|n| assert_eq!(lobby.register(address(n), &tcp(n.into())), RegistrationOutcome::Refreshed));
    }
}

/// Any UUID opens a lobby, and sources can be forged.
#[test]
fn w45_forged_lobbies_do_not_shut_out_others() {
    let mut lobby = lobby_of(100_000);
    lobby.set(|config| config.caps.lists = 100);
    let mine = |n: u32| (address(n), udp(n.into()).lobby(support::lobby(n)));
    let (from, community) = mine(1);
    for _ in 0..3 {
        lobby.register(from, &community);
        lobby.wait(secs(30));
    }
    lobby.wait(secs(70));
    assert_eq!(lobby.stats().lists, 0);
    let hold = |lobby: &mut Lobby| {
        for n in 0..100 {
            let (from, server) = forged(n);
            lobby.register(from, &server.lobby(support::lobby(1_000 + n)));
        }
    };
    let (newcomer_from, newcomer) = mine(2);
    for round in 0..10 {
        hold(&mut lobby);
        let outcome = lobby.register(from, &community);
        assert!(outcome.is_listed(), "its lobby was there before: {outcome:?} in round {round}");
        let outcome = lobby.register(newcomer_from, &newcomer);
        if round == 0 {
            assert_eq!(outcome, RegistrationOutcome::TooManyLists);
        } else {
            assert!(outcome.is_listed(), "it has returned: {outcome:?} in round {round}");
        }
        assert_eq!(lobby.stats().lists, 100);
        lobby.wait(secs(30));
    }
    lobby.check_invariants();
}

/// Large registrations of few networks, or of forged sources, that use up the memory.
#[test]
fn w45_used_up_memory_shuts_out_no_server_that_returns() {
    let mut lobby = lobby_of(100_000);
    lobby.set(|config| config.caps.memory = 8 << 20);
    let large = |n: u32| {
        let (from, server) = forged(n);
        (from, server.key("x-filler", "x".repeat(3_900)))
    };
    let honest: Vec<_> = (0..50).map(|n| (address(n), udp(n.into()).key("map", "x".repeat(100)))).collect();
    let mut listed = 0;
    for round in 0..4 {
        for n in 0..2_000 {
            let (from, server) = large(n);
            lobby.register(from, &server);
        }
        assert!(lobby.stats().memory <= 8 << 20);
        listed = honest.iter().filter(|(from, server)| lobby.register(*from, server).is_listed()).count();
        assert!(round > 0 || listed < 10, "{listed} had room");
        lobby.wait(secs(30));
    }
    assert_eq!(listed, 50);
    lobby.check_invariants();
}

/// Two caps are reached: there are entries that give way in the lobby, and none at the address.
#[test]
fn w85_a_registration_that_is_refused_in_the_end_evicts_none() {
    let mut lobby = lobby_of(1_000);
    lobby.set(|config| {
        config.caps.per_address = 2;
        config.caps.per_list = 3;
    });
    let here = ip("203.0.113.9");
    let refresh = |lobby: &mut Lobby| {
        for port in [1, 2] {
            lobby.register(here, &udp(u128::from(port) + 100).port(port));
        }
    };
    refresh(&mut lobby);
    lobby.wait(secs(30));
    refresh(&mut lobby);
    let full = support::lobby(9);
    for n in 0..3u32 {
        lobby.register(address(n), &udp(n.into()).lobby(full));
    }
    let late = udp(50).lobby(full).port(50);
    assert_eq!(lobby.register(here, &late), RegistrationOutcome::ListFull);
    lobby.wait(secs(35));
    refresh(&mut lobby);
    assert_eq!(lobby.register(here, &late), RegistrationOutcome::AddressFull);
    assert_eq!(lobby.unlisted(UnlistReason::Evicted), 0);
    assert_eq!(lobby.list_of(full).len(), 3);
    lobby.check_invariants();
}
