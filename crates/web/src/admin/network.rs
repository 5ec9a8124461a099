//! Networks as an operator writes them.

use super::NotABan;
use ipnet::IpNet;
use std::{fmt, net::IpAddr, str::FromStr};

/// A network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl FromStr for Network {
    type Err = NotABan;

    fn from_str(text: &str) -> Result<Self, NotABan> {
        let one = text.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
        let network = one.or_else(|_| text.parse::<IpNet>().map(|net| net.trunc()));
        network.map(canonical).map(Self).map_err(|_| NotABan::Network)
    }
}

/// A network of IPv4 addresses in IPv6's words is one of IPv4.
fn canonical(net: IpNet) -> IpNet {
    match (net.addr().to_canonical(), net.prefix_len().checked_sub(96)) {
        (IpAddr::V4(ip), Some(length)) if net.addr().is_ipv6() => IpNet::new(ip.into(), length).unwrap_or(net),
        _ => net,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(net) = self;
        if net.prefix_len() == net.max_prefix_len() { net.addr().fmt(f) } else { net.fmt(f) }
    }
}
