//! Replies are handled by tasks of their own, so they can arrive in another order than the store executed the requests in.

use crate::support::{ModelStore, Peer, server};
use rallypoint_cluster::{NodeState, Reply, RequestKind};
use std::time::{Duration, Instant};

/// A tick that was executed before a new server was written, and whose reply arrives afterwards, does not mean that the store has lost it.
#[test]
fn a_late_tick_does_not_make_a_node_read_everything_again() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let mut peer = Peer::new(1, now);
    peer.run(now, &mut store);
    now += Duration::from_secs(2);
    peer.held = Some(RequestKind::Tick);
    peer.run(now, &mut store);
    let (tick, request) = peer.take_held(RequestKind::Tick);
    let ticked = store.execute(&request).unwrap();
    assert!(matches!(&ticked, Reply::Ticked(Some(ticked)) if ticked.servers == 0));
    peer.register(now, &server(1));
    peer.run(now, &mut store);
    assert_eq!(store.entries.len(), 1, "the server is written");
    peer.node.handle_reply(now, now, tick, Ok(ticked));
    assert_eq!((peer.node.state(), peer.node.stats().loads), (&NodeState::Following, 1));
}
