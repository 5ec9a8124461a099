//! The configuration of a registry.

use crate::{AddressMap, BanList, Mapping};
use rallypoint_limit::{LimiterConfig, LimiterConfigError, NetworkSet};
use rallypoint_wire::lobby::{DEFAULT_MAX_REGISTRATION, ListId, MAX_REGISTRATION};
use std::{collections::BTreeSet, time::Duration};
use thiserror::Error;

/// The configuration of a [`Registry`](crate::Registry). Every field can be changed while it runs.
///
/// ```
/// use rallypoint_lobby_proto::{Caps, Config};
/// use std::time::Duration;
///
/// let config = Config { lease: Duration::from_secs(60), caps: Caps { per_address: 8, ..Caps::default() }, ..Config::default() };
/// config.validate()?;
/// # Ok::<(), rallypoint_lobby_proto::RegistryConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long an endpoint stays registered after its last registration (L10). 1 s to 24 h; default 70 s.
    pub lease: Duration,
    /// Maximum size of a registration in bytes (L15). 61 to 65,507; default 4,096.
    pub max_registration: usize,
    /// Maximum numbers of servers and lists.
    pub caps: Caps,
    /// Lists that do not count towards [`Caps::lists`], because the operator has named them. Default: none.
    pub named_lists: BTreeSet<ListId>,
    /// Reachability checks (L12).
    pub checks: CheckConfig,
    /// External addresses of servers in a private network.
    pub address_map: AddressMap,
    /// Whether servers with loopback, private and other special-purpose addresses are accepted. Default: yes, for lobbies in a
    /// LAN. Addresses that the address map lists are not examined.
    pub allow_private: bool,
    /// Budgets of each address, each network and all sources together. Each key of a registration beyond 16 is charged as
    /// 16 additional bytes.
    pub limits: LimiterConfig,
    /// Networks that are exempt from the budgets. Default: loopback.
    pub limit_exempt: NetworkSet,
    /// Networks to which doors send whole lists over UDP. To others they send at most three times the bytes of a request, because
    /// its source can be forged. Default: none.
    pub whole_lists: NetworkSet,
    /// Banned addresses, names and servers.
    pub bans: BanList,
}

/// Maximum numbers of servers and lists. Registrations beyond them are refused with a reason code, unless another server
/// has to give way (W45).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Servers per source: per IPv4 address or IPv6 /64. At least 1; default 32.
    pub per_address: usize,
    /// Servers per network (IPv4 /24 or IPv6 /48), and the memory that they use, in percent of [`total`](Self::total) and
    /// [`memory`](Self::memory). A network can always have 1,000 servers and 4 MiB. 1 to 100; default 10.
    pub network_percent: u32,
    /// Servers per list. At least 1; default 1,000,000.
    pub per_list: usize,
    /// Servers in total. 1 to 16,000,000; default 1,000,000.
    pub total: usize,
    /// Lists. Any UUID opens one, so their number has to be bounded. Those of [`Config::named_lists`] do not count. At
    /// least 1; default 10,000.
    pub lists: usize,
    /// Lists that the servers of one network (/24 or /48) can open. At least 1; default 100.
    pub lists_per_network: usize,
    /// Memory use of all servers in bytes: two to four times the size of their data, plus 1,200 bytes each; long ones, with more
    /// than 512 bytes in all or in the texts on pages, count up to 25 times. At least 1 MiB; default 2 GiB.
    pub memory: usize,
}

