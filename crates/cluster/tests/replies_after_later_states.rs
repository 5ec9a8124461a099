//! States of servers that were read before something later was known do not replace it.

use crate::support::{ModelStore, Server, secret, server};
use rallypoint_cluster::{ClusterNode, NodeConfig, Reply, Request, RequestId, RequestKind};
use rallypoint_lobby_proto::{Config, HashKeys, LocalChange, PublicId, Registry};
use std::time::{Duration, Instant};

/// A node without delays, whose requests of one kind can be held back.
struct Peer {
    node: ClusterNode,
    registry: Registry,
    open: Vec<(RequestId, Request)>,
    held: Option<RequestKind>,
}

impl Peer {
    fn new(number: u64, now: Instant) -> Self {
        let outage_limit = Duration::from_secs(300);
        let config =
            NodeConfig { node: number, secret_check: secret().check_value(), outage_limit, max_servers: 1_000 };
        let node = ClusterNode::new(config, now);
        let mut config = Config::default();
        config.checks.enabled = false;
        let keys = HashKeys { tables: number, public_ids: secret().public_id_key() };
        let mut registry = Registry::new(config, keys, now).unwrap();
        registry.enable_replication(now, [3; 16]);
        Self { node, registry, open: Vec::new(), held: None }
    }

    fn register(&mut self, now: Instant, server: &Server) {
        let source = ([203, 0, 113, server.id as u8], 4_000).into();
        self.registry.handle_datagram(now, source, &server.datagram());
    }

    /// Executes requests until those that are left are held, or wait for a record of the log.
    fn run(&mut self, now: Instant, store: &mut ModelStore) {
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            self.node.handle_changes(now, self.registry.take_changes(self.node.free_changes()));
            self.open.extend(std::iter::from_fn(|| self.node.poll_request(now)));
            for (id, request) in std::mem::take(&mut self.open) {
                let is_held = self.held == Some(request.kind());
                match Some(()).filter(|()| !is_held).and_then(|()| store.execute(&request)) {
                    Some(reply) => {
                        self.node.handle_reply(now, now, id, Ok(reply));
                        is_busy = true;
                    }
                    None => self.open.push((id, request)),
                }
            }
            while let Some(update) = self.node.poll_update(now) {
                update.apply_to(now, &mut self.registry);
            }
        }
    }

    fn players(&mut self, now: Instant) -> Vec<u16> {
        self.registry.publish(now);
        let snapshot = self.registry.lists().snapshot();
        let servers = snapshot.lobbies().flat_map(|(_, servers)| servers.servers());
        servers.map(|server| server.block().occupancy.players).collect()
    }
}

fn public_id(now: Instant, server: &Server) -> PublicId {
    let mut peer = Peer::new(9, now);
    peer.register(now, server);
    let Some(LocalChange::Put(put)) = peer.registry.take_changes(1).pop() else { panic!("no change") };
    put.public_id
}

/// Numbers of the content before are higher than those of all changes that follow.
#[test]
fn a_state_of_a_lost_content_does_not_hide_changes() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let mut peers = [Peer::new(1, now), Peer::new(2, now)];
    let pass = |now: &mut Instant, store: &mut ModelStore, time: Duration| {
        *now += time;
        store.now += time.as_millis() as u64;
    };
    peers.iter_mut().for_each(|peer| peer.run(now, &mut store));
    for players in 0..30 {
        pass(&mut now, &mut store, Duration::from_secs(2));
        peers[0].register(now, &Server { players, ..server(1) });
        peers.iter_mut().for_each(|peer| peer.run(now, &mut store));
    }
    // The first node has a change under way while it reads one of the other node.
    peers[0].held = Some(RequestKind::Write);
    pass(&mut now, &mut store, Duration::from_secs(2));
    peers[0].register(now, &Server { players: 50, ..server(1) });
    peers[0].run(now, &mut store);
    pass(&mut now, &mut store, Duration::from_secs(2));
    peers[1].register(now, &Server { players: 60, ..server(1) });
    peers[1].run(now, &mut store);
    peers[0].run(now, &mut store);
    store.flush();
    peers[0].held = None;
    for players in 61..65 {
        pass(&mut now, &mut store, Duration::from_secs(3));
        peers[1].register(now, &Server { players, ..server(1) });
        for _ in 0..2 {
            peers.iter_mut().for_each(|peer| peer.run(now, &mut store));
        }
    }
    assert!(peers[0].node.stats().seq < 30, "the numbers have begun again");
    for peer in &mut peers {
        assert_eq!(peer.players(now), [64]);
    }
}

/// The store did not have the server when it was asked, and the log shows it before that reply arrives.
#[test]
fn a_late_reply_does_not_remove_a_server_that_was_listed_since() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let (mut reader, mut writer) = (Peer::new(1, now), Peer::new(2, now));
    reader.run(now, &mut store);
    writer.run(now, &mut store);
    let id = public_id(now, &server(1));
    reader.held = Some(RequestKind::Fetch);
    reader.node.handle_changes(now, [LocalChange::Reread(id)]);
    reader.run(now, &mut store);
    let position = reader.open.iter().position(|(_, request)| request.kind() == RequestKind::Fetch);
    let (fetch, request) = reader.open.remove(position.expect("the server is read"));
    let fetched = store.execute(&request).unwrap();
    assert_eq!(fetched, Reply::Fetched(vec![None]));
    writer.register(now, &server(1));
    writer.run(now, &mut store);
    reader.run(now, &mut store);
    assert_eq!(reader.players(now), [0]);
    now += Duration::from_millis(10);
    reader.node.handle_reply(now, now, fetch, Ok(fetched));
    reader.run(now, &mut store);
    assert_eq!(reader.players(now), [0]);
}
