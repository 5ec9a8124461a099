//! The evidence that an entry is a real server, and the lists of entries without it, which can give way (W45).

use super::{
    Registry,
    eviction::RETURN_AFTER,
    seen_endpoints::{EndpointKey, Priority},
};
use crate::{
    ListingOrigin,
    entry::{EndpointState, Family, Trust},
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_limit::Lan;
use std::time::{Duration, Instant};

/// How long it protects an entry that a server was listed at its endpoint before.
pub(super) const KNOWN_FOR: Duration = Duration::from_secs(10 * 60);

impl Registry {
    /// The evidence that a server is real. That its endpoint was known before it registered counts for ten minutes: after that
    /// its own registrations are evidence enough, and a restart must not protect all entries for ever.
    pub(super) fn trust(&self, now: Tick, slot: SlotIndex) -> Trust {
        let cold = self.slots.cold(slot);
        match cold.trust {
            Trust::Known if now >= cold.admitted.plus(KNOWN_FOR) => Trust::Unproven,
            trust => trust,
        }
    }

    /// Whether a server has registered again, at least ten seconds after its first registration. A refresh extends the lease
    /// and nothing else, so this is read off the lease.
    pub(super) fn has_returned(&self, slot: SlotIndex) -> bool {
        let hot = self.slots.hot(slot);
        let first = self.slots.cold(slot).admitted.plus(self.config.lease);
        let returned = first.plus(RETURN_AFTER);
        let is_later = |family| hot.states[family] != EndpointState::Absent && hot.deadlines[family] >= returned;
        Family::ALL.into_iter().any(is_later)
    }

    /// Gives a new entry the evidence that was the reason for its priority.
    pub(super) fn grant_priority(&mut self, slot: SlotIndex, priority: Option<Priority>) {
        let cold = self.slots.cold_mut(slot);
        match priority {
            Some(Priority::Former) => cold.trust = Trust::Known,
            // It has returned already: see `has_returned`.
            Some(Priority::Returning) => cold.admitted = cold.admitted.minus(RETURN_AFTER),
            Some(Priority::New) | None => {}
        }
    }

    /// Remembers the endpoint of a listed server that leaves it, if there is more evidence than one registration that the
    /// server is real.
    pub(super) fn note_departure(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        if self.slots.cold(slot).trust > Trust::Unproven || self.has_returned(slot) {
            self.note_replaced(now, slot, family);
        }
    }

    /// Remembers the endpoint of a listed server that is replaced, whatever else is known about it: if the new ID is forged, the
    /// server returns.
    pub(super) fn note_replaced(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        if let Some(key) = self.note_resident(now, slot, family) {
            self.seen.note_listed(self.wheel.tick(now), key);
        }
    }

    /// Remembers that a server was listed at its address, which takes it back however full it is. Returns its endpoint if it is
    /// listed.
    pub(super) fn note_resident(&mut self, now: Instant, slot: SlotIndex, family: Family) -> Option<EndpointKey> {
        let hot = self.slots.hot(slot);
        let cold = self.slots.cold(slot);
        let endpoint = cold.endpoints[family].filter(|_| hot.states[family] == EndpointState::Listed)?;
        let key = (endpoint.external, cold.transport);
        self.seen.note_resident(self.wheel.tick(now), key, Lan::of(endpoint.internal.ip), hot.id);
        Some(key)
    }

    /// Records that a server has replied, so that it does not give way any more.
    pub(super) fn prove(&mut self, slot: SlotIndex) {
        if self.slots.cold(slot).trust == Trust::Proven {
            return;
        }
        self.unlink_entry(slot);
        let cold = self.slots.cold(slot);
        if cold.server.origin.is_charged() {
            let endpoints = cold.endpoints;
            for endpoint in endpoints.iter().flatten() {
                self.usage.unlink(&mut self.slots, slot, endpoint.internal.ip);
            }
        }
        let cold = self.slots.cold_mut(slot);
        cold.trust = Trust::Proven;
        // The other nodes of a cluster must know before the server is replaced at one of them.
        if cold.position.is_some() {
            self.note_change(slot);
        }
    }

    /// Makes a server that has registered at another address or port prove itself there. Otherwise IDs that an attacker has
    /// proven at its own address would hold places at the addresses of others, and displace proven servers for good.
    pub(super) fn withdraw_proof(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold_mut(slot);
        if cold.trust < Trust::Proven || cold.server.origin != ListingOrigin::Registered {
            return;
        }
        cold.trust = Trust::Unproven;
        let endpoints = cold.endpoints;
        self.link_entry(slot);
        for endpoint in endpoints.iter().flatten() {
            self.usage.link(&mut self.slots, slot, endpoint.internal.ip);
        }
    }

    /// Adds a new entry that is not proven to those that can give way.
    pub(super) fn link_entry(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold(slot);
        if cold.trust < Trust::Proven {
            let lobby = cold.server.lobby_id;
            self.usage.unproven.insert(&mut self.slots, slot);
            self.usage.lobbies.link(&mut self.slots, lobby, slot);
        }
    }

    /// Removes an entry from those that can give way, before it is removed or proven.
    pub(super) fn unlink_entry(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold(slot);
        if cold.trust < Trust::Proven {
            let lobby = cold.server.lobby_id;
            self.usage.unproven.remove(&mut self.slots, slot);
            self.usage.lobbies.unlink(&mut self.slots, lobby, slot);
        }
    }
}