/// Configuration of the reachability checks (L12).
///
/// The source of a datagram can be forged, so every check is traffic that an attacker can cause: it is bounded in total, per
/// target address, and per network (/24 or /56).
#[derive(Clone, Debug, PartialEq)]
pub struct CheckConfig {
    /// Whether servers are checked at all. Default: yes.
    pub enabled: bool,
    /// Networks whose servers are listed without a check. Default: none.
    pub exempt: NetworkSet,
    /// Timeout of a check of a server that was reached before; others have at most 1.9 s. 100 ms to 60 s; default 5 s.
    pub timeout: Duration,
    /// How long a successful check is valid before it is repeated in the background. 1 s to 24 h; default 5 minutes.
    pub keep: Duration,
    /// How long after a failed check a registration causes another one. 1 s to 24 h; default 20 s: less than the 30 s
    /// between two registrations, so that the first one after the owner has opened the port succeeds (W11).
    pub retry: Duration,
    /// Maximum number of checks in flight. At least 1; default 256.
    pub in_flight: usize,
    /// Maximum number of waiting checks: a quarter each for servers that were reached before, that return, that are new, and
    /// that were not reached. At least 4; default 10,000.
    pub waiting: usize,
    /// Checks per minute and target address. At least 1; default 60.
    pub per_address: u32,
    /// Checks per minute and target network (/24 or /56). At least 1; default 600.
    pub per_network: u32,
    /// Checks per second in total, in bursts of a quarter of a second. At least 1; default 500. Which server is checked first is
    /// decided before: a flood of forged registrations delays only its own checks (W33).
    pub total: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(70),
            max_registration: DEFAULT_MAX_REGISTRATION,
            caps: Caps::default(),
            named_lists: BTreeSet::new(),
            checks: CheckConfig::default(),
            address_map: AddressMap::default(),
            allow_private: true,
            limits: LimiterConfig::default(),
            limit_exempt: NetworkSet::loopback(),
            whole_lists: NetworkSet::default(),
            bans: BanList::default(),
        }
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            per_address: 32,
            network_percent: 10,
            per_list: 1_000_000,
            total: 1_000_000,
            lists: 10_000,
            lists_per_network: 100,
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
            total: 500,
        }
    }
}

/// Why a [`Config`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegistryConfigError {
    /// A value is outside its range.
    #[error("{field} must be {range}")]
    OutOfRange {
        /// The field of [`Config`].
        field: &'static str,
        /// Its valid range.
        range: &'static str,
    },
    /// The address map maps an address to one of the other family.
    #[error("the address map cannot map an address to one of the other family: {0}")]
    MappedFamily(Mapping),
    /// The address map contains port 0.
    #[error("the address map contains port 0, which no server can have: {0}")]
    MappedPort(Mapping),
    /// The address map maps to an address that no server can have.
    #[error("the address map maps to an address that no server can have: {0}")]
    MappedAddress(Mapping),
    /// The budgets are invalid.
    #[error(transparent)]
    Limits(#[from] LimiterConfigError),
}

impl Config {
    /// Checks that every field is in its range.
    pub fn validate(&self) -> Result<(), RegistryConfigError> {
        let seconds = |low, high| Duration::from_secs(low)..=Duration::from_secs(high);
        let check =
            |ok: bool, field, range| if ok { Ok(()) } else { Err(RegistryConfigError::OutOfRange { field, range }) };
        check(seconds(1, 86_400).contains(&self.lease), "lease", "between 1 second and 24 hours")?;
        let sizes = 61..=MAX_REGISTRATION;
        check(sizes.contains(&self.max_registration), "max_registration", "between 61 and 65507 bytes")?;
        check(self.caps.per_address > 0, "caps.per_address", "at least 1")?;
        check((1..=100).contains(&self.caps.network_percent), "caps.network_percent", "between 1 and 100")?;
        check(self.caps.per_list > 0, "caps.per_list", "at least 1")?;
        check((1..=16_000_000).contains(&self.caps.total), "caps.total", "between 1 and 16000000")?;
        check(self.caps.lists > 0, "caps.lists", "at least 1")?;
        check(self.caps.lists_per_network > 0, "caps.lists_per_network", "at least 1")?;
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
        check(checks.total > 0, "checks.total", "at least 1")?;
        self.address_map.validate()?;
        Ok(self.limits.validate()?)
    }
}
