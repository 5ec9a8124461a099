//! Replies are handled by tasks of their own, so they can arrive in another order than the store executed the requests in.

use crate::support::{self, ModelStore, secret};
use rallypoint_cluster::{ClusterNode, NodeConfig, NodeState, Reply, Request};
use rallypoint_lobby_proto::{Config, HashKeys, Registry};
use std::time::{Duration, Instant};

/// A tick that was executed before a new server was written, and whose reply arrives afterwards, does not mean that the store has lost it.
#[test]
fn a_late_tick_does_not_make_a_node_read_everything_again() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let config = NodeConfig {
        node: 1,
        secret_check: secret().check_value(),
        outage_limit: Duration::from_secs(300),
        max_servers: 1_000,
    };
    let mut node = ClusterNode::new(config, now);
    let mut config = Config::default();
    config.checks.enabled = false;
    let keys = HashKeys { tables: 1, public_ids: secret().public_id_key() };
    let mut registry = Registry::new(config, keys, now).unwrap();
    registry.enable_replication(now, [3; 16]);
    // The node joins an empty store.
    while *node.state() != NodeState::Following {
        let (id, request) = node.poll_request(now).unwrap();
        let reply = store.execute(&request).unwrap();
        node.handle_reply(now, now, id, Ok(reply));
    }
    while node.poll_update(now).is_some() {}
    now += Duration::from_secs(2);
    registry.handle_datagram(now, "203.0.113.7:4000".parse().unwrap(), &support::server(1).datagram());
    let (tick, request) = node.poll_request(now).unwrap();
    assert!(matches!(request, Request::Tick { .. }), "{request:?}");
    let ticked = store.execute(&request).unwrap();
    node.handle_changes(now, registry.take_changes(node.free_changes()));
    loop {
        let (id, request) = node.poll_request(now).expect("the server is written");
        if let Request::Write { .. } = request {
            let written = store.execute(&request).unwrap();
            node.handle_reply(now, now, id, Ok(written));
            break;
        }
    }
    assert!(matches!(&ticked, Reply::Ticked(Some(ticked)) if ticked.servers == 0));
    node.handle_reply(now, now, tick, Ok(ticked));
    assert_eq!((node.state(), node.stats().loads), (&NodeState::Following, 1));
}
