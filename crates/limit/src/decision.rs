//! The limiter's decision, with its reason.

use std::fmt;

/// Whether a datagram may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Decision {
    /// It may pass, and was charged to every budget.
    Allowed,
    /// It may not pass, and nothing was charged. A refused datagram is to be dropped, never queued.
    Refused(OverBudget),
}

/// The budget that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OverBudget {
    /// Whose budget.
    pub scope: Scope,
    /// Whether packets or bytes were exceeded.
    pub unit: Unit,
}

/// The sources that share a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The address itself.
    Host,
    /// The address's /24 (IPv4) or /56 (IPv6).
    Net,
    /// The address's /48 (IPv6).
    Site,
    /// All sources together.
    Total,
}

/// The unit that a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Datagrams.
    Packets,
    /// Bytes.
    Bytes,
}

impl Decision {
    /// Whether the datagram may pass.
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

impl OverBudget {
    /// All values, for counters.
    pub const ALL: [Self; 8] = {
        let mut all = [Self { scope: Scope::Host, unit: Unit::Packets }; 8];
        let mut index = 0;
        while index < all.len() {
            all[index].scope = [Scope::Host, Scope::Net, Scope::Site, Scope::Total][index / 2];
            all[index].unit = [Unit::Packets, Unit::Bytes][index % 2];
            index += 1;
        }
        all
    };

    /// The stable reason code, such as `over_budget_net_bytes`.
    pub fn code(self) -> &'static str {
        match (self.scope, self.unit) {
            (Scope::Host, Unit::Packets) => "over_budget_host_packets",
            (Scope::Host, Unit::Bytes) => "over_budget_host_bytes",
            (Scope::Net, Unit::Packets) => "over_budget_net_packets",
            (Scope::Net, Unit::Bytes) => "over_budget_net_bytes",
            (Scope::Site, Unit::Packets) => "over_budget_site_packets",
            (Scope::Site, Unit::Bytes) => "over_budget_site_bytes",
            (Scope::Total, Unit::Packets) => "over_budget_total_packets",
            (Scope::Total, Unit::Bytes) => "over_budget_total_bytes",
        }
    }

    /// Its position in [`ALL`](Self::ALL).
    pub(crate) fn index(self) -> usize {
        self.scope as usize * 2 + self.unit as usize
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed => f.write_str("allowed"),
            Self::Refused(over) => over.fmt(f),
        }
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Net => "net",
            Self::Site => "site",
            Self::Total => "total",
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packets => "packets",
            Self::Bytes => "bytes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_position_and_a_code_made_of_its_parts() {
        for (index, over) in OverBudget::ALL.into_iter().enumerate() {
            assert_eq!(over.index(), index);
            assert_eq!(over.code(), format!("over_budget_{}_{}", over.scope, over.unit));
            assert_eq!(Decision::Refused(over).to_string(), over.code());
        }
        assert_eq!(Decision::Allowed.to_string(), "allowed");
    }
}
