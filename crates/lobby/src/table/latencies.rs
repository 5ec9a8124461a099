//! Latencies of servers by node of a cluster, in bounded memory.

use crate::NodeLatency;
use rallypoint_lobby_proto::PublicId;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum number of nodes whose latency is kept for a server.
const MAX_NODES: usize = 16;

/// Age at which a latency is no longer displayed: its node has measured three times without a reply, or has gone.
const MAX_AGE: Duration = Duration::from_secs(16 * 60);

/// The latencies of listed servers.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    by_server: HashMap<PublicId, Vec<(NodeLatency, Instant)>>,
    /// The names of all nodes, so that each is in memory once.
    names: Vec<Arc<str>>,
}

impl Latencies {
    /// Adds the latency of a server that is in the table.
    pub fn insert(&mut self, now: Instant, id: PublicId, mut new: NodeLatency) {
        match self.names.iter().find(|name| **name == new.node) {
            Some(name) => new.node = Arc::clone(name),
            None if self.names.len() < 4 * MAX_NODES => self.names.push(Arc::clone(&new.node)),
            // Names that no node has now are forgotten; those in use are kept by their latencies.
            None => self.names = vec![Arc::clone(&new.node)],
        }
        let known = self.by_server.entry(id).or_default();
        known.retain(|(latency, at)| latency.node != new.node && now.saturating_duration_since(*at) < MAX_AGE);
        if known.len() < MAX_NODES {
            let index = known.partition_point(|(latency, _)| latency.node < new.node);
            known.insert(index, (new, now));
        }
    }

    /// The latencies of a server, sorted by the name of the node.
    pub fn of(&self, now: Instant, id: PublicId) -> impl Iterator<Item = &NodeLatency> + Clone {
        let known = self.by_server.get(&id).map(Vec::as_slice).unwrap_or_default();
        known.iter().filter(move |(_, at)| now.saturating_duration_since(*at) < MAX_AGE).map(|(latency, _)| latency)
    }

    pub fn remove(&mut self, id: PublicId) {
        self.by_server.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w91_latencies_are_replaced_bounded_and_forgotten() {
        let start = Instant::now();
        let id = PublicId::from_bytes([1; 16]);
        let mut latencies = Latencies::default();
        let ms = Duration::from_millis;
        let mut insert = |now, node: usize, latency| {
            latencies.insert(now, id, NodeLatency { node: format!("{node:03}").into(), latency: ms(latency) });
        };
        insert(start, 7, 30);
        insert(start, 3, 20);
        insert(start + MAX_AGE / 2, 7, 31);
        let shown = |latencies: &Latencies, now| latencies.of(now, id).map(|known| known.latency).collect::<Vec<_>>();
        assert_eq!(shown(&latencies, start + MAX_AGE / 2), [ms(20), ms(31)], "sorted by name");
        assert_eq!(shown(&latencies, start + MAX_AGE), [ms(31)]);
        for node in 0..500 {
            latencies.insert(start + MAX_AGE, id, NodeLatency { node: node.to_string().into(), latency: ms(1) });
        }
        assert_eq!(shown(&latencies, start + MAX_AGE).len(), MAX_NODES);
        assert!(latencies.names.len() <= 4 * MAX_NODES);
        latencies.remove(id);
        assert!(shown(&latencies, start).is_empty());
    }
}
