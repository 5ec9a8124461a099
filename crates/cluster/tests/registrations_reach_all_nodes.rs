//! A change that one node accepts is in the list of every node within 500 ms: registrations, changes, unregistrations,
//! replacements (L8), both address families at different nodes (L9), expiries (L10) and tombstones (L11).

use crate::support;

use rallypoint_lobby_proto::{
    HashKeys, RegistrationOutcome,
    doors::{Datagrams, LEGACY},
};
use std::time::Duration;
use support::{World, server, unregistration};

const LIMIT: Duration = Duration::from_millis(500);

/// Three nodes that have joined.
fn cluster() -> World {
    let mut world = World::new(3, 1);
    world.run(Duration::from_secs(3));
    assert!((0..3).all(|node| world.is_following(node)));
    world
}

fn assert_same(world: &mut World, expected: &[&str]) {
    for node in 0..world.nodes.len() {
        let list: Vec<_> = world.list(node).into_iter().collect();
        assert_eq!(list.len(), expected.len(), "node {node} lists {list:?}");
        for (entry, expected) in list.iter().zip(expected) {
            assert!(entry.contains(expected), "node {node}: {entry} does not contain {expected}");
        }
    }
}

#[test]
fn a_registration_a_change_and_an_unregistration() {
    let mut world = cluster();
    assert_eq!(world.register(0, "203.0.113.1", &server(1)), RegistrationOutcome::Listed);
    world.run(LIMIT);
    assert_same(&mut world, &["203.0.113.1:8190 server 1 0 Udp"]);
    let changed = support::Server { players: 5, ..server(1) };
    assert_eq!(world.register(0, "203.0.113.1", &changed), RegistrationOutcome::Changed);
    world.run(LIMIT);
    assert_same(&mut world, &["203.0.113.1:8190 server 1 5 Udp"]);
    assert_eq!(world.send(0, "203.0.113.1", &unregistration(1)), RegistrationOutcome::Unregistered);
    world.run(LIMIT);
    assert_same(&mut world, &[]);
}

#[test]
fn w70_an_unregistration_counts_at_every_node() {
    let mut world = cluster();
    world.register(0, "203.0.113.1", &server(1));
    world.run(LIMIT);
    assert_eq!(world.send(1, "203.0.113.1", &unregistration(1)), RegistrationOutcome::Unregistered);
    world.run(LIMIT);
    assert_same(&mut world, &[]);
    assert_eq!(world.register(2, "203.0.113.1", &server(1)), RegistrationOutcome::JustUnregistered);
    world.run(Duration::from_secs(4));
    assert_eq!(world.register(2, "203.0.113.1", &server(1)), RegistrationOutcome::Listed);
    world.run(LIMIT);
    assert_same(&mut world, &["server 1"]);
}

#[test]
fn l8_a_restarted_server_replaces_itself_at_another_node_and_in_another_lobby() {
    let mut world = cluster();
    world.register(0, "203.0.113.1", &server(1));
    world.run(LIMIT);
    let lobby = rallypoint_wire::lobby::ListId::from_bytes([7; 16]);
    let restarted = support::Server { lobby, ..server(2) };
    assert_eq!(world.register(1, "203.0.113.1", &restarted), RegistrationOutcome::Listed);
    world.run(LIMIT);
    assert_same(&mut world, &["server 2"]);
}

/// Two servers at the same endpoint register at two nodes at the same time: the store decides, and all nodes agree.
#[test]
fn w68_two_servers_at_one_endpoint_at_the_same_time() {
    for seed in 0..20 {
        let mut world = World::new(3, seed);
        world.run(Duration::from_secs(3));
        world.register(0, "203.0.113.1", &server(1));
        world.register(1, "203.0.113.1", &server(2));
        world.run(LIMIT);
        let list = world.list(0);
        assert_eq!(list.len(), 1, "{list:?}");
        assert_eq!((world.list(1), world.list(2)), (list.clone(), list));
    }
}

