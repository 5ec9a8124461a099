//! Random trouble for property tests: whatever can go wrong between two nodes does, and then it ends.

use crate::{Link, Network, NodeId, Rng};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Longer than the first repetitions of anything, and short enough for many changes in one test.
const LONGEST_SPELL: Duration = Duration::from_millis(1500);

impl Network {
    /// For so long, the path between a client and a server changes at random times: other [random](Link::random) links, a
    /// partition, or another address for the client. Afterwards the links are as they were, and the path is whole.
    pub fn storm(&mut self, client: impl Into<NodeId>, server: impl Into<NodeId>, length: Duration) {
        let (client, server) = (client.into(), server.into());
        let calm = [self.link(client, server), self.link(server, client)];
        let (rng, end) = (self.rng().fork(), self.now() + length);
        Storm { client, server, calm, end, rng }.change(self);
    }
}

struct Storm {
    client: NodeId,
    server: NodeId,
    calm: [Link; 2],
    end: Instant,
    rng: Rng,
}

impl Storm {
    fn change(mut self, net: &mut Network) {
        let (client, server) = (self.client, self.server);
        net.partition(client, server, false);
        if net.now() >= self.end {
            net.set_link(client, server, self.calm[0]);
            net.set_link(server, client, self.calm[1]);
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
        let next = net.now() + self.rng.duration(LONGEST_SPELL);
        net.at(next.min(self.end), |net| self.change(net));
    }

    fn free_address(&mut self, net: &Network) -> SocketAddr {
        let mut address = net.address(self.client);
        while net.is_taken(address) {
            address.set_port(1024 + self.rng.below(64_512) as u16);
        }
        address
    }
}
