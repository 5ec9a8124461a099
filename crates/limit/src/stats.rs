//! Numbers for metrics.

use crate::OverBudget;

/// What a [`Limiter`](crate::Limiter) has done since it was made, and how full it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Datagrams that passed.
    pub allowed: u64,
    /// Those of them that only passed because their source is known.
    pub guaranteed: u64,
    /// Datagrams that were refused, in the order of [`OverBudget::ALL`].
    pub refused: [u64; OverBudget::ALL.len()],
    /// Addresses that are remembered.
    pub hosts: usize,
    /// Networks that are remembered.
    pub nets: usize,
    /// Sites that are remembered.
    pub sites: usize,
    /// Sources that are known, or were and have not come back.
    pub known: usize,
    /// How often one of these was forgotten to make room for another.
    pub evicted: u64,
    /// How many places in the tables were looked at: at most 24 for each of at most three tables and datagram.
    pub probes: u64,
}

impl LimiterStats {
    /// How many datagrams were refused for this reason.
    pub fn refused(&self, refusal: OverBudget) -> u64 {
        self.refused[refusal.index()]
    }

    /// How many datagrams were refused.
    pub fn total_refused(&self) -> u64 {
        self.refused.iter().sum()
    }
}
