//! The node that accepts a registration enforces the caps, and counts the servers of all nodes.

use rallypoint_harness::{GameServer, Lobby, RedisServer, eventually, http_get};

#[test]
fn servers_of_one_address_at_all_nodes_count_together() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = ["a", "b"].map(|name| Lobby::builder().node(&store.url(), name).set("caps.per_address=2").start());
    nodes.iter().for_each(|node| node.wait_until_logged("joined the cluster"));
    let server = |name: &str, port| GameServer::named(name).port(port).from_ip("127.9.9.9");
    let (first, second, third) = (server("first", 9_001), server("second", 9_002), server("third", 9_003));
    nodes[0].register(&first);
    nodes[1].register(&second);
    nodes.iter().for_each(|node| node.wait_until_listed(&["first", "second"]));
    for node in &nodes {
        node.register(&third);
        node.settle();
        nodes.iter().for_each(|node| assert_eq!(node.names(), ["first", "second"]));
    }
    for name in ["a", "b"] {
        eventually("the owner can read the reason", || {
            let (_, outcomes) = http_get(nodes[0].http(), "/api/v1/outcomes?address=127.9.9.9");
            outcomes.contains(&format!(r#""node":"{name}","code":"address_full""#))
        });
    }
    // Neighbours are not affected, and a place that becomes free at one node is free at the other.
    nodes[1].register(&GameServer::named("neighbour").from_ip("127.9.9.8"));
    nodes.iter().for_each(|node| node.wait_until_listed(&["first", "neighbour", "second"]));
    nodes[0].unregister(&first);
    nodes.iter().for_each(|node| node.wait_until_listed(&["neighbour", "second"]));
    nodes[1].register(&third);
    nodes.iter().for_each(|node| node.wait_until_listed(&["neighbour", "second", "third"]));
}
