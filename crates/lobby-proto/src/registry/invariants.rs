//! Invariants between the parts of the registry.

use super::{Registry, capacity::NetworkUsage, chains::Chain};
use crate::{
    entry::{EndpointState, Family, Trust},
    hash::KeyedHash,
    index::SlotIndex,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::ServerId;
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
};

impl Registry {
    /// Whether a registered server has replied to a check or a query (W45). For tests: feature `invariants`.
    #[must_use]
    pub fn is_proven(&self, id: ServerId) -> bool {
        self.slots.find(id).is_some_and(|slot| self.slots.cold(slot).trust == Trust::Proven)
    }

    /// Whether a registered server is kept when another one takes its endpoint (W45). For tests: feature `invariants`.
    #[must_use]
    pub fn is_kept(&self, id: ServerId) -> bool {
        self.slots.find(id).is_some_and(|slot| self.is_kept_when_displaced(slot))
    }

    /// Panics if the parts of the registry contradict each other. For tests and fuzzing: feature `invariants`.
    pub fn check_invariants(&self) {
        self.slots.check_invariants();
        self.checks.check_invariants();
        let mut per_lobby = KeyedHash::new(0).map();
        let mut sources = HashMap::<Lan, u32>::new();
        let mut networks = HashMap::<Site, (u32, usize)>::new();
        let mut unproven = 0;
        let mut displaced_servers = 0;
        let mut linked = self.linked();
        let mut listed = 0;
        let mut memory = 0;
        for slot in SlotIndex::FIRST.until(self.slots.end()) {
            let Some(cold) = self.slots.get(slot) else { continue };
            let hot = self.slots.hot(slot);
            let mut charge = |ip: IpAddr, memory: usize| {
                *sources.entry(Lan::of(ip)).or_default() += 1;
                let network = networks.entry(Site::of(ip)).or_default();
                network.0 += 1;
                network.1 += memory;
            };
            if let Some(displaced) = &cold.displaced {
                assert!(cold.trust < Trust::Proven, "a proven server that has displaced another");
                assert_eq!(
                    self.displaced_by_id.get(&displaced.public_id()),
                    Some(&slot),
                    "a displaced server by its ID"
                );
                assert!(self.slots.find(displaced.id).is_none(), "a displaced server that is registered");
                displaced_servers += 1;
                memory += displaced.server.memory();
                charge(displaced.endpoint.internal.ip, displaced.server.memory());
            }
            let is_linked = linked.remove(&(Chain::Lobby, slot));
            assert_eq!(is_linked, cold.trust < Trust::Proven, "entries of a lobby that are not proven");
            unproven += usize::from(is_linked);
            *per_lobby.entry(cold.server.lobby_id).or_default() += 1;
            for family in Family::ALL {
                let is_present = hot.states[family] != EndpointState::Absent;
                assert_eq!(cold.endpoints[family].is_some(), is_present, "state of an endpoint");
                let Some(endpoint) = cold.endpoints[family] else { continue };
                assert_eq!([endpoint.internal.ip, endpoint.external.ip].map(Family::of), [family; 2], "family");
                let ip = endpoint.internal.ip;
                if cold.server.origin.is_charged() {
                    charge(ip, cold.server.memory());
                    for chain in [Chain::Source(family), Chain::Network(family)] {
                        let is_linked = linked.remove(&(chain, slot));
                        assert_eq!(is_linked, cold.trust < Trust::Proven, "entries that are not proven: {chain:?}");
                    }
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
        assert_eq!(displaced_servers, self.displaced_by_id.len(), "displaced servers");
        assert!(linked.is_empty(), "chains that contain removed entries");
        self.usage.lobbies.check_invariants(&per_lobby);
        let usage = &self.usage;
        assert_eq!(sources, usage.sources.iter().map(|(lan, source)| (*lan, source.endpoints)).collect(), "sources");
        let counted = |(site, network): (&Site, &NetworkUsage)| (*site, (network.endpoints, network.memory));
        assert_eq!(networks, usage.networks.iter().map(counted).collect(), "networks");
        usage.unproven.check_invariants(&self.slots, unproven);
        assert_eq!(memory, self.usage.memory, "memory");
        assert_eq!(listed, self.stats.listed, "listed servers");
        self.lists.check_invariants(|slot, position, server| {
            let cold = self.slots.get(slot);
            cold.is_some_and(|cold| cold.position == Some(position) && Arc::ptr_eq(&cold.server, server))
        });
    }

    /// All entries that are in a chain, in the chain where they belong.
    fn linked(&self) -> HashSet<(Chain, SlotIndex)> {
        let mut linked = HashSet::new();
        let mut add = |chain: Chain, newest: Option<SlotIndex>, is_member: &dyn Fn(SlotIndex) -> bool| {
            for slot in self.slots.chain(chain, newest) {
                assert!(is_member(slot) && linked.insert((chain, slot)), "an entry in the wrong chain: {chain:?}");
            }
        };
        let ip = |slot: SlotIndex, family| self.slots.cold(slot).endpoints[family].map(|endpoint| endpoint.internal.ip);
        for family in Family::ALL {
            for (&lan, source) in &self.usage.sources {
                let is_member = |slot| ip(slot, family).is_some_and(|ip| Lan::of(ip) == lan);
                if source.newest.is_some_and(is_member) {
                    add(Chain::Source(family), source.newest, &is_member);
                }
            }
            for (&site, network) in &self.usage.networks {
                let is_member = |slot| ip(slot, family).is_some_and(|ip| Site::of(ip) == site);
                if network.newest.is_some_and(is_member) {
                    add(Chain::Network(family), network.newest, &is_member);
                }
            }
        }
        for (id, newest) in self.usage.lobbies.all_newest() {
            add(Chain::Lobby, newest, &|slot| self.slots.cold(slot).server.lobby_id == id);
        }
        linked
    }
}
