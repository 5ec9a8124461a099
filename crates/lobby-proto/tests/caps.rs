//! The numbers of servers and lobbies are bounded, and refusals have a reason.

use crate::support;
use rallypoint_lobby_proto::{Config, RegistrationOutcome};
use support::*;

fn small() -> Lobby {
    let mut config = Config::default();
    config.caps.per_address = 2;
    config.caps.per_list = 4;
    config.caps.total = 6;
    config.caps.lists = 3;
    Lobby::new(config)
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let caps = Config::default().caps;
    assert_eq!((caps.per_address, caps.total), (32, 1_000_000));
}

#[test]
fn servers_per_address_are_bounded() {
    let mut lobby = small();
    lobby.register("203.0.113.9", &udp(1).port(1));
    lobby.register("203.0.113.9", &udp(2).port(2));
    assert_eq!(lobby.register("203.0.113.9", &udp(3).port(3)), RegistrationOutcome::AddressFull);
    assert_eq!(
        lobby.register("203.0.113.10", &udp(3).port(3)),
        RegistrationOutcome::Listed,
        "a neighbour is another address"
    );
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::AddressFull), 1);
}

#[test]
fn per_address_counts_each_family_by_itself() {
    let mut lobby = small();
    for id in [1, 2] {
        assert_eq!(lobby.register("203.0.113.9", &udp(id).port(id as u16)), RegistrationOutcome::Listed);
        assert_eq!(lobby.register("2001:db8::9", &udp(id).port(id as u16)), RegistrationOutcome::Changed);
    }
    assert_eq!(lobby.register("2001:db8::9", &udp(3).port(3)), RegistrationOutcome::AddressFull);
}

#[test]
fn servers_per_lobby_are_bounded() {
    let mut lobby = small();
    (0..4).for_each(|n| assert_eq!(lobby.register(address(n), &udp(n.into())), RegistrationOutcome::Listed));
    assert_eq!(lobby.register(address(4), &udp(4)), RegistrationOutcome::ListFull);
    assert_eq!(lobby.register(address(4), &udp(4).lobby(support::lobby(1))), RegistrationOutcome::Listed);
}

#[test]
fn servers_in_total_are_bounded() {
    let mut lobby = small();
    for n in 0..6 {
        assert_eq!(
            lobby.register(address(n), &udp(n.into()).lobby(support::lobby(n % 2))),
            RegistrationOutcome::Listed
        );
    }
    assert_eq!(lobby.register(address(6), &udp(6).lobby(support::lobby(0))), RegistrationOutcome::RegistryFull);
    assert_eq!(lobby.stats().registered, 6);
}

#[test]
fn lobbies_are_bounded() {
    let mut lobby = small();
    (0..3).for_each(|n| {
        assert_eq!(lobby.register(address(n), &udp(n.into()).lobby(support::lobby(n))), RegistrationOutcome::Listed);
    });
    assert_eq!(lobby.register(address(3), &udp(3).lobby(support::lobby(3))), RegistrationOutcome::TooManyLists);
    assert_eq!(lobby.register(address(3), &udp(3).lobby(support::lobby(0))), RegistrationOutcome::Listed);
    assert_eq!(lobby.stats().lists, 3);
}

#[test]
fn servers_that_are_not_listed_yet_count_as_well() {
    let mut lobby = small();
    lobby.register("203.0.113.9", &tcp(1).port(1));
    lobby.register("203.0.113.9", &tcp(2).port(2));
    assert_eq!(lobby.register("203.0.113.9", &tcp(3).port(3)), RegistrationOutcome::AddressFull);
}

#[test]
fn at_the_cap_registered_servers_can_refresh_change_and_move() {
    let mut lobby = small();
    lobby.set(|config| (config.caps.per_address, config.caps.per_list, config.caps.total) = (1, 1, 1));
    lobby.set(|config| config.caps.lists = 1);
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).players(3)), RegistrationOutcome::Changed);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).port(9000)), RegistrationOutcome::Changed);
    assert_eq!(lobby.register("2001:db8::9", &udp(1).port(9000)), RegistrationOutcome::Changed);
    assert_eq!(
        lobby.register("203.0.113.9", &udp(1).lobby(support::lobby(3))),
        RegistrationOutcome::Listed,
        "its old lobby closes"
    );
    assert_eq!(lobby.stats().lists, 1);
}

#[test]
fn l8_at_the_cap_a_restarted_server_replaces_its_old_entry() {
    let mut lobby = small();
    lobby.set(|config| (config.caps.per_address, config.caps.per_list, config.caps.total) = (1, 1, 1));
    lobby.set(|config| config.caps.lists = 1);
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("203.0.113.9", &udp(3).lobby(support::lobby(3))), RegistrationOutcome::Listed);
    assert_eq!(lobby.list_of(support::lobby(3)), ["203.0.113.9:8190 udp server 3"]);
    assert_eq!(lobby.register("203.0.113.9", &udp(4).port(1)), RegistrationOutcome::RegistryFull);
}

#[test]
fn two_closing_lobbies_make_room_for_one() {
    let mut lobby = small();
    lobby.set(|config| config.caps.lists = 2);
    lobby.register("203.0.113.9", &udp(1).lobby(support::lobby(1)));
    lobby.register("203.0.113.9", &udp(2).port(9000).lobby(support::lobby(2)));
    // Server 2 replaces server 1 and moves to a lobby of its own: both lobbies are empty afterwards.
    assert_eq!(lobby.register("203.0.113.9", &udp(2).lobby(support::lobby(3))), RegistrationOutcome::Listed);
    assert_eq!(lobby.stats().lists, 1);
}

