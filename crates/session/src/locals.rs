//! Which address of this machine each peer talks to.
//!
//! A machine with several addresses would otherwise answer from the one that its routes prefer, and a client, or the NAT
//! before it, takes nothing from an address that it did not ask.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};

/// So many peers are remembered: many times the players of a server. If forged senders make it more, all are forgotten, and
/// every peer is known again with its next datagram.
const MOST: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Locals {
    known: HashMap<SocketAddr, IpAddr>,
    /// The last one: datagrams of one peer come together.
    last: Option<(SocketAddr, IpAddr)>,
}

impl Locals {
    /// A peer has sent something to this address.
    pub fn note(&mut self, peer: SocketAddr, local: Option<IpAddr>) {
        let Some(local) = local.filter(|local| Some((peer, *local)) != self.last) else { return };
        // A link-local address belongs to a network, which the peer's address already says.
        if local.is_unspecified() || local.is_multicast() || is_link_local(local) {
            return;
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.last = Some((peer, local));
        self.known.insert(peer, local);
    }

    /// The address to send to this peer from, if it is known.
    pub fn of(&self, peer: &SocketAddr) -> Option<IpAddr> {
        self.last.filter(|(last, _)| last == peer).map(|(_, local)| local).or_else(|| self.known.get(peer).copied())
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_counts_and_memory_is_bounded() {
        let (one, other): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let peer = |n: u16| SocketAddr::from(([192, 0, 2, 1], n));
        let mut locals = Locals::default();
        assert_eq!(locals.of(&peer(1)), None);
        locals.note(peer(1), Some(one));
        locals.note(peer(2), Some(other));
        assert_eq!((locals.of(&peer(1)), locals.of(&peer(2))), (Some(one), Some(other)));
        locals.note(peer(1), Some(other));
        locals.note(peer(2), None);
        assert_eq!((locals.of(&peer(1)), locals.of(&peer(2))), (Some(other), Some(other)));
        for n in 0..20_000 {
            locals.note(peer(n), Some(one));
        }
        assert!(locals.known.len() <= MOST && locals.of(&peer(19_999)) == Some(one));
    }
}
