//! The map from internal to external addresses.

use crate::RegistryConfigError;
use ipnet::IpNet;
use rallypoint_limit::is_possible_source;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// The external addresses of servers that the lobby sees from inside a private network.
///
/// ```
/// use rallypoint_lobby_proto::{AddressMap, Mapping};
///
/// let mapping = Mapping { from: "192.168.1.0/24".parse()?, port: None, to: "203.0.113.5".parse()?, to_port: None };
/// let map: AddressMap = [mapping].into_iter().collect();
/// assert_eq!(map.external("192.168.1.10:8190".parse()?), "203.0.113.5:8190".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMap(Vec<Mapping>);

/// One entry of an [`AddressMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The internal network.
    pub from: IpNet,
    /// The registered port to which the mapping is restricted, if it is.
    pub port: Option<u16>,
    /// The external address of its servers.
    pub to: IpAddr,
    /// The external port, if it differs from the registered one.
    pub to_port: Option<u16>,
}

impl AddressMap {
    /// The external address of a server: that of the first mapping that applies, or else its own.
    #[must_use]
    pub fn external(&self, internal: SocketAddr) -> SocketAddr {
        let applies =
            |map: &&Mapping| map.from.contains(&internal.ip()) && map.port.is_none_or(|port| port == internal.port());
        match self.0.iter().find(applies) {
            Some(map) => SocketAddr::new(map.to, map.to_port.unwrap_or(internal.port())),
            None => internal,
        }
    }

    /// Checks every mapping. The family of a datagram decides which endpoint it sets (L9), so a mapping cannot lead to the
    /// other family.
    pub(crate) fn validate(&self) -> Result<(), RegistryConfigError> {
        self.0.iter().try_for_each(|map| match map {
            map if map.port == Some(0) || map.to_port == Some(0) => Err(RegistryConfigError::MappedPort(*map)),
            map if map.from.addr().is_ipv4() != map.to.is_ipv4() => Err(RegistryConfigError::MappedFamily(*map)),
            map if !is_possible_source(map.to) => Err(RegistryConfigError::MappedAddress(*map)),
            _ => Ok(()),
        })
    }
}

/// The form in the configuration, with ports only where they are set: `10.0.0.0/8:8190 -> 203.0.113.5:9000`.
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
    fn the_first_mapping_that_applies_is_used() {
        let to = "203.0.113.5".parse().unwrap();
        let one = Mapping { from: "192.168.1.10/32".parse().unwrap(), port: Some(8190), to, to_port: Some(9000) };
        let all = Mapping { from: "192.168.1.0/24".parse().unwrap(), port: None, to, to_port: None };
        let map: AddressMap = [one, all].into_iter().collect();
        let external = |text: &str| map.external(text.parse().unwrap()).to_string();
        assert_eq!(external("192.168.1.10:8190"), "203.0.113.5:9000");
        assert_eq!(external("192.168.1.10:8191"), "203.0.113.5:8191");
        assert_eq!(external("192.168.2.10:8190"), "192.168.2.10:8190");
    }
}
