//! Random faults for property tests: everything that can go wrong between two nodes does, for a limited time.

use crate::{Link, Network, NodeId, Rng};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum time between two changes: longer than the first retransmissions of any protocol, and short enough for many changes
/// in one test.
const MAX_INTERVAL: Duration = Duration::from_millis(1500);

impl Network {
    /// Changes the path between a client and a server at random times, for this long: other [random](Link::random) links, a
    /// partition, or another address for the client. Afterwards the links are as they were before, and the path is whole.
    pub fn start_chaos(&mut self, client: impl Into<NodeId>, server: impl Into<NodeId>, duration: Duration) {
        let client = client.into();
        let server = server.into();
        let original_links = [self.link(client, server), self.link(server, client)];
        let rng = self.rng().fork();
        let end = self.now() + duration;
        Chaos { client, server, original_links, end, rng }.change(self);
    }
}

struct Chaos {
    client: NodeId,
    server: NodeId,
    original_links: [Link; 2],
    end: Instant,
    rng: Rng,
}

impl Chaos {
    fn change(mut self, net: &mut Network) {
        let client = self.client;
        let server = self.server;
        net.partition(client, server, false);
        if net.now() >= self.end {
            net.set_link(client, server, self.original_links[0]);
            net.set_link(server, client, self.original_links[1]);
            return;
        }
        match self.rng.below(6) {
            0 => net.partition(client, server, true),
            1 => {
                let address = self.free_address(net);
                net.rebind(client, address);
            }
            _ => {
                net.set_link(client, server, Link::random(&mut self.rng));
                net.set_link(server, client, Link::random(&mut self.rng));
            }
        }
        let next = net.now() + self.rng.duration(MAX_INTERVAL);
        net.schedule_at(next.min(self.end), |net| self.change(net));
    }

    /// The client's address with a port that no node has.
    fn free_address(&mut self, net: &Network) -> SocketAddr {
        let mut address = net.address(self.client);
        while net.is_address_used(address) {
            address.set_port(1024 + self.rng.below(64_512) as u16);
        }
        address
    }
}
