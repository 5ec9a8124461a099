//! Settings of a responder.

use super::Responder;
use crate::Protocol;
use rallypoint_limit::{Budget, LimiterConfig, LimiterConfigError, Rate};

/// Settings of a [`Responder`](crate::Responder).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderConfig {
    /// The protocols in which queries are answered; default all that have a responder.
    pub protocols: Vec<Protocol>,
    /// Bytes sent to one address. The burst has to be at least as large as the largest reply. Default 4 kB per second,
    /// 32 KiB at once: a client that refreshes every few seconds.
    pub per_address: Rate,
    /// Bytes sent to one IPv4 /24 or IPv6 /56. Default 16 kB per second, 128 KiB at once.
    pub per_network: Rate,
    /// Bytes sent to one IPv6 /48. Default twice the budget of one network.
    pub per_site: Rate,
    /// Bytes sent in total. Default 128 kB per second, 512 KiB at once: a hundred clients, and an upper bound for the
    /// victim of forged queries.
    pub total: Rate,
    /// Number of addresses whose budgets are tracked. From 8 to 16,777,216; default 16,384, which take 0.9 MB.
    pub max_addresses: usize,
}

impl ResponderConfig {
    /// Checks that every field is in range.
    ///
    /// # Errors
    /// Names the first field that is not.
    pub fn validate(&self) -> Result<(), LimiterConfigError> {
        self.limits().validate()
    }

    pub(super) fn limits(&self) -> LimiterConfig {
        let bytes = |rate| Budget { packets: None, bytes: Some(rate) };
        LimiterConfig {
            host: bytes(self.per_address),
            net: bytes(self.per_network),
            site: bytes(self.per_site),
            total: bytes(self.total),
            max_entries: self.max_addresses,
            ..LimiterConfig::default()
        }
    }
}

impl Default for ResponderConfig {
    fn default() -> Self {
        Self {
            protocols: Responder::protocols().collect(),
            per_address: Rate::per_second(4_000, 32 << 10),
            per_network: Rate::per_second(16_000, 128 << 10),
            per_site: Rate::per_second(32_000, 256 << 10),
            total: Rate::per_second(128_000, 512 << 10),
            max_addresses: 16_384,
        }
    }
}
