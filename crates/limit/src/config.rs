//! The budgets of every level, and the size of the tables.

use crate::{Budget, Rate, RateError, Scope, Unit};
use std::{fmt, ops::RangeInclusive};

/// The budgets of a [`Limiter`](crate::Limiter).
///
/// The default is meant for the datagrams that arrive at a lobby. An honest server sends one datagram per 30 s and one at each
/// join and map change, of at most 4,096 bytes; one address may have 32 servers behind it, and one network hundreds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimiterConfig {
    /// Budget of one address. By default 10 packets per second and 300 at once, 40 kB per second and 1.2 MB at once.
    pub host: Budget,
    /// Budget of one IPv4 /24 or IPv6 /56. By default twenty times as many packets per second as one address, ten times as
    /// many bytes.
    pub net: Budget,
    /// Budget of one IPv6 /48. By default twice [`net`](Self::net).
    pub site: Budget,
    /// Budget of all sources together. By default 100,000 packets and 100 MB per second, four seconds of that at once.
    pub total: Budget,
    /// Part of the total's rate and burst that is reserved for known customers, in percent. From 0 to 90, by default 50.
    /// Each gets an equal share of it (see the [guarantee](crate#what-is-guaranteed)).
    pub reserved_percent: u8,
    /// Maximum number of addresses in the table. From 8 to 16,777,216, by default 65,536; several times the expected number
    /// of honest sources. It takes 56 bytes of memory for each, which includes tables of half as many networks and a quarter
    /// as many sites.
    pub max_entries: usize,
}

/// A field of a [`LimiterConfig`] that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimiterConfigError {
    /// A rate is out of its range.
    Rate {
        /// Whose rate.
        scope: Scope,
        /// Rate of packets or of bytes.
        unit: Unit,
        /// The problem with it.
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
    /// Checks that every field is in its range. [`Limiter`](crate::Limiter) uses the nearest valid value of those that are not.
    ///
    /// # Errors
    /// The first field that is out of its range.
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

    /// Size of the table of a scope. A network needs an entry only while it has used some of its budget, or as a known IPv6
    /// customer.
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
                let (min, max) = RESERVED.into_inner();
                write!(f, "{percent} % of the total reserved for known sources: use {min} to {max}")
            }
            Self::MaxEntries(entries) => {
                let (min, max) = ENTRIES.into_inner();
                write!(f, "a table of {entries} sources: use {min} to {max}")
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
