//! Which local address each peer sends to, so that replies leave from there.
//!
//! A machine with several addresses would otherwise reply from the one that its routes prefer; a client, or the NAT in front of
//! it, drops datagrams from an address that it has not contacted.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};

/// Maximum number of peers that are remembered: many times the players of a server. If forged source addresses exceed it, all
/// peers are forgotten, and each is learned again with its next datagram.
const MAX_PEERS: usize = 4_096;

/// Table of local addresses by peer.
#[derive(Debug, Default)]
pub(crate) struct LocalAddrs {
    by_peer: HashMap<SocketAddr, IpAddr>,
    /// The last entry: datagrams of one peer arrive together.
    last: Option<(SocketAddr, IpAddr)>,
}

impl LocalAddrs {
    /// Records that a datagram of this peer was sent to this local address.
    pub fn record(&mut self, peer: SocketAddr, local: Option<IpAddr>) {
        let Some(local) = local.filter(|local| Some((peer, *local)) != self.last) else { return };
        // A link-local address belongs to an interface, which the peer's address names already.
        if local.is_unspecified() || local.is_multicast() || is_link_local(local) {
            return;
        }
        if self.by_peer.len() >= MAX_PEERS {
            self.by_peer.clear();
        }
        self.last = Some((peer, local));
        self.by_peer.insert(peer, local);
    }

    /// The local address from which to send to this peer, if it is known.
    pub fn get(&self, peer: &SocketAddr) -> Option<IpAddr> {
        let last = self.last.filter(|(last, _)| last == peer).map(|(_, local)| local);
        last.or_else(|| self.by_peer.get(peer).copied())
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_of_a_peer_is_used_and_memory_is_bounded() {
        let one: IpAddr = [127, 0, 0, 1].into();
        let other: IpAddr = [127, 0, 0, 2].into();
        let peer = |n: u16| SocketAddr::from(([192, 0, 2, 1], n));
        let mut addrs = LocalAddrs::default();
        assert_eq!(addrs.get(&peer(1)), None);
        addrs.record(peer(1), Some(one));
        addrs.record(peer(2), Some(other));
        assert_eq!((addrs.get(&peer(1)), addrs.get(&peer(2))), (Some(one), Some(other)));
        addrs.record(peer(1), Some(other));
        addrs.record(peer(2), None);
        assert_eq!((addrs.get(&peer(1)), addrs.get(&peer(2))), (Some(other), Some(other)));
        for n in 0..20_000 {
            addrs.record(peer(n), Some(one));
        }
        assert!(addrs.by_peer.len() <= MAX_PEERS && addrs.get(&peer(19_999)) == Some(one));
    }
}
