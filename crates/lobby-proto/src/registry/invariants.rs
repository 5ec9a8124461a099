//! Invariants between the parts of the registry.

use super::{Evidence, Registry};
use rallypoint_wire::lobby::ServerId;

impl Registry {
    /// Whether a registered server has replied to a check or a query (W45). For tests: feature `invariants`.
    #[must_use]
    pub fn is_proven(&self, id: ServerId) -> bool {
        self.entries.find(id).is_some_and(|slot| self.entries.cold(slot).evidence == Evidence::Proven)
    }

    /// Whether a registered server is kept when another one takes its endpoint (W45). For tests: feature `invariants`.
    #[must_use]
    pub fn is_kept(&self, id: ServerId) -> bool {
        let is_clustered = self.replication.is_enabled();
        self.entries.find(id).is_some_and(|slot| self.entries.is_kept_when_displaced(slot, is_clustered))
    }

    /// Panics if the parts of the registry contradict each other. For tests and fuzzing: feature `invariants`.
    pub fn check_invariants(&self) {
        self.entries.check_invariants();
        self.checks.check_invariants();
        self.lists.check_invariants(&self.entries);
    }
}
