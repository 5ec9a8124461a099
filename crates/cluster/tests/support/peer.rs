//! One node without delays, step by step.

use super::{ModelStore, Server, node_config, registry};
use rallypoint_cluster::{ClusterNode, Request, RequestId, RequestKind};
use rallypoint_lobby_proto::Registry;
use std::time::Instant;

/// A node without delays, whose requests of one kind can be held back.
pub struct Peer {
    pub node: ClusterNode,
    pub registry: Registry,
    pub open: Vec<(RequestId, Request)>,
    pub held: Option<RequestKind>,
}

impl Peer {
    pub fn new(number: u64, now: Instant) -> Self {
        let node = ClusterNode::new(node_config(number), now);
        Self { node, registry: registry(number, now), open: Vec::new(), held: None }
    }

    pub fn register(&mut self, now: Instant, server: &Server) {
        let source = ([203, 0, 113, server.id as u8], 4_000).into();
        self.registry.handle_datagram(now, source, &server.datagram());
    }

    /// The request of a kind that is held back.
    pub fn take_held(&mut self, kind: RequestKind) -> (RequestId, Request) {
        let position = self.open.iter().position(|(_, request)| request.kind() == kind);
        self.open.remove(position.expect("a request of this kind"))
    }

    /// Executes requests until those that are left are held, or wait for a record of the log.
    pub fn run(&mut self, now: Instant, store: &mut ModelStore) {
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

    pub fn players(&mut self, now: Instant) -> Vec<u16> {
        self.registry.publish(now);
        let snapshot = self.registry.lists().snapshot();
        let servers = snapshot.lists().flat_map(|(_, servers)| servers.servers());
        servers.map(|server| server.block().occupancy.players).collect()
    }
}
