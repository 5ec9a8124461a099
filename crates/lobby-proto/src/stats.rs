//! Counters and sizes of a registry.

use crate::{RegistrationOutcome, UnlistReason, checks::CheckStats};

/// Counters since the start, and current sizes, of a [`Registry`](crate::Registry).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryStats {
    /// Datagrams by outcome, in the order of [`RegistrationOutcome::CODES`].
    pub outcomes: [u64; RegistrationOutcome::CODES.len()],
    /// Servers that left the list by reason, in the order of [`UnlistReason::CODES`].
    pub unlisted: [u64; UnlistReason::CODES.len()],
    /// Number of registered servers, listed or not.
    pub registered: usize,
    /// Number of listed servers.
    pub listed: usize,
    /// Number of lists with at least one registered server.
    pub lists: usize,
    /// Number of registered endpoints: a server can have one of each address family.
    pub endpoints: usize,
    /// Number of servers that have just unregistered (L11).
    pub tombstones: usize,
    /// Estimated memory use of all registered servers, in bytes.
    pub memory: usize,
    /// Reachability checks.
    pub checks: CheckStats,
    /// Use of the budgets of the limiter.
    pub budgets: rallypoint_limit::LimiterStats,
    /// Events that were dropped because the event queue was full.
    pub dropped_events: u64,
    /// Number of times the lists were published.
    pub publishes: u64,
    /// Number of times the registry was not called for two seconds or more, after which no lease ended for 35 seconds.
    pub gaps: u64,
}

impl RegistryStats {
    /// Number of datagrams with this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: RegistrationOutcome) -> u64 {
        self.outcomes[outcome.index()]
    }
}
