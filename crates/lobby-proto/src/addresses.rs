//! The address that a server is advertised under.

use crate::ConfigError;
use ipnet::IpNet;
use rallypoint_limit::is_possible_source;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// An address in its own family: IPv4 mapped into IPv6 counts as IPv4 (L9).
#[must_use]
pub fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// Servers that the lobby sees from inside a private network are advertised under their public address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMap(Vec<Mapping>);

/// One line of the [`AddressMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The inner network.
    pub from: IpNet,
    /// Only servers registered with this port, if set.
    pub port: Option<u16>,
    /// What its servers are called outside.
    pub to: IpAddr,
    /// The port outside, if it is another one.
    pub to_port: Option<u16>,
}

impl AddressMap {
    /// What a server is called outside. The first line that fits counts; without one it keeps its address.
    #[must_use]
    pub fn outside(&self, inside: SocketAddr) -> SocketAddr {
        let fits =
            |map: &&Mapping| map.from.contains(&inside.ip()) && map.port.is_none_or(|port| port == inside.port());
        match self.0.iter().find(fits) {
            Some(map) => SocketAddr::new(map.to, map.to_port.unwrap_or(inside.port())),
            None => inside,
        }
    }

    /// Whether every line can be followed. The family of a datagram decides which endpoint it sets (L9), so a server
    /// cannot be called by an address of the other one.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.0.iter().try_for_each(|map| match map {
            map if map.port == Some(0) || map.to_port == Some(0) => Err(ConfigError::MappedPort(*map)),
            map if map.from.addr().is_ipv4() != map.to.is_ipv4() => Err(ConfigError::MappedFamily(*map)),
            map if !is_possible_source(map.to) => Err(ConfigError::MappedAddress(*map)),
            _ => Ok(()),
        })
    }
}

/// As in the configuration: `10.0.0.0/8:8190 -> 203.0.113.5:9000`, the ports only where there are some.
impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = |port: Option<u16>| port.map_or(String::new(), |port| format!(":{port}"));
        let to = self.to_port.map_or_else(|| self.to.to_string(), |port| SocketAddr::new(self.to, port).to_string());
        write!(f, "{}{} -> {to}", self.from, port(self.port))
    }
}

impl FromIterator<Mapping> for AddressMap {
    fn from_iter<I: IntoIterator<Item = Mapping>>(mappings: I) -> Self {
        Self(mappings.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l9_mapped_ipv4_is_ipv4() {
        assert_eq!(canonical("::ffff:203.0.113.9".parse().unwrap()), "203.0.113.9".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn the_first_fitting_line_of_the_map_counts() {
        let outside = "203.0.113.5".parse().unwrap();
        let one =
            Mapping { from: "192.168.1.10/32".parse().unwrap(), port: Some(8190), to: outside, to_port: Some(9000) };
        let all = Mapping { from: "192.168.1.0/24".parse().unwrap(), port: None, to: outside, to_port: None };
        let map: AddressMap = [one, all].into_iter().collect();
        let outside = |text: &str| map.outside(text.parse().unwrap()).to_string();
        assert_eq!(outside("192.168.1.10:8190"), "203.0.113.5:9000");
        assert_eq!(outside("192.168.1.10:8191"), "203.0.113.5:8191");
        assert_eq!(outside("192.168.2.10:8190"), "192.168.2.10:8190");
    }
}
