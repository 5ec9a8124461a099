//! Everything an operator can set, with defaults that need no setting.

use crate::{AddressMap, BanList, Mapping};
use rallypoint_limit::{LimiterConfig, LimiterConfigError, NetworkSet};
use rallypoint_wire::lobby::{DEFAULT_MAX_REGISTRATION, LobbyId, MAX_REGISTRATION};
use std::{collections::BTreeSet, time::Duration};
use thiserror::Error;

/// What a registry can be told. Every field can be changed while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long an endpoint stays after its last registration (L10). 1 s to 24 h; 70 s.
    pub lease: Duration,
    /// The largest registration that is accepted, in bytes (L15). 61 to 65,507; 4,096.
    pub max_registration: usize,
    /// How many servers there can be.
    pub caps: Caps,
    /// Lobbies that the operator knows: for them there is always room. None.
    pub named_lobbies: BTreeSet<LobbyId>,
    /// Whether and how servers are checked (L12).
    pub checks: CheckConfig,
    /// What servers inside a private network are called outside.
    pub address_map: AddressMap,
    /// Whether servers with loopback and private addresses are welcome. LANs are real, so: yes.
    pub allow_private: bool,
    /// How much each address, network and all together may send. Each key of a registration beyond 16 counts as 16 bytes
    /// more.
    pub limits: LimiterConfig,
    /// Who may send as much as they like. Loopback.
    pub limit_exempt: NetworkSet,
    /// Who is not welcome.
    pub bans: BanList,
}

/// How many servers there can be. What is above is refused with a reason code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Servers per source: per IPv4 address or IPv6 /64. At least 1; 32.
    pub per_address: usize,
    /// Servers per lobby. At least 1; 1,000,000.
    pub per_lobby: usize,
    /// Servers in all. 1 to 16,000,000; 1,000,000.
    pub total: usize,
    /// Lobbies. Any UUID opens one, so there must be an end. Those of [`Config::named_lobbies`] do not count. At least 1;
    /// 10,000.
    pub lobbies: usize,
    /// Lobbies that the servers of one network (/24 or /48) can open. At least 1; 100.
    pub lobbies_per_network: usize,
    /// The memory that all servers may take, in bytes: about twice what they say, and 640 each. At least 1 MiB; 2 GiB.
    pub memory: usize,
}

/// Whether and how the lobby finds out that a server can be reached (L12).
///
/// The source of a datagram can be forged, so every check is traffic that a stranger can cause: it is bounded in all, per
/// target address, and per network (/24 or /56).
#[derive(Clone, Debug, PartialEq)]
pub struct CheckConfig {
    /// Whether servers are checked at all. Yes.
    pub enabled: bool,
    /// NetworkSet whose servers are listed without a check. None.
    pub exempt: NetworkSet,
    /// How long the lobby tries. 100 ms to 60 s; 5 s.
    pub timeout: Duration,
    /// How long a good verdict is kept before it is renewed in the background. 5 minutes.
    pub keep: Duration,
    /// How long after a bad verdict a registration makes the lobby try again. 20 s: less than the 30 s between two
    /// registrations, so that the next one after the owner has opened the port succeeds (W11).
    pub retry: Duration,
    /// How many checks may be under way. At least 1; 256.
    pub in_flight: usize,
    /// How many checks may be waiting: a quarter each for servers that could be reached before, that come back, that are
    /// new, and that could not be reached. At least 4; 10,000.
    pub waiting: usize,
    /// Checks per minute and target address. At least 1; 60.
    pub per_address: u32,
    /// Checks per minute and target network (/24 or /56). At least 1; 600.
    pub per_network: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(70),
            max_registration: DEFAULT_MAX_REGISTRATION,
            caps: Caps::default(),
            named_lobbies: BTreeSet::new(),
            checks: CheckConfig::default(),
            address_map: AddressMap::default(),
            allow_private: true,
            limits: LimiterConfig::default(),
            limit_exempt: NetworkSet::loopback(),
            bans: BanList::default(),
        }
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            per_address: 32,
            per_lobby: 1_000_000,
            total: 1_000_000,
            lobbies: 10_000,
            lobbies_per_network: 100,
            memory: 2 << 30,
        }
    }
}

impl Default for CheckConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            exempt: NetworkSet::default(),
            timeout: Duration::from_secs(5),
            keep: Duration::from_secs(5 * 60),
            retry: Duration::from_secs(20),
            in_flight: 256,
            waiting: 10_000,
            per_address: 60,
            per_network: 600,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A number outside of its range.
    #[error("{field} must be {range}")]
    OutOfRange {
        /// The field, as it is called in the configuration.
        field: &'static str,
        /// What it can be.
        range: &'static str,
    },
    /// An address map from one family to the other.
    #[error("the address map cannot lead from one address family to the other: {0}")]
    MappedFamily(Mapping),
    /// An address map with port 0.
    #[error("the address map has port 0, which no server can have: {0}")]
    MappedPort(Mapping),
    /// An address map to what is nobody's address.
    #[error("the address map leads to an address that no server can have: {0}")]
    MappedAddress(Mapping),
    /// The limits do not make sense.
    #[error(transparent)]
    Limits(#[from] LimiterConfigError),
}

impl Config {
    /// Whether every field is in its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let seconds = |low, high| Duration::from_secs(low)..=Duration::from_secs(high);
        let check = |ok: bool, field, range| if ok { Ok(()) } else { Err(ConfigError::OutOfRange { field, range }) };
        check(seconds(1, 86_400).contains(&self.lease), "lease", "between 1 second and 24 hours")?;
        let sizes = 61..=MAX_REGISTRATION;
        check(sizes.contains(&self.max_registration), "max_registration", "between 61 and 65507 bytes")?;
        check(self.caps.per_address > 0, "caps.per_address", "at least 1")?;
        check(self.caps.per_lobby > 0, "caps.per_lobby", "at least 1")?;
        check((1..=16_000_000).contains(&self.caps.total), "caps.total", "between 1 and 16000000")?;
        check(self.caps.lobbies > 0, "caps.lobbies", "at least 1")?;
        check(self.caps.lobbies_per_network > 0, "caps.lobbies_per_network", "at least 1")?;
        check(self.caps.memory >= 1 << 20, "caps.memory", "at least 1048576 bytes")?;
        let checks = &self.checks;
        let tenth = Duration::from_millis(100)..=Duration::from_secs(60);
        check(tenth.contains(&checks.timeout), "checks.timeout", "between 0.1 and 60 seconds")?;
        check(seconds(1, 86_400).contains(&checks.keep), "checks.keep", "between 1 second and 24 hours")?;
        check(seconds(1, 86_400).contains(&checks.retry), "checks.retry", "between 1 second and 24 hours")?;
        check(checks.in_flight > 0, "checks.in_flight", "at least 1")?;
        check(checks.waiting >= 4, "checks.waiting", "at least 4")?;
        check(checks.per_address > 0, "checks.per_address", "at least 1")?;
        check(checks.per_network > 0, "checks.per_network", "at least 1")?;
        self.address_map.validate()?;
        Ok(self.limits.validate()?)
    }
}
