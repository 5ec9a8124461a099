//! Numbers for whoever watches.

use crate::{Gone, Outcome, checks::CheckCounts};

/// How much there is and how much has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datagrams by outcome, in the order of [`Outcome::CODES`].
    pub outcomes: [u64; Outcome::CODES.len()],
    /// Servers that left the list by reason, in the order of [`Gone::CODES`].
    pub gone: [u64; Gone::CODES.len()],
    /// Servers in the registry, listed or not.
    pub registered: usize,
    /// Servers in the list.
    pub listed: usize,
    /// Lobbies with at least one registered server.
    pub lobbies: usize,
    /// Addresses and ports under which they are registered: a server can have one of each family.
    pub endpoints: usize,
    /// Servers that have just unregistered, and are remembered for that (L11).
    pub tombstones: usize,
    /// An estimate of the bytes that all registered servers take.
    pub memory: usize,
    /// Checks.
    pub checks: CheckCounts,
    /// How the budgets are used.
    pub budgets: rallypoint_limit::Stats,
    /// Events that were dropped because nobody took them.
    pub lost_events: u64,
    /// How often the lists were published.
    pub published: u64,
}

impl Stats {
    /// How many datagrams had this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()]
    }
}
