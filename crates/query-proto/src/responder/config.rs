//! What to answer, and how much.

use rallypoint_limit::{Budget, Config, ConfigError, Rate};

/// How a [`Responder`](crate::Responder) answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderConfig {
    /// Whether queries of document 002 are answered. By default yes.
    pub bloodmasters: bool,
    /// Whether queries of document 003 are answered. By default yes.
    pub session: bool,
    /// Bytes that one address can draw. The burst has to have room for the largest answer. By default 4 kB per second,
    /// 32 KiB at once: somebody who looks every few seconds.
    pub per_address: Rate,
    /// Bytes that one IPv4 /24 or IPv6 /56 can draw. By default 16 kB per second, 128 KiB at once.
    pub per_network: Rate,
    /// Bytes that one IPv6 /48 can draw. By default twice as many as one network.
    pub per_site: Rate,
    /// Bytes that all together can draw. By default 128 kB per second, 512 KiB at once: a
    /// hundred people who look, and no more than that for a victim of forged queries.
    pub total: Rate,
    /// How many addresses are remembered. From 8 to 16,777,216; by default 16,384, which take 0.9 MB.
    pub max_addresses: usize,
}

impl ResponderConfig {
    /// Whether every field is in its range.
    ///
    /// # Errors
    /// If one is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.limits().validate()
    }

    pub(super) fn limits(&self) -> Config {
        let bytes = |rate| Budget { packets: None, bytes: Some(rate) };
        Config {
            host: bytes(self.per_address),
            net: bytes(self.per_network),
            site: bytes(self.per_site),
            total: bytes(self.total),
            max_entries: self.max_addresses,
            ..Config::default()
        }
    }
}

impl Default for ResponderConfig {
    fn default() -> Self {
        Self {
            bloodmasters: true,
            session: true,
            per_address: Rate::per_second(4_000, 32 << 10),
            per_network: Rate::per_second(16_000, 128 << 10),
            per_site: Rate::per_second(32_000, 256 << 10),
            total: Rate::per_second(128_000, 512 << 10),
            max_addresses: 16_384,
        }
    }
}
