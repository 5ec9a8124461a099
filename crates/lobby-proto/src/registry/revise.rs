//! The common change: a listed server has another player count or map, and everything else stays as it is.

use super::{Event, Registry, capacity::MODEST};
use crate::{
    ListedServer, ListingOrigin, RegistrationOutcome,
    entry::{Addr, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_wire::lobby::Revision;
use std::{net::IpAddr, num::NonZeroU16, sync::Arc, time::Instant};

impl Registry {
    /// Applies a registration that is a [`Revision`] of the one before, by the same server at the same endpoint. The result is the
    /// same as that of [`register`](Self::register), but nothing is parsed, checked or looked up that cannot have changed. `None`
    /// if it has to be parsed.
    pub(super) fn revise(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        source: IpAddr,
        bytes: &[u8],
        fingerprint: u64,
    ) -> Option<(RegistrationOutcome, NonZeroU16)> {
        let family = Family::of(source);
        let cold = self.entries.slots.cold(slot);
        let server = &cold.server;
        let position = cold.position?;
        let is_registered = server.origin == ListingOrigin::Registered;
        // An endpoint that another node of a cluster heard becomes a local one.
        if cold.replica.is_remote[family] {
            return None;
        }
        // While a new configuration is applied, an entry may have been banned.
        if self.review.is_some()
            || self.entries.slots.hot(slot).states[family] != EndpointState::Listed
            || !is_registered
        {
            return None;
        }
        let revision = Revision::compare(bytes, &server.list_id, &server.block)?;
        let port = revision.port()?;
        let endpoint = cold.endpoints[family].filter(|endpoint| endpoint.internal == Addr { ip: source, port })?;
        // The address map may have changed.
        if self.endpoint(source, port) != endpoint {
            return None;
        }
        let outcome = if revision.is_same() {
            RegistrationOutcome::Refreshed
        } else {
            let revised = server.revised(revision.block());
            if !self.has_memory_for(server, &revised) {
                return None;
            }
            let server = Arc::new(revised);
            let cold = self.entries.slots.cold_mut(slot);
            let before = cold.server.memory();
            cold.server = server.clone();
            self.recharge_memory(slot, before);
            self.lists.builder.replace(position, server.clone());
            self.emit(now, Event::Changed(server));
            self.note_change(slot);
            // The last registration counts: an earlier one of the other family is not a refresh of it (L8).
            self.entries.slots.hot_mut(slot).fingerprints = PerFamily::default();
            RegistrationOutcome::Changed
        };
        let lease = self.entries.wheel.deadline(now, self.config.lease);
        // The lease may be shorter than that of the last registration.
        self.entries.wheel.schedule(slot, lease);
        let hot = self.entries.slots.hot_mut(slot);
        hot.fingerprints[family] = fingerprint;
        hot.deadlines[family] = lease;
        Some((outcome, port))
    }

    /// Whether a server may change its size without an examination of the caps.
    fn has_memory_for(&self, old: &ListedServer, new: &ListedServer) -> bool {
        let (before, after) = (old.memory(), new.memory());
        let is_within = || self.memory() - before + after <= self.config.caps.memory;
        after <= before || new.block.len() <= MODEST && is_within()
    }
}
