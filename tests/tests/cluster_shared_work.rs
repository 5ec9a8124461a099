//! Checks, verification and watched servers are shared out among the nodes: each server is probed by one of them, for all.

use rallypoint_harness::{
    GameServer, Lobby, LobbyBuilder, MockServer, QueryProtocol, RedisServer, eventually, http_get, sample_info,
};
use rallypoint_wire::{lobby::ListId, session::ClientDatagram};
use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

const NAMES: [&str; 2] = ["eu", "us"];

/// Two nodes that know each other.
fn nodes(store: &RedisServer, configure: impl Fn(LobbyBuilder) -> LobbyBuilder) -> [Lobby; 2] {
    let nodes = NAMES.map(|name| configure(Lobby::builder().node(&store.url(), name)).start());
    for node in &nodes {
        eventually("the nodes know each other", || {
            http_get(node.http(), "/metrics").1.lines().any(|line| line == "rallypoint_cluster_nodes 2")
        });
    }
    nodes
}

/// Servers that answer queries, each at its own address.
fn mocks(network: &str, count: usize) -> Vec<MockServer> {
    let addr = |number: usize| format!("{network}.{number}:0");
    (1..=count).map(|number| MockServer::with_info(&addr(number), QueryProtocol::Session, &sample_info())).collect()
}

fn server(mock: &MockServer) -> GameServer {
    let ip = mock.addr.ip().to_string();
    GameServer::named(&ip).from_ip(&ip).port(mock.port()).key("x-query", "session")
}

/// Only verification and the probes of watched servers ask for players. Each node measures latencies as well, without that.
fn asks_for_players(datagram: &[u8]) -> bool {
    matches!(ClientDatagram::parse(datagram), Ok(ClientDatagram::QueryPlayers))
}

/// Number of listed servers at a node whose latency both nodes have measured.
fn measured(node: &Lobby) -> usize {
    let (_, list) = http_get(node.http(), "/api/v1/servers");
    let is_measured = |server: &&str| NAMES.iter().all(|name| server.contains(&format!("\"{name}\":")));
    list.split("{\"id\"").filter(|server| server.contains("\"pings\":{")).filter(is_measured).count()
}

/// A port that counts its connections.
struct CountingPort {
    number: u16,
    connections: Arc<AtomicUsize>,
}

impl CountingPort {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = Self { number: listener.local_addr().unwrap().port(), connections: Arc::default() };
        let connections = port.connections.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                connections.fetch_add(1, Relaxed);
                drop(connection);
            }
        });
        port
    }
}

/// One check, and then a measurement of the latency by each node.
#[test]
fn a_server_that_registers_at_two_nodes_is_checked_once() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store, |builder| builder);
    let ports: Vec<_> = (0..8).map(|_| CountingPort::open()).collect();
    for (number, port) in ports.iter().enumerate() {
        let server = GameServer::named(&format!("server {number}")).tcp(port.number);
        nodes.iter().for_each(|node| node.register(&server));
    }
    for node in &nodes {
        node.wait_for_list("the servers are listed", |list| list.len() == ports.len());
    }
    eventually("both nodes have measured the latency", || nodes.iter().all(|node| measured(node) == ports.len()));
    let connections = || ports.iter().map(|port| port.connections.load(Relaxed)).collect::<Vec<_>>();
    // A connection is made before the port has accepted it.
    eventually("all connections are counted", || connections().iter().all(|count| *count >= 3));
    assert_eq!(connections(), vec![3; ports.len()]);
}

/// The next turn of a server is a minute later.
#[test]
fn a_server_that_registers_at_two_nodes_is_verified_by_one() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store, |builder| builder.set("checks.enabled=false"));
    let mocks = mocks("127.9.6", 8);
    let servers: Vec<_> = mocks.iter().map(server).collect();
    nodes.iter().for_each(|node| node.register_all(&servers));
    for node in &nodes {
        eventually("both nodes have the result of verification and have measured the latency", || {
            let (_, list) = http_get(node.http(), "/api/v1/servers");
            list.matches("\"verified\":\"differs\"").count() == mocks.len() && measured(node) == mocks.len()
        });
    }
    let probes: Vec<_> = mocks.iter().map(|mock| mock.probes(asks_for_players)).collect();
    assert_eq!(probes, vec![1; mocks.len()]);
}

/// Takes two minutes.
mod full {
    use super::*;

    /// In full runs only, because it takes two minutes: a node counts as gone after ten seconds, and servers have their turn once
    /// per minute, watched ones twice. There are 24 servers, so that each node owns some of them.
    #[test]
    fn the_servers_of_a_node_that_dies_are_probed_by_another() {
        let Some(store) = RedisServer::start(&[]) else { return };
        let (registered, watched) = (mocks("127.9.6", 12), mocks("127.9.7", 12));
        let table =
            |mock: &MockServer| format!("[[watch]]\nserver = \"session://{}\"\nlist = \"Bloodmasters\"\n", mock.addr);
        let config: String = watched.iter().map(table).collect();
        let nodes = nodes(&store, |builder| builder.set("checks.enabled=false").config(&config));
        let servers: Vec<_> = registered.iter().map(server).collect();
        nodes[0].register_all(&servers);
        for node in &nodes {
            eventually("all are verified or replied", || {
                let (_, list) = http_get(node.http(), "/api/v1/servers?q=127.9.6");
                list.matches("\"verified\":\"differs\"").count() == registered.len()
                    && node.servers_in(ListId::BLOODMASTERS).len() == watched.len()
            });
        }
        nodes[1].kill();
        let mocks: Vec<_> = registered.iter().chain(&watched).collect();
        let counts = || mocks.iter().map(|mock| mock.probes(asks_for_players)).collect::<Vec<_>>();
        let before = counts();
        let end = Instant::now() + Duration::from_secs(140);
        while counts().iter().zip(&before).any(|(now, before)| now <= before) {
            assert!(Instant::now() < end, "before: {before:?}, now: {:?}", counts());
            // The servers go on registering.
            nodes[0].register_all(&servers);
            assert_eq!(nodes[0].servers().len(), registered.len());
            assert_eq!(nodes[0].servers_in(ListId::BLOODMASTERS).len(), watched.len());
            thread::sleep(Duration::from_secs(1));
        }
    }
}
