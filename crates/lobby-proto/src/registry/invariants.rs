//! What always holds between the parts of the registry.

use super::Registry;
use crate::{
    entry::{State, V4, V6, family_of},
    hash::Keyed,
};
use rallypoint_limit::Lan;
use std::sync::Arc;

impl Registry {
    /// Panics if the parts of the registry do not agree with each other. For tests.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.slots.check_invariants();
        self.checks.check_invariants();
        let mut per_lobby = Keyed::new(0).map();
        let mut per_home = Keyed::new(0).map();
        let (mut listed, mut memory) = (0, 0);
        for slot in 0..self.slots.capacity() {
            let Some(cold) = self.slots.get(slot) else { continue };
            let hot = self.slots.hot(slot);
            *per_lobby.entry(cold.listing.lobby_id).or_default() += 1;
            for family in [V4, V6] {
                assert_eq!(cold.endpoints[family].is_some(), hot.states[family] != State::None, "state of an endpoint");
                let Some(endpoint) = cold.endpoints[family] else { continue };
                assert_eq!([endpoint.inside.ip, endpoint.outside.ip].map(family_of), [family; 2], "family");
                if cold.listing.origin.is_charged() {
                    *per_home.entry(Lan::of(endpoint.inside.ip)).or_default() += 1;
                }
                assert!(self.wheel.comes_up_by(slot, hot.deadlines[family]), "a lease that nobody looks at");
            }
            let (v4, v6) = self.shown_endpoints(slot);
            let block = cold.listing.block();
            assert_eq!((block.v4, block.v6), (v4, v6), "endpoints in the list");
            assert_eq!(cold.listing.inside, self.inside_endpoints(slot), "where the lobby reaches them");
            assert_eq!(cold.place.is_some(), v4.is_some() || v6.is_some(), "a place in the list");
            assert!(cold.endpoints.iter().any(Option::is_some), "an entry without an endpoint");
            assert_eq!(block.transport, cold.transport, "transport in the list");
            listed += usize::from(cold.place.is_some());
            memory += cold.listing.memory();
        }
        self.lobbies.check_invariants(&per_lobby);
        assert_eq!(per_home, self.per_home, "endpoints per source");
        assert_eq!(memory, self.memory, "memory");
        assert_eq!(listed, self.stats.listed, "listed servers");
        self.lists.check_invariants(|slot, place, listing| {
            let cold = self.slots.get(slot);
            cold.is_some_and(|cold| cold.place == Some(place) && Arc::ptr_eq(&cold.listing, listing))
        });
    }
}
