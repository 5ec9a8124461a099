//! Invariants between the parts of the registry.

use super::{
    Evidence, Registry,
    groups::{Group, Usage},
};
use crate::{
    entry::{EndpointState, Family},
    hash::KeyedHash,
    index::SlotIndex,
};
use rallypoint_wire::lobby::ServerId;
use std::sync::Arc;

impl Registry {
    /// Whether a registered server has replied to a check or a query (W45). For tests: feature `invariants`.
    #[must_use]
    pub fn is_proven(&self, id: ServerId) -> bool {
        self.entries.slots.find(id).is_some_and(|slot| self.entries.slots.cold(slot).evidence == Evidence::Proven)
    }

    /// Whether a registered server is kept when another one takes its endpoint (W45). For tests: feature `invariants`.
    #[must_use]
    pub fn is_kept(&self, id: ServerId) -> bool {
        self.entries.slots.find(id).is_some_and(|slot| self.is_kept_when_displaced(slot))
    }

    /// Panics if the parts of the registry contradict each other. For tests and fuzzing: feature `invariants`.
    pub fn check_invariants(&self) {
        self.entries.slots.check_invariants();
        self.checks.check_invariants();
        let mut used = KeyedHash::new(0).map::<Group, Usage>();
        let mut displaced_servers = 0;
        let mut listed = 0;
        for slot in SlotIndex::FIRST.until(self.entries.slots.end()) {
            let Some(cold) = self.entries.slots.get(slot) else { continue };
            let hot = self.entries.slots.hot(slot);
            let mut charge = |(group, Usage { servers, memory })| {
                let usage = used.entry(group).or_default();
                usage.servers += servers;
                usage.memory += memory;
            };
            cold.groups().for_each(|group| charge((group, cold.usage())));
            if let Some(displaced) = &cold.displaced {
                assert!(cold.evidence < Evidence::Proven, "a proven server that has displaced another");
                assert_eq!(
                    self.entries.displaced_by_id.get(&displaced.public_id()),
                    Some(&slot),
                    "a displaced server by its ID"
                );
                assert!(self.entries.slots.find(displaced.id).is_none(), "a displaced server that is registered");
                displaced_servers += 1;
                displaced.usage().for_each(charge);
            }
            for family in Family::ALL {
                let is_present = hot.states[family] != EndpointState::Absent;
                assert_eq!(cold.endpoints[family].is_some(), is_present, "state of an endpoint");
                let Some(endpoint) = cold.endpoints[family] else { continue };
                assert_eq!([endpoint.internal.ip, endpoint.external.ip].map(Family::of), [family; 2], "family");
                assert!(self.entries.wheel.is_due_by(slot, hot.deadlines[family]), "a lease without a timer");
            }
            let (v4, v6) = self.shown_endpoints(slot);
            let block = cold.server.block();
            assert_eq!((block.v4, block.v6), (v4, v6), "endpoints in the list");
            assert_eq!(cold.server.internal, self.internal_addrs(slot), "addresses before the address map");
            assert_eq!(cold.position.is_some(), v4.is_some() || v6.is_some(), "position in the list");
            assert!(cold.endpoints.iter().any(Option::is_some), "an entry without an endpoint");
            assert_eq!(block.transport, cold.transport, "transport in the list");
            listed += usize::from(cold.position.is_some());
        }
        assert_eq!(displaced_servers, self.entries.displaced_by_id.len(), "displaced servers");
        self.admission.groups.check_invariants(&self.entries.slots, &used);
        let lists = used.keys().filter_map(|group| if let Group::List(id) = group { Some(*id) } else { None });
        self.admission.lists.check_invariants(lists);
        assert_eq!(listed, self.lists.listed, "listed servers");
        self.lists.builder.check_invariants(|slot, position, server| {
            let cold = self.entries.slots.get(slot);
            cold.is_some_and(|cold| cold.position == Some(position) && Arc::ptr_eq(&cold.server, server))
        });
    }
}
