//! Which server to probe, and what to ask it for.

use crate::{exchange::Transport, protocols};
use rallypoint_wire::query::{Protocol, ServerQuery, XQuery};
use std::net::{IpAddr, SocketAddr};

/// A server to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Address of the server. Only datagrams from this address count as a reply.
    pub address: SocketAddr,
    /// The query to send.
    pub query: ServerQuery,
    /// An identifier chosen by the caller, returned with the result.
    pub tag: u64,
}

/// Why a [`Prober`](crate::Prober) does not accept a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// No reply can ever come from such an address.
    #[error("{0} is not an address that a server can answer from: give the server's own address and port")]
    UnusableAddress(SocketAddr),
    /// [`ProberConfig::max_targets`](crate::ProberConfig::max_targets) probes are queued already.
    #[error("{0} probes are queued already: take results first, or raise the limit")]
    QueueFull(usize),
    /// The protocol is not carried by datagrams: it needs a [`StreamExchange`](crate::StreamExchange).
    #[error("{0} is not queried with datagrams: use a connection")]
    NoDatagrams(Protocol),
    /// The protocol is carried by datagrams: it needs a [`Prober`](crate::Prober).
    #[error("{0} is queried with datagrams, not over a connection")]
    NoConnection(Protocol),
}

impl Probe {
    /// A probe without a tag.
    #[must_use]
    pub const fn new(address: SocketAddr, query: ServerQuery) -> Self {
        Self { address, query, tag: 0 }
    }

    /// The probe for a listed server whose key `x-query` has this value (E1): the name of a protocol, optionally with
    /// `:port`, at the address where the server is listed. `None` if the value is invalid.
    ///
    /// ```
    /// use rallypoint_query_proto::{Probe, Protocol};
    ///
    /// let listed = "192.0.2.1:8190".parse().unwrap();
    /// let probe = Probe::from_x_query(b"session:45555", listed).unwrap();
    /// assert_eq!(probe.query, Protocol::Session.players());
    /// assert_eq!(probe.address.to_string(), "192.0.2.1:45555");
    /// ```
    #[must_use]
    pub fn from_x_query(value: &[u8], listed: SocketAddr) -> Option<Self> {
        let x_query = XQuery::parse(value)?;
        Some(Self::new(x_query.address(listed), x_query.protocol.players()))
    }

    /// How the query and its reply are carried.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        protocols::transport(self.query.protocol)
    }

    /// Whether a reply can come from the address at all.
    pub(crate) fn has_usable_address(&self) -> bool {
        let ip = self.address.ip().to_canonical();
        let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
        self.address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
    }
}

/// The protocols that a server may speak of which only the port is known (`None`: not even that).
pub fn candidates(port: Option<u16>) -> impl Iterator<Item = Protocol> {
    Protocol::ALL.iter().copied().filter(move |protocol| protocols::is_candidate(*protocol, port))
}

/// The address that a reply has to come from, normalized so that equal peers compare equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    ip: IpAddr,
    port: u16,
    /// Scope ID, for link-local addresses only: those differ from link to link.
    scope_id: u32,
}

impl Peer {
    pub fn of(address: SocketAddr) -> Self {
        let scope_id = match address {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => v6.scope_id(),
            _ => 0,
        };
        Self { ip: address.ip().to_canonical(), port: address.port(), scope_id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn equal_addresses_are_equal_however_they_are_written() {
        assert_eq!(Peer::of(address("192.0.2.1:9")), Peer::of(address("[::ffff:192.0.2.1]:9")));
        assert_ne!(Peer::of(address("192.0.2.1:9")), Peer::of(address("192.0.2.1:8")));
        assert_eq!(Peer::of(address("[2001:db8::1%2]:9")), Peer::of(address("[2001:db8::1]:9")));
        assert_ne!(Peer::of(address("[fe80::1%2]:9")), Peer::of(address("[fe80::1%3]:9")));
    }

    #[test]
    fn addresses_without_a_host_or_port_are_unusable() {
        for wrong in ["0.0.0.0:1", "[::]:1", "192.0.2.1:0", "224.0.0.1:1", "255.255.255.255:1", "[ff02::1]:1"] {
            assert!(!Probe::new(address(wrong), Protocol::Bloodmasters.info()).has_usable_address(), "{wrong}");
        }
        assert!(Probe::new(address("127.0.0.1:1"), Protocol::Bloodmasters.info()).has_usable_address());
    }
}
