//! Numbers for whoever watches.

use crate::{RegistrationOutcome, UnlistReason, checks::CheckStats};

/// How much there is and how much has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryStats {
    /// Datagrams by outcome, in the order of [`RegistrationOutcome::CODES`].
    pub outcomes: [u64; RegistrationOutcome::CODES.len()],
    /// Servers that left the list by reason, in the order of [`UnlistReason::CODES`].
    pub unlisted: [u64; UnlistReason::CODES.len()],
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
    pub checks: CheckStats,
    /// How the budgets are used.
    pub budgets: rallypoint_limit::LimiterStats,
    /// Events that were dropped because nobody took them.
    pub dropped_events: u64,
    /// How often the lists were published.
    pub publishes: u64,
}

impl RegistryStats {
    /// How many datagrams had this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: RegistrationOutcome) -> u64 {
        self.outcomes[outcome.index()]
    }
}
