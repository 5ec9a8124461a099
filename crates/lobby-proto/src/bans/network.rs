//! Networks as an operator writes them.

use ipnet::IpNet;
use rallypoint_limit::canonical_network;
use std::{fmt, net::IpAddr, str::FromStr};
use thiserror::Error;

/// A network or a single address, in canonical form: without host bits, and in IPv4 if it is an IPv4-mapped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanonicalNetwork(pub IpNet);

/// A text that is neither an address nor a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected an address such as 203.0.113.9 or a network such as 203.0.113.0/24")]
pub struct ParseNetworkError;

impl From<IpAddr> for CanonicalNetwork {
    fn from(ip: IpAddr) -> Self {
        Self(ip.to_canonical().into())
    }
}

impl FromStr for CanonicalNetwork {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let address = text.parse::<IpAddr>().map(Self::from);
        address
            .or_else(|_| text.parse().map(|net: IpNet| Self(canonical_network(net.trunc()))))
            .map_err(|_| ParseNetworkError)
    }
}

/// A network of one address is displayed as that address.
impl fmt::Display for CanonicalNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(net) = self;
        if net.prefix_len() == net.max_prefix_len() { net.addr().fmt(f) } else { net.fmt(f) }
    }
}