#[test]
fn l9_both_families_at_different_nodes_are_one_entry() {
    let mut world = cluster();
    world.register(0, "203.0.113.1", &server(1));
    world.run(LIMIT);
    world.register(1, "2001:db8::1", &server(1));
    world.run(LIMIT);
    assert_same(&mut world, &["203.0.113.1:8190 [2001:db8::1]:8190 server 1"]);
    // Each has its own lease: only the IPv6 one is renewed.
    for _ in 0..4 {
        world.run(Duration::from_secs(20));
        world.register(1, "2001:db8::1", &server(1));
    }
    assert_same(&mut world, &[" [2001:db8::1]:8190 server 1"]);
    assert!(!world.list(0).first().unwrap().contains("203.0.113.1"));
}

#[test]
fn l10_a_server_expires_at_all_nodes_and_one_that_is_refreshed_does_not() {
    let mut world = cluster();
    world.register(0, "203.0.113.1", &server(1));
    world.register(0, "203.0.113.2", &server(2));
    for _ in 0..5 {
        world.run(Duration::from_secs(15));
        assert_eq!(world.register(0, "203.0.113.2", &server(2)), RegistrationOutcome::Refreshed);
    }
    assert_same(&mut world, &["server 2"]);
}

#[test]
fn a_server_can_move_from_node_to_node_without_leaving_the_list() {
    let mut world = cluster();
    world.register(0, "203.0.113.1", &server(1));
    for round in 0..12 {
        world.run(Duration::from_secs(30));
        assert_same(&mut world, &["server 1"]);
        world.register(round % 3, "203.0.113.1", &server(1));
    }
    assert_eq!(world.nodes[2].registry.stats().unlisted.iter().sum::<u64>(), 0);
}

#[test]
fn a_refresh_is_not_logged_and_costs_the_store_little() {
    let mut world = cluster();
    for number in 0..50 {
        world.register(0, &format!("203.0.113.{number}"), &server(number));
    }
    world.run(Duration::from_secs(5));
    let seq = world.nodes[1].node.stats().seq;
    let before = world.store.commands;
    for _ in 0..4 {
        world.run(Duration::from_secs(15));
        for number in 0..50 {
            assert_eq!(
                world.register(0, &format!("203.0.113.{number}"), &server(number)),
                RegistrationOutcome::Refreshed
            );
        }
    }
    assert_eq!(world.nodes[1].node.stats().seq, seq);
    // Every lease is reported once per refresh, in few requests. (The model counts every attempt to read the log as a request.)
    let renewals = world.nodes.iter().map(|node| node.node.stats().renewed).sum::<u64>();
    assert!((100..=300).contains(&renewals), "{renewals} leases, {} requests", world.store.commands - before);
}

/// An old server has no ID of its own: every node derives the same one.
#[test]
fn l16_a_legacy_server_can_move_from_node_to_node() {
    use rallypoint_wire::legacy::{Info, Registration, protocol_of_version};
    let Some(Datagrams::Protocol(start)) = LEGACY.sockets.as_ref().and_then(|sockets| sockets.datagrams) else {
        panic!("its registrations are converted")
    };
    let mut door = start(&HashKeys::default());
    let mut datagram = Vec::new();
    let info = Info::parse(b"[ctf_truefort] Bacon Town [3/10]");
    Registration { protocol_id: protocol_of_version(41), port: 8190.try_into().unwrap(), info }.emit(&mut datagram);
    let mut world = cluster();
    let from = "203.0.113.1:9".parse().unwrap();
    for round in 0..12 {
        let now = world.now + world.nodes[round % 3].ahead;
        door.handle_datagram(&mut world.nodes[round % 3].registry, now, from, &datagram);
        world.run(Duration::from_secs(30));
        assert_same(&mut world, &["203.0.113.1:8190 Bacon Town"]);
    }
    assert_eq!(world.nodes[0].registry.stats().unlisted.iter().sum::<u64>(), 0);
}