#[test]
fn a_refused_registration_replaces_no_server() {
    let mut lobby = small();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("203.0.113.9", &udp(2).port(9000));
    for n in 0..4 {
        lobby.register(address(n), &udp(10 + u128::from(n)).lobby(support::lobby(1)));
    }
    // It would replace server 1, but its lobby is full.
    assert_eq!(lobby.register("203.0.113.9", &udp(3).lobby(support::lobby(1))), RegistrationOutcome::ListFull);
    assert_eq!(lobby.list().len(), 2);
}

#[test]
fn a_removed_server_makes_room() {
    let mut lobby = small();
    lobby.set(|config| config.caps.total = 1);
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(lobby.register("203.0.113.10", &udp(2)), RegistrationOutcome::RegistryFull);
    lobby.unregister("203.0.113.9", 1);
    assert_eq!(lobby.register("203.0.113.10", &udp(2)), RegistrationOutcome::Listed);
    lobby.wait(secs(70) + GRAIN);
    assert_eq!(lobby.register("203.0.113.11", &udp(3)), RegistrationOutcome::Listed);
}

#[test]
fn lower_caps_remove_no_server() {
    let mut lobby = small();
    for n in 0..4 {
        lobby.register("203.0.113.9", &udp(n).port(n as u16 + 1));
    }
    lobby.set(|config| (config.caps.per_address, config.caps.per_list, config.caps.total) = (1, 1, 1));
    assert_eq!(lobby.list().len(), 2);
    assert_eq!(lobby.register("203.0.113.9", &udp(0).port(1)), RegistrationOutcome::Refreshed);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).port(2).players(1)), RegistrationOutcome::Changed);
}

/// A household has a whole /64, and can send from every address of it.
#[test]
fn w32_an_ipv6_lan_counts_as_one_address() {
    let mut lobby = small();
    lobby.register("2001:db8::1", &udp(1).port(1));
    lobby.register("2001:db8::2", &udp(2).port(2));
    assert_eq!(lobby.register("2001:db8::3", &udp(3).port(3)), RegistrationOutcome::AddressFull);
    assert_eq!(lobby.register("2001:db8:0:1::3", &udp(3).port(3)), RegistrationOutcome::Listed, "another LAN");
}

#[test]
fn w32_one_network_cannot_open_all_lobbies() {
    let mut lobby = Lobby::default();
    let open = |lobby: &mut Lobby, from: String, n: u32| {
        lobby.register(from.as_str(), &udp(n.into()).lobby(support::lobby(n)).port(1 + n as u16))
    };
    for n in 0..100 {
        assert_eq!(open(&mut lobby, format!("2001:db8:0:{n:x}::1"), n), RegistrationOutcome::Listed);
    }
    assert_eq!(open(&mut lobby, "2001:db8:0:ffff::1".into(), 100), RegistrationOutcome::TooManyLists);
    let one_more = udp(1_000).lobby(support::lobby(5));
    assert_eq!(lobby.register("2001:db8:0:ffff::1", &one_more), RegistrationOutcome::Listed, "one that is open");
    assert_eq!(open(&mut lobby, "2001:db8:1::1".into(), 100), RegistrationOutcome::Listed, "another network");
    lobby.unregister("2001:db8:0:7::1", 7);
    assert_eq!(open(&mut lobby, "2001:db8:0:ffff::1".into(), 101), RegistrationOutcome::Listed, "after one was closed");
    lobby.check_invariants();
}

#[test]
fn w32_named_lobbies_can_always_be_opened() {
    let mut lobby = small();
    lobby.set(|config| config.named_lists = [LOBBY].into_iter().collect());
    let open = |lobby: &mut Lobby, n: u32| lobby.register(address(n), &udp(n.into()).lobby(support::lobby(n)));
    (0..3).for_each(|n| assert_eq!(open(&mut lobby, n), RegistrationOutcome::Listed));
    assert_eq!(open(&mut lobby, 3), RegistrationOutcome::TooManyLists);
    assert_eq!(lobby.register(address(4), &udp(4)), RegistrationOutcome::Listed);
    assert_eq!(lobby.stats().lists, 4);
}

#[test]
fn memory_is_bounded() {
    let mut lobby = Lobby::with(|config| config.caps.memory = 1 << 20);
    lobby.skips_invariants = true;
    let large = |n: u32| udp(n.into()).key("x-filler", "x".repeat(3_900));
    let count =
        (0..).take_while(|&n| lobby.register(address(n), &large(n)) == RegistrationOutcome::Listed).count() as u32;
    assert!((30..40).contains(&count), "{count}");
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::MemoryFull), 1);
    assert!(lobby.stats().memory <= 1 << 20);
    // Registered servers can refresh and change, but not grow.
    assert_eq!(lobby.register(address(1), &large(1)), RegistrationOutcome::Refreshed);
    assert_eq!(lobby.register(address(1), &large(1).players(3)), RegistrationOutcome::Changed);
    let small = |n: u32| udp(n.into()).key("map", "x".repeat(40));
    let count =
        (5_000..).take_while(|&n| lobby.register(address(n), &small(n)) == RegistrationOutcome::Listed).count() as u32;
    assert_eq!(lobby.register(address(4_999), &small(4_999)), RegistrationOutcome::MemoryFull);
    let last = 4_999 + count;
    assert_eq!(lobby.register(address(last), &small(last).key("map", "x".repeat(90))), RegistrationOutcome::Changed);
    assert_eq!(lobby.register(address(last), &large(last)), RegistrationOutcome::MemoryFull);
    lobby.check_invariants();
}
