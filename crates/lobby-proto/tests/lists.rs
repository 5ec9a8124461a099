//! The published lists: always a valid reply, up to date, and readable without waiting.

use crate::support;
use rallypoint_lobby_proto::RegistrationOutcome;
use rallypoint_wire::lobby::blocks;
use std::collections::BTreeSet;
use support::*;

#[test]
fn l14_an_unknown_lobby_has_no_servers() {
    let lobby = Lobby::default();
    let list = lobby.lists().list(&LOBBY);
    assert_eq!(list.pieces().flatten().copied().collect::<Vec<_>>(), [0; 4]);
    assert_eq!((list.count(), list.size(), list.reply().piece_count()), (0, 4, 1));
    assert_eq!(lobby.lists().snapshot().lists().count(), 0);
}

#[test]
fn l2_l4_a_block_contains_the_registered_data() {
    let mut lobby = Lobby::default();
    let mut server = udp(1).key("map", "ctf_truefort").key("x-mode", b"\xff\x00");
    server.occupancy = rallypoint_wire::lobby::Occupancy { slots: 24, players: 7, bots: 3, password: true };
    lobby.register("203.0.113.9", &server);
    lobby.list();
    let reply: Vec<u8> = lobby.lists().list(&LOBBY).pieces().flatten().copied().collect();
    let block = blocks(&reply).next().unwrap().unwrap();
    assert_eq!(block.occupancy, server.occupancy);
    let keys: Vec<_> = block.table.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec())).collect();
    assert_eq!(keys, server.keys);
}

#[test]
fn changes_are_published_at_once() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    assert_eq!(published(&lobby, LOBBY).len(), 0);
    assert_eq!(lobby.poll_timeout(), Some(lobby.now));
    lobby.wait(ms(0));
    assert_eq!(published(&lobby, LOBBY).len(), 1);
    lobby.register("203.0.113.10", &udp(2));
    lobby.wait(ms(19));
    assert_eq!(published(&lobby, LOBBY).len(), 1, "but not more often than every 20 ms");
    lobby.wait(ms(1));
    assert_eq!(published(&lobby, LOBBY).len(), 2);
}

#[test]
fn a_refresh_publishes_nothing() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(1));
    let before = lobby.stats().publishes;
    for _ in 0..10 {
        lobby.wait(secs(30));
        assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Refreshed);
    }
    assert_eq!(lobby.stats().publishes, before);
}

#[test]
fn readers_keep_their_list() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.list();
    let (old, directory) = (lobby.lists().list(&LOBBY), lobby.lists().snapshot());
    let bytes: Vec<u8> = old.pieces().flatten().copied().collect();
    lobby.register("203.0.113.9", &udp(1).name("renamed"));
    lobby.register("203.0.113.10", &udp(2));
    lobby.list();
    lobby.unregister("203.0.113.9", 1);
    lobby.unregister("203.0.113.9", 2);
    assert_eq!(lobby.list(), [""; 0]);
    assert_eq!(old.pieces().flatten().copied().collect::<Vec<_>>(), bytes);
    assert_eq!(line(old.servers().next().unwrap()), "203.0.113.9:8190 udp server 1");
    assert_eq!(directory.lists().count(), 1);
    assert_eq!(lobby.lists().snapshot().lists().count(), 0);
}

#[test]
fn an_unchanged_reply_is_shared_and_a_changed_one_is_not() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.list();
    let old = lobby.lists().reply(&LOBBY);
    assert!(std::sync::Arc::ptr_eq(&old, &lobby.lists().reply(&LOBBY)));
    lobby.register("203.0.113.9", &udp(1).name("renamed"));
    lobby.list();
    assert!(!std::sync::Arc::ptr_eq(&old, &lobby.lists().reply(&LOBBY)));
}

#[test]
fn the_version_grows_with_every_change_of_the_lobby() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.list();
    let first = lobby.lists().list(&LOBBY).version();
    lobby.register("203.0.113.10", &udp(2).lobby(support::lobby(2)));
    lobby.list();
    assert_eq!(lobby.lists().list(&LOBBY).version(), first, "another lobby");
    lobby.register("203.0.113.9", &udp(1).players(3));
    lobby.list();
    assert!(lobby.lists().list(&LOBBY).version() > first);
}

