//! Whatever happens, all nodes and the store agree in the end: random registrations at random nodes, and faults.
//!
//! A full run has a hundred seeds.

use crate::support;

use rallypoint_netsim::is_full;
use std::{collections::BTreeMap, time::Duration};
use support::{Server, World, server, unregistration};

const SECOND: Duration = Duration::from_secs(1);

/// A game server that runs, and the nodes that it registers with.
struct Running {
    server: Server,
    /// Its address in each family, and the node that it uses for it.
    addrs: Vec<(String, usize)>,
    next: std::time::Instant,
}

/// Faults that end before the nodes are compared.
fn fault(world: &mut World, snapshot: &mut Option<support::model::ModelStore>) {
    let node = world.random.below(world.nodes.len() as u64) as usize;
    match world.random.below(9) {
        0 => world.nodes[node].is_linked = false,
        1 | 2 => world.nodes.iter_mut().for_each(|node| node.is_linked = true),
        3 => world.restart_node(node),
        4 => world.store.flush(),
        5 => *snapshot = Some(world.store.clone()),
        6 => {
            if let Some(mut old) = snapshot.take() {
                old.now = world.store.now;
                world.store = old;
            }
        }
        7 => world.is_read_only = !world.is_read_only,
        _ => world.store.trim_log(3),
    }
}

/// All addresses of the servers.
fn reachable() -> Vec<String> {
    let addr = |place: u64, port: u64| [format!("203.0.113.{place}:{port}"), format!("[2001:db8::{place}]:{port}")];
    (1..9).flat_map(|place| (8190..8193).flat_map(move |port| addr(place, port))).collect()
}

fn run_seed(seed: u64) {
    // With checks, a proven server that was replaced can return (W45).
    let mut world =
        if seed.is_multiple_of(3) { World::new(3, seed) } else { World::with_checks(3, seed, &reachable()) };
    let mut running: BTreeMap<u64, Running> = BTreeMap::new();
    let mut snapshot = None;
    let mut next_id = 1;
    let has_faults = !seed.is_multiple_of(4);
    let end = world.now + 150 * SECOND;
    while world.now < end {
        let place = world.random.below(8);
        match world.random.below(100) {
            // A server starts at a place: any earlier one there has ended, unless it is only an interface that it left.
            0..8 => {
                let port = 8190 + (place % 3) as u16;
                let node = world.random.below(3) as usize;
                let other = world.random.below(3) as usize;
                let mut addrs = vec![(format!("203.0.113.{}", place + 1), node)];
                if world.random.chance(40) {
                    addrs.push((format!("2001:db8::{}", place + 1), other));
                }
                let is_tcp = world.random.chance(20);
                let server = Server { port, is_tcp, ..server(next_id) };
                next_id += 1;
                running.insert(place, Running { server, addrs, next: world.now });
            }
            8..12 => {
                if let Some(old) = running.remove(&place)
                    && world.random.chance(60)
                {
                    let node = world.random.below(3) as usize;
                    world.send(node, &old.addrs[0].0, &unregistration(old.server.id));
                }
            }
            12..20 => {
                if let Some(known) = running.get_mut(&place) {
                    known.server.players += 1;
                    known.next = world.now;
                }
            }
            20..24 => {
                if let Some(known) = running.get_mut(&place) {
                    known.addrs[0].1 = world.random.below(3) as usize;
                }
            }
            24..26 => {
                if let Some(known) = running.get_mut(&place) {
                    known.server.lobby = rallypoint_wire::lobby::ListId::from_bytes([place as u8; 16]);
                    known.next = world.now;
                }
            }
            26..28 if has_faults => fault(&mut world, &mut snapshot),
            _ => {}
        }
        refresh(&mut world, &mut running);
        let pause = world.random.below(700);
        world.run(Duration::from_millis(pause));
    }
    // Everything works again: after a lease, only servers that run are listed, everywhere.
    world.is_read_only = false;
    world.nodes.iter_mut().for_each(|node| node.is_linked = true);
    let end = world.now + 100 * SECOND;
    while world.now < end {
        refresh(&mut world, &mut running);
        world.run(SECOND);
    }
    let expected = expected(&running);
    for node in 0..3 {
        assert_eq!(world.list(node), expected, "seed {seed}, node {node}");
        world.nodes[node].registry.check_invariants();
    }
    assert_eq!(world.store.entries.len(), expected.len(), "seed {seed}");
}

fn refresh(world: &mut World, running: &mut BTreeMap<u64, Running>) {
    let now = world.now;
    for known in running.values_mut().filter(|known| known.next <= now) {
        for (addr, node) in &known.addrs {
            world.register(*node, addr, &known.server);
        }
        known.next = now + 25 * SECOND;
    }
}

/// The list of every node if the running servers, and no others, are listed.
fn expected(running: &BTreeMap<u64, Running>) -> std::collections::BTreeSet<String> {
    let entry = |known: &Running| {
        let Server { lobby, port, name, players, is_tcp, .. } = &known.server;
        let addr = |(ip, _): &(String, usize)| match ip.contains(':') {
            true => format!("[{ip}]:{port}"),
            false => format!("{ip}:{port}"),
        };
        let addrs: Vec<_> = known.addrs.iter().map(addr).collect();
        let transport = if *is_tcp { "Tcp" } else { "Udp" };
        format!("{lobby} {} {name} {players} {transport}", addrs.join(" "))
    };
    running.values().map(entry).collect()
}

#[test]
fn all_nodes_agree_after_random_changes_and_faults() {
    (0..if is_full() { 100 } else { 2 }).for_each(run_seed);
}
