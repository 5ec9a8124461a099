//! Updates that the owner of a node applies to the registry.

use crate::{StoreClock, record::EntryValue};
use rallypoint_lobby_proto::{
    ApplyMode, ApplyOutcome, PublicId, Registry, Removal, ReplicatedEndpoint, ReplicatedServer,
};
use std::{collections::HashSet, sync::Arc, time::Instant};

/// An update that the owner of a [`ClusterNode`](crate::ClusterNode) applies to the registry or the bans, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A server has this state.
    Put(Box<ReplicatedServer>, ApplyMode),
    /// A server is not in the store any more.
    Remove(PublicId, Removal),
    /// Servers whose registrations this node received and that are not among these are reported again.
    ReportMissing(Arc<HashSet<PublicId>>),
    /// Servers that are not among these are not in the store.
    RemoveMissing(Arc<HashSet<PublicId>>),
    /// The state of a server is reported again.
    Report(PublicId),
    /// All leases are reported again.
    ReportLeases,
    /// Servers of other nodes stay until this time without further contact with the store.
    RemoteDeadline(Instant),
    /// A ban was added, changed or lifted: its value.
    Ban(Vec<u8>),
    /// All bans of the store: their values. Those that only this node has are handed over again.
    AllBans {
        /// The values.
        values: Vec<Vec<u8>>,
        /// Number of further ones that were not read because there are too many.
        left_out: usize,
    },
}

impl Update {
    /// A server as the store has it, for the registry.
    pub(super) fn put(now: Instant, clock: &StoreClock, id: PublicId, value: EntryValue, mode: ApplyMode) -> Self {
        let endpoint = |(internal, external)| ReplicatedEndpoint { internal, external, deadline: now };
        let server = ReplicatedServer {
            public_id: id,
            list_id: value.list_id,
            origin: value.origin,
            transport: value.transport,
            door: value.door,
            is_proven: value.is_proven,
            since: clock.node_time(value.since).unwrap_or(now).min(now),
            block: value.block,
            v4: value.v4.map(endpoint),
            v6: value.v6.map(endpoint),
        };
        Self::Put(Box::new(server), mode)
    }

    /// Applies the update to the registry. Bans are not part of it.
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
            Self::Ban(_) | Self::AllBans { .. } => {}
        }
        None
    }
}

fn missing(registry: &Registry, present: &HashSet<PublicId>) -> Vec<PublicId> {
    registry.replicated_ids().filter(|id| !present.contains(id)).collect()
}
