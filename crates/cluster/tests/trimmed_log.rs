//! A node that was suspended while the log was trimmed notices it with its next tick, not with the next change.

use crate::support;

use rallypoint_cluster::StoreDefect;
use std::time::{Duration, Instant};
use support::{ModelStore, Peer, Server, server, unregistration};

/// Two nodes with a server, of which the second one is suspended afterwards.
fn nodes(now: Instant, store: &mut ModelStore) -> [Peer; 2] {
    let mut nodes = [1, 2].map(|number| Peer::new(number, now));
    nodes[0].register(now, &server(1));
    nodes.iter_mut().for_each(|node| node.run(now, store));
    assert_eq!(nodes[1].players(now), [0]);
    nodes
}

#[test]
fn changes_that_are_gone_from_the_log_are_read_from_the_entries() {
    let start = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let [mut running, mut suspended] = nodes(start, &mut store);
    running.register(start, &Server { players: 5, ..server(1) });
    running.run(start, &mut store);
    store.trim_log(0);
    let later = start + Duration::from_secs(2);
    store.now += 2_000;
    suspended.run(later, &mut store);
    assert_eq!(suspended.players(later), [5]);
    assert_eq!(suspended.node.take_defect(), Some(StoreDefect::LostRecords));
    assert_eq!((suspended.node.take_defect(), suspended.node.stats().defects), (None, 1));
}

/// The store has lost nothing but records, so the server is gone at once.
#[test]
fn a_removal_that_is_gone_from_the_log_is_noticed() {
    let start = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let [mut running, mut suspended] = nodes(start, &mut store);
    running.registry.handle_datagram(start, ([203, 0, 113, 1], 4_000).into(), &unregistration(1));
    running.run(start, &mut store);
    store.trim_log(0);
    let later = start + Duration::from_secs(2);
    store.now += 2_000;
    suspended.run(later, &mut store);
    assert_eq!(suspended.players(later), [0; 0]);
}

#[test]
fn a_log_without_old_records_is_not_a_defect() {
    let start = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let [_, mut node] = nodes(start, &mut store);
    store.trim_log(0);
    for second in 1..10 {
        store.now += 1_000;
        node.run(start + Duration::from_secs(second), &mut store);
    }
    assert_eq!((node.node.take_defect(), node.node.stats().loads), (None, 1));
}
