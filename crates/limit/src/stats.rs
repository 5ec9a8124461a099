//! Counters and gauges for metrics.

use crate::OverBudget;

/// Counters of a [`Limiter`](crate::Limiter) since its creation, and how full its tables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Datagrams that passed.
    pub allowed: u64,
    /// Datagrams that passed only because their customer is known.
    pub guaranteed: u64,
    /// Datagrams that were refused, in the order of [`OverBudget::ALL`].
    pub refused: [u64; OverBudget::ALL.len()],
    /// Number of addresses in the table.
    pub hosts: usize,
    /// Number of networks in the table.
    pub nets: usize,
    /// Number of sites in the table.
    pub sites: usize,
    /// Number of customers that are known, or were and have not come back.
    pub known: usize,
    /// Number of entries that were evicted to make room for another.
    pub evicted: u64,
    /// Number of slots examined: at most 24 for each of at most three tables per datagram.
    pub probes: u64,
}

impl LimiterStats {
    /// Number of datagrams refused because of this budget.
    pub fn refused(&self, over: OverBudget) -> u64 {
        self.refused[over.index()]
    }

    /// Number of datagrams refused.
    pub fn total_refused(&self) -> u64 {
        self.refused.iter().sum()
    }
}
