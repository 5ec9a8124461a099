//! Entries that leave: by unregistration, when their lease ends, or because another server takes their place.

use super::{Registry, groups::Group};
use crate::{
    RegistrationOutcome, UnlistReason,
    entry::{EndpointState, Family},
    index::SlotIndex,
};
use rallypoint_wire::lobby::ServerId;
use std::{net::IpAddr, time::Instant};

impl Registry {
    pub(super) fn unregister(&mut self, now: Instant, id: ServerId) -> RegistrationOutcome {
        match self.find_or_adopt(id) {
            Some(slot) => self.remove(now, slot, UnlistReason::Unregistered),
            None if self.forget_displaced(now, self.public_id(id), None) => self.note_unregistered(now, id),
            None => return RegistrationOutcome::NotRegistered,
        }
        self.entries.tombstones.insert(now, id);
        RegistrationOutcome::Unregistered
    }

    /// The port of a registered server, at the address of this source if it has several.
    pub(super) fn registered_port(&mut self, id: ServerId, source: IpAddr) -> Option<u16> {
        let slot = self.find_or_adopt(id)?;
        let endpoints = &self.entries.slots.cold(slot).endpoints;
        let other = || Family::ALL.into_iter().find_map(|family| endpoints[family].as_ref());
        let endpoint = endpoints[Family::of(source)].as_ref().or_else(other)?;
        Some(endpoint.internal.port.get())
    }

    /// Removes a server from the registry.
    pub(super) fn remove(&mut self, now: Instant, slot: SlotIndex, reason: UnlistReason) {
        let displaced = self.take_displaced(slot);
        self.unlist(now, slot, reason);
        for family in Family::ALL {
            self.note_departure(now, slot, family);
            self.drop_endpoint(now, slot, family);
        }
        self.leave_list(slot);
        self.leave(slot, Group::All);
        if let Some(replication) = &mut self.replication {
            replication.forget(self.entries.slots.cold(slot).server.public_id());
        }
        self.entries.slots.remove(slot);
        if let Some(displaced) = displaced {
            self.return_displaced(now, *displaced);
        }
    }

    /// Handles the deadline of an entry, which a refresh may have extended in the meantime.
    pub(super) fn handle_deadline(&mut self, now: Instant, slot: SlotIndex) {
        if self.entries.slots.get(slot).is_none() {
            return;
        }
        let reached = self.entries.wheel.tick(now);
        self.extend_by_grace(slot, reached);
        for family in Family::ALL {
            let hot = self.entries.slots.hot(slot);
            if hot.states[family] != EndpointState::Absent
                && hot.deadlines[family] <= reached
                && !self.is_held_by_cluster(slot, family, reached)
            {
                self.note_departure(now, slot, family);
                self.drop_endpoint(now, slot, family);
            }
        }
        self.release_displaced(now, slot);
        let hot = self.entries.slots.hot(slot);
        let leased = Family::ALL.into_iter().filter(|&family| hot.states[family] != EndpointState::Absent);
        let Some(next) = leased.map(|family| hot.deadlines[family]).min() else {
            self.remove(now, slot, UnlistReason::Expired);
            return;
        };
        self.entries.wheel.schedule(slot, next);
        self.update_list(now, slot, None, UnlistReason::Expired);
        self.renew_checks(now, slot);
        self.vouch_for(now, slot);
    }

    /// Keeps listed servers known to the limiter, which refreshes bypass.
    fn vouch_for(&mut self, now: Instant, slot: SlotIndex) {
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        for family in Family::ALL.into_iter().filter(|&family| hot.states[family] == EndpointState::Listed) {
            if let Some(source) = cold.endpoints[family].map(|endpoint| endpoint.internal.ip)
                && !self.config.limit_exempt.contains(source)
            {
                self.admission.limiter.mark_known(now, source);
            }
        }
    }
}
