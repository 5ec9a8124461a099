//! W45 and W90 in a cluster: a registration with a forged source does not remove a server that has proven itself at another node.

use crate::support;

use rallypoint_lobby_proto::{PublicId, RegistrationOutcome};
use std::time::Duration;
use support::{Server, World, server, unregistration};

const SECOND: Duration = Duration::from_secs(1);
const HOST: &str = "203.0.113.1";

/// The server of the owner, which answers queries.
fn real() -> Server {
    Server { x_query: Some("session:45555"), ..server(1) }
}

/// Three nodes that list the server; it registers with the first one.
fn cluster() -> World {
    let mut world = World::with_checks(3, 5, &["203.0.113.1:45555"]);
    world.run(3 * SECOND);
    assert_eq!(world.register(0, HOST, &real()), RegistrationOutcome::Checking);
    world.run(SECOND);
    assert_names(&mut world, &["server 1"]);
    world
}

fn names(world: &mut World, node: usize) -> Vec<String> {
    world.list(node).into_iter().map(|entry| entry.split(' ').skip(2).take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn assert_names(world: &mut World, expected: &[&str]) {
    for node in 0..world.nodes.len() {
        assert_eq!(names(world, node), expected, "node {node}");
        world.nodes[node].registry.check_invariants();
    }
}

#[test]
fn w90_a_forgery_that_is_not_reached_changes_nothing_at_other_nodes() {
    let mut world = cluster();
    let forged = Server { x_query: Some("bloodmasters:1"), ..server(2) };
    assert_eq!(world.register(1, HOST, &forged), RegistrationOutcome::Checking);
    for _ in 0..200 {
        world.step();
        for node in [0, 2] {
            assert_eq!(names(&mut world, node), ["server 1"], "node {node}");
        }
    }
    assert_names(&mut world, &["server 1"]);
    assert_eq!(world.store.entries.len(), 1);
}

#[test]
fn w90_a_proven_server_returns_at_all_nodes_when_the_forged_one_leaves() {
    for leaves_at in 0..3 {
        let mut world = cluster();
        // Without a way to check it, it is listed at once, as a restarted server would be (L8).
        assert_eq!(world.register(1, HOST, &server(2)), RegistrationOutcome::Listed);
        world.run(SECOND);
        assert_names(&mut world, &["server 2"]);
        assert_eq!(world.send(leaves_at, HOST, &unregistration(2)), RegistrationOutcome::Unregistered);
        world.run(SECOND);
        assert_names(&mut world, &["server 1"]);
        assert_eq!(world.store.entries.len(), 1, "left at node {leaves_at}");
    }
}

#[test]
fn w90_a_forged_server_is_not_proven_by_the_reply_of_the_one_that_it_displaced() {
    let mut world = cluster();
    let forged = Server { x_query: Some("session:45555"), ..server(2) };
    world.register(1, HOST, &forged);
    world.run(SECOND);
    // The attacker also registers with a node that neither the server nor the forgery registered with.
    world.register(2, HOST, &forged);
    world.run(SECOND);
    assert_names(&mut world, &["server 2"]);
    assert!(world.store.entries.values().all(|entry| !entry.is_proven));
    // The owner's next registration counts, and restores the proof.
    assert_eq!(world.register(0, HOST, &real()), RegistrationOutcome::Listed);
    world.run(SECOND);
    assert_names(&mut world, &["server 1"]);
    assert!(world.store.entries.values().all(|entry| entry.is_proven));
}

#[test]
fn a_displaced_server_is_unregistered_at_any_node() {
    for node in 0..3 {
        let mut world = cluster();
        world.register(1, HOST, &server(2));
        world.run(SECOND);
        assert_eq!(world.send(node, HOST, &unregistration(1)), RegistrationOutcome::Unregistered, "node {node}");
        world.run(SECOND);
        world.send(1, HOST, &unregistration(2));
        world.run(SECOND);
        assert_names(&mut world, &[]);
    }
}

#[test]
fn a_proven_server_returns_at_a_node_without_contact() {
    let mut world = cluster();
    world.nodes[1].is_linked = false;
    world.run(5 * SECOND);
    world.register(1, HOST, &Server { x_query: Some("bloodmasters:1"), ..server(2) });
    world.run(SECOND);
    assert_eq!(names(&mut world, 1), ["server 1"]);
    world.nodes[1].is_linked = true;
    world.run(10 * SECOND);
    assert_names(&mut world, &["server 1"]);
}

/// Tells these nodes that the listed server has replied to verification.
fn reply(world: &mut World, nodes: &[usize]) {
    let id = listed_id(world, nodes[0]);
    for &node in nodes {
        let now = world.now + world.nodes[node].ahead;
        world.nodes[node].registry.handle_reply(now, id, format!("{HOST}:8190").parse().unwrap());
    }
    world.run(SECOND);
}

fn listed_id(world: &mut World, node: usize) -> PublicId {
    world.list(node);
    let lists = world.nodes[node].registry.lists().snapshot();
    let mut servers = lists.lists().flat_map(|(_, list)| list.servers());
    servers.next().expect("a listed server").public_id()
}

fn is_proven(world: &World) -> Vec<bool> {
    world.store.entries.values().map(|entry| entry.is_proven).collect()
}

#[test]
fn w90_a_reply_to_verification_proves_a_server_at_its_node_and_so_at_all() {
    let mut world = World::new(3, 5);
    world.run(3 * SECOND);
    assert_eq!(world.register(0, HOST, &real()), RegistrationOutcome::Listed);
    world.run(SECOND);
    reply(&mut world, &[1, 2]);
    assert_eq!(is_proven(&world), [false], "the nodes that do not hear it do not decide");
    reply(&mut world, &[1, 0]);
    assert_eq!(is_proven(&world), [true]);
    // The replies of the server do not prove the one that displaces it, at any node.
    let forged = Server { x_query: Some("session:45555"), ..server(2) };
    assert_eq!(world.register(1, HOST, &forged), RegistrationOutcome::Listed);
    world.run(SECOND);
    assert_names(&mut world, &["server 2"]);
    reply(&mut world, &[0, 1, 2]);
    assert_eq!(is_proven(&world), [false]);
    assert_eq!(world.send(2, HOST, &unregistration(2)), RegistrationOutcome::Unregistered);
    world.run(SECOND);
    assert_names(&mut world, &["server 1"]);
    assert_eq!(is_proven(&world), [true]);
}
