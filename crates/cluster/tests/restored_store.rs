//! A store that is restored from a backup has servers that have ended since: the nodes remember that they have.

use crate::support;

use rallypoint_cluster::StoreDefect;
use std::time::Duration;
use support::{World, server, unregistration};

const SECOND: Duration = Duration::from_secs(1);
const HOST: &str = "203.0.113.9";

fn register_others(world: &mut World) {
    for number in 0..3 {
        world.register(number, &format!("203.0.113.{number}"), &server(number as u128));
    }
}

/// Three nodes with a server each, and one more that is about to end.
fn cluster() -> World {
    let mut world = World::new(3, 11);
    world.run(3 * SECOND);
    register_others(&mut world);
    world.register(0, HOST, &server(9));
    world.run_until_listed(4, SECOND);
    world
}

#[test]
fn a_server_that_has_ended_is_not_listed_again() {
    let mut world = cluster();
    let mut backup = world.store.clone();
    world.send(0, HOST, &unregistration(9));
    world.run_until_listed(3, SECOND);
    world.run(20 * SECOND);
    register_others(&mut world);
    world.run(2 * SECOND);
    backup.now = world.store.now;
    world.store = backup;
    for _ in 0..300 {
        world.run(SECOND / 10);
        for node in 0..3 {
            assert_eq!(world.list(node).len(), 3, "node {node}");
        }
    }
    assert_eq!(world.store.entries.len(), 3);
    for node in &mut world.nodes {
        assert_eq!(node.node.take_defect(), Some(StoreDefect::LostChanges));
    }
    // It can come back.
    register_others(&mut world);
    world.register(1, HOST, &server(9));
    world.run_until_listed(4, SECOND);
}

/// A node has missed that, and reads everything.
#[test]
fn a_server_that_has_registered_again_elsewhere_stays() {
    let mut world = cluster();
    world.send(0, HOST, &unregistration(9));
    world.run_until_listed(3, SECOND);
    world.nodes[2].is_linked = false;
    world.run(5 * SECOND);
    world.register(1, HOST, &server(9));
    world.run(2 * SECOND);
    world.store.trim_log(0);
    world.nodes[2].is_linked = true;
    for _ in 0..100 {
        world.run(SECOND / 10);
        for node in 0..2 {
            assert_eq!(world.list(node).len(), 4, "node {node}");
        }
    }
    assert_eq!(world.list(2).len(), 4);
}
