//! Invariants between the parts of the registry.

use super::Registry;
use crate::{
    entry::{EndpointState, Family},
    hash::KeyedHash,
    index::SlotIndex,
};
use rallypoint_limit::Lan;
use std::sync::Arc;

impl Registry {
    /// Panics if the parts of the registry contradict each other. For tests and fuzzing: feature `invariants`.
    pub fn check_invariants(&self) {
        self.slots.check_invariants();
        self.checks.check_invariants();
        let mut per_lobby = KeyedHash::new(0).map();
        let mut per_lan = KeyedHash::new(0).map();
        let mut listed = 0;
        let mut memory = 0;
        for slot in SlotIndex::FIRST.until(self.slots.end()) {
            let Some(cold) = self.slots.get(slot) else { continue };
            let hot = self.slots.hot(slot);
            *per_lobby.entry(cold.server.lobby_id).or_default() += 1;
            for family in Family::ALL {
                let is_present = hot.states[family] != EndpointState::Absent;
                assert_eq!(cold.endpoints[family].is_some(), is_present, "state of an endpoint");
                let Some(endpoint) = cold.endpoints[family] else { continue };
                assert_eq!([endpoint.internal.ip, endpoint.external.ip].map(Family::of), [family; 2], "family");
                if cold.server.origin.is_charged() {
                    *per_lan.entry(Lan::of(endpoint.internal.ip)).or_default() += 1;
                }
                assert!(self.wheel.is_due_by(slot, hot.deadlines[family]), "a lease without a timer");
            }
            let (v4, v6) = self.shown_endpoints(slot);
            let block = cold.server.block();
            assert_eq!((block.v4, block.v6), (v4, v6), "endpoints in the list");
            assert_eq!(cold.server.internal, self.internal_addrs(slot), "addresses before the address map");
            assert_eq!(cold.position.is_some(), v4.is_some() || v6.is_some(), "position in the list");
            assert!(cold.endpoints.iter().any(Option::is_some), "an entry without an endpoint");
            assert_eq!(block.transport, cold.transport, "transport in the list");
            listed += usize::from(cold.position.is_some());
            memory += cold.server.memory();
        }
        self.usage.lobbies.check_invariants(&per_lobby);
        assert_eq!(per_lan, self.usage.per_lan, "endpoints per source");
        assert_eq!(memory, self.usage.memory, "memory");
        assert_eq!(listed, self.stats.listed, "listed servers");
        self.lists.check_invariants(|slot, position, server| {
            let cold = self.slots.get(slot);
            cold.is_some_and(|cold| cold.position == Some(position) && Arc::ptr_eq(&cold.server, server))
        });
    }
}