/// A large server: about a hundred of these fill a chunk.
fn large(id: u128) -> Server {
    udp(id).key("x-filler", "x".repeat(1_200))
}

fn names(lobby: &mut Lobby) -> BTreeSet<String> {
    lobby.list().into_iter().collect()
}

#[test]
fn long_lists_consist_of_several_pieces() {
    let mut lobby = Lobby::default();
    (0..1_000).for_each(|n| assert_eq!(lobby.register(address(n), &large(n.into())), RegistrationOutcome::Listed));
    assert_eq!(names(&mut lobby).len(), 1_000);
    let pieces = lobby.lists().list(&LOBBY).reply().piece_count();
    assert!((10..14).contains(&pieces), "{pieces}");
    lobby.check_invariants();
}

#[test]
fn a_change_rebuilds_one_piece() {
    let mut lobby = Lobby::default();
    (0..1_000).for_each(|n| assert_eq!(lobby.register(address(n), &large(n.into())), RegistrationOutcome::Listed));
    lobby.list();
    let before = lobby.lists().list(&LOBBY);
    lobby.register(address(500), &large(500).players(1));
    lobby.list();
    let after = lobby.lists().list(&LOBBY);
    let shared = before.pieces().zip(after.pieces()).filter(|(a, b)| std::ptr::eq(*a, *b)).count();
    assert_eq!(shared, before.reply().piece_count() - 2, "all but the count and one chunk");
}

#[test]
fn a_lobby_that_was_large_does_not_stay_in_many_pieces() {
    let mut lobby = Lobby::default();
    for n in 0..2_000 {
        let server = large(n.into());
        assert_eq!(lobby.register(address(n), &server), RegistrationOutcome::Listed);
    }
    // All but every fiftieth server unregister, throughout the list.
    let stays: BTreeSet<u32> = (0..2_000).step_by(50).collect();
    for n in (0..2_000).filter(|n| !stays.contains(n)) {
        assert_eq!(lobby.unregister(address(n), n.into()), RegistrationOutcome::Unregistered);
    }
    lobby.check_invariants();
    let expected: BTreeSet<_> = stays.iter().map(|n| format!("{}:8190 udp server {n}", address(*n))).collect();
    assert_eq!(names(&mut lobby), expected);
    let pieces = lobby.lists().list(&LOBBY).reply().piece_count();
    assert!(pieces <= 4, "{pieces}");
    // The lobby can grow again.
    (2_000..3_000).for_each(|n| assert_eq!(lobby.register(address(n), &large(n.into())), RegistrationOutcome::Listed));
    assert_eq!(lobby.list().len(), 1_040);
    lobby.check_invariants();
}

#[test]
fn servers_can_grow_and_shrink_in_place() {
    let mut lobby = Lobby::default();
    for size in [3_000, 10, 3_000, 10, 200] {
        for n in 0..200 {
            assert!(lobby.register(address(n), &udp(n.into()).key("x-filler", "x".repeat(size))).is_listed());
        }
        assert_eq!(lobby.list().len(), 200);
        lobby.check_invariants();
        lobby.wait(secs(30));
    }
}

#[test]
fn each_lobby_has_its_own_list() {
    let mut lobby = Lobby::default();
    (0..50).for_each(|n| assert!(lobby.register(address(n), &udp(n.into()).lobby(support::lobby(n % 5))).is_listed()));
    for n in 0..5 {
        assert_eq!(lobby.list_of(support::lobby(n)).len(), 10);
    }
    assert_eq!(lobby.lists().snapshot().lists().count(), 5);
    lobby.wait(secs(71));
    assert_eq!(lobby.lists().snapshot().lists().count(), 0);
}

#[test]
fn a_lobby_can_close_and_open_between_two_publications() {
    let mut lobby = Lobby::default();
    lobby.register(address(1), &udp(1));
    lobby.list();
    lobby.unregister(address(1), 1);
    lobby.register(address(2), &udp(2));
    assert_eq!(lobby.list(), [format!("{}:8190 udp server 2", address(2))]);
    lobby.unregister(address(2), 2);
    assert_eq!(lobby.list(), [""; 0]);
}
