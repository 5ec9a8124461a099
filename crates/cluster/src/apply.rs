//! Applying the decisions of a node to its registry.

use crate::Apply;
use rallypoint_lobby_proto::{ApplyOutcome, PublicId, Registry, Removal};
use std::time::Instant;

impl Apply {
    /// Applies the change to the registry. Bans are not part of it.
    pub fn apply_to(&self, now: Instant, registry: &mut Registry) -> Option<ApplyOutcome> {
        match self {
            Self::Put(server, mode) => return Some(registry.apply_replicated(now, server, *mode)),
            Self::Remove(id, removal) => registry.remove_replicated(now, *id, *removal),
            Self::ReportMissing(present) => {
                for id in missing(registry, present) {
                    registry.report_again(id);
                }
            }
            Self::RemoveMissing(present) => {
                for id in missing(registry, present) {
                    registry.remove_replicated(now, id, Removal::Lost);
                }
            }
            Self::Report(id) => registry.report_again(*id),
            Self::ReportLeases => registry.report_all_leases(),
            Self::RemoteDeadline(at) => registry.set_remote_deadline(*at),
            Self::Ban { .. } => {}
        }
        None
    }
}

fn missing(registry: &Registry, present: &std::collections::HashSet<PublicId>) -> Vec<PublicId> {
    registry.replicated_ids().filter(|id| !present.contains(id)).collect()
}
