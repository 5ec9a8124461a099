//! The budgets of every level, and how many sources are remembered.

use crate::{Budget, Rate, RateError, Scope, Unit};
use std::{fmt, ops::RangeInclusive};

/// The budgets of a [`Limiter`](crate::Limiter).
///
/// The default is meant for what arrives at a lobby. An honest server sends one datagram per 30 s and one at each join
/// and map change, with at most 4,096 bytes; one address may have 32 servers behind it, and one network hundreds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimiterConfig {
    /// Of one address. By default 10 packets per second and 300 at once, 40 kB per second and 1.2 MB at once.
    pub host: Budget,
    /// Of one IPv4 /24 or IPv6 /56. By default twenty times as many packets per second as one address, ten times as
    /// many bytes.
    pub net: Budget,
    /// Of one IPv6 /48. By default twice [`net`](Self::net).
    pub site: Budget,
    /// Of all together. By default 100,000 packets and 100 MB per second, four seconds of that at once.
    pub total: Budget,
    /// How much of the total's rate and burst is kept for known sources, in percent. From 0 to 90, by default 50. Each
    /// gets an equal share of it (see the [guarantee](crate#what-is-guaranteed)).
    pub reserved_percent: u8,
    /// How many addresses are remembered. From 8 to 16,777,216, by default 65,536; several times as many as honest
    /// sources are expected. The memory taken is 56 bytes for each: half as many networks and a quarter as many sites
    /// are remembered beside them.
    pub max_entries: usize,
}

/// What is wrong with a [`LimiterConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimiterConfigError {
    /// A rate is out of its range.
    Rate {
        /// Whose rate.
        scope: Scope,
        /// The rate of what.
        unit: Unit,
        /// What is wrong with it.
        error: RateError,
    },
    /// [`LimiterConfig::reserved_percent`] is out of its range.
    ReservedPercent(u8),
    /// [`LimiterConfig::max_entries`] is out of its range.
    MaxEntries(usize),
}

const RESERVED: RangeInclusive<u8> = 0..=90;
const ENTRIES: RangeInclusive<usize> = 8..=1 << 24;

impl LimiterConfig {
    /// Whether every field is in its range. What is not is taken as the nearest value that is.
    pub fn validate(&self) -> Result<(), LimiterConfigError> {
        for (scope, budget) in
            [(Scope::Host, self.host), (Scope::Net, self.net), (Scope::Site, self.site), (Scope::Total, self.total)]
        {
            for (unit, rate) in [(Unit::Packets, budget.packets), (Unit::Bytes, budget.bytes)] {
                rate.map_or(Ok(()), |rate| rate.validate()).map_err(|error| LimiterConfigError::Rate {
                    scope,
                    unit,
                    error,
                })?;
            }
        }
        if !RESERVED.contains(&self.reserved_percent) {
            return Err(LimiterConfigError::ReservedPercent(self.reserved_percent));
        }
        if !ENTRIES.contains(&self.max_entries) {
            return Err(LimiterConfigError::MaxEntries(self.max_entries));
        }
        Ok(())
    }

    pub(crate) fn budget(&self, scope: Scope) -> Budget {
        match scope {
            Scope::Host => self.host,
            Scope::Net => self.net,
            Scope::Site => self.site,
            Scope::Total => self.total,
        }
    }

    /// How many prefixes of this kind are remembered. A network is only worth an entry while it has used some of its
    /// budget, or as an IPv6 party.
    pub(crate) fn entries(&self, scope: Scope) -> usize {
        let entries = self.max_entries.clamp(*ENTRIES.start(), *ENTRIES.end());
        match scope {
            Scope::Host => entries,
            Scope::Net => entries / 2,
            Scope::Site | Scope::Total => entries / 4,
        }
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved_percent.min(*RESERVED.end()).into()
    }
}

impl Default for LimiterConfig {
    fn default() -> Self {
        let budget = |packets, bytes| Budget { packets: Some(packets), bytes: Some(bytes) };
        Self {
            host: budget(Rate::per_second(10, 300), Rate::per_second(40_000, 1_200_000)),
            net: budget(Rate::per_second(200, 4_000), Rate::per_second(400_000, 8_000_000)),
            site: budget(Rate::per_second(400, 8_000), Rate::per_second(800_000, 16_000_000)),
            total: budget(Rate::per_second(100_000, 400_000), Rate::per_second(100_000_000, 400_000_000)),
            reserved_percent: 50,
            max_entries: 65_536,
        }
    }
}

impl fmt::Display for LimiterConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { scope: Scope::Total, unit, error } => write!(f, "the limit of {unit} in total: {error}"),
            Self::Rate { scope, unit, error } => write!(f, "the limit of {unit} per {scope}: {error}"),
            Self::ReservedPercent(percent) => {
                let (least, most) = RESERVED.into_inner();
                write!(f, "{percent} % of the total kept for known sources: use {least} to {most}")
            }
            Self::MaxEntries(entries) => {
                let (least, most) = ENTRIES.into_inner();
                write!(f, "{entries} sources to remember: use {least} to {most}")
            }
        }
    }
}

impl std::error::Error for LimiterConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rate { error, .. } => Some(error),
            _ => None,
        }
    }
}
