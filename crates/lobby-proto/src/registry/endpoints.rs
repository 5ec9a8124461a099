//! The endpoints of an entry: where its server is, in each address family.

use super::{Registry, seen_endpoints::EndpointKey};
use crate::{
    ListingOrigin,
    bans::Candidate,
    entry::{Addr, CheckMethod, EndpointEntry, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_limit::is_public;
use rallypoint_wire::lobby::{Datagram, Registration, Transport};
use std::{net::IpAddr, num::NonZeroU16, time::Instant};

impl Registry {
    /// The endpoint of a server that registers this port from this address.
    pub(super) fn endpoint(&self, source: IpAddr, port: NonZeroU16) -> EndpointEntry {
        let internal = Addr { ip: source, port };
        let external = self.config.address_map.external(internal.into());
        // `Config::validate` rejects an address map with port 0.
        let external = Addr { ip: external.ip(), port: NonZeroU16::new(external.port()).unwrap_or(port) };
        EndpointEntry { internal, external }
    }

    /// Whether the endpoint of a registration belongs to a server with another ID.
    pub(crate) fn is_registered_under_another_id(&self, source: IpAddr, registration: &[u8]) -> bool {
        let Ok(Datagram::Register(new)) = Datagram::parse(registration) else { return false };
        let external = self.endpoint(source, new.port()).external;
        let owner = self.entries.slots.at_endpoint((external, new.transport()));
        // In a cluster the owner can be this server under a stand-in ID, but not under another public one.
        let public_id = self.public_id(new.server_id());
        owner.is_some_and(|owner| self.entries.slots.cold(owner).server.public_id() != public_id)
    }

    /// Whether an endpoint is refused because it is not public. What the address map lists is the operator's decision.
    pub(super) fn is_private_refused(&self, endpoint: &EndpointEntry) -> bool {
        !self.config.allow_private && endpoint.internal == endpoint.external && !is_public(endpoint.external.ip)
    }

    /// Whether an endpoint belongs to another inside host than that of the server `known`, which registers there (W44).
    pub(super) fn is_endpoint_taken(
        &self,
        now: Instant,
        known: Option<SlotIndex>,
        key: EndpointKey,
        new: EndpointEntry,
    ) -> bool {
        let owner = self.entries.reserved.owner(self.entries.wheel.tick(now), key);
        match self.entries.slots.at_endpoint(key) {
            Some(holder) if Some(holder) == known => false,
            Some(holder) => !self.may_replace(holder, new) && owner != Some(new.internal.ip),
            None => owner.is_some_and(|owner| owner != new.internal.ip),
        }
    }

    /// Whether a server at this endpoint may replace an entry that is listed at the same external address (W44). The source of
    /// a registration identifies a host; behind an address map several hosts share an external address, and one of them must
    /// not take the place of another. A mapped host precedes one that merely sends from the external address.
    fn may_replace(&self, slot: SlotIndex, new: EndpointEntry) -> bool {
        let old = self.entries.slots.cold(slot).endpoints[Family::of(new.external.ip)];
        old.is_none_or(|old| {
            let is_mapped = |endpoint: EndpointEntry| endpoint.internal.ip != endpoint.external.ip;
            old.internal.ip == new.internal.ip || (is_mapped(new) && !is_mapped(old))
        })
    }

    /// Sets the endpoint of one family. Returns which endpoints of the server have to be checked now: those whose address or
    /// transport is new, those that are to be checked in a new way (W14), and the one that registers if it is not listed.
    pub(super) fn set_endpoint(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        family: Family,
        new: EndpointEntry,
        registration: &Registration<'_>,
    ) -> PerFamily<bool> {
        let cold = self.entries.slots.cold(slot);
        let old = cold.endpoints[family];
        let state = self.entries.slots.hot(slot).states[family];
        let is_new_transport = cold.transport != registration.transport();
        if old == Some(new) && !is_new_transport {
            self.entries.slots.hot_mut(slot).fingerprints[family] = 0;
        } else {
            self.note_departure(now, slot, family);
            self.drop_endpoint(now, slot, family);
            if old.is_none_or(|old| old.internal != new.internal) {
                self.withdraw_proof(slot);
            }
            self.change_transport(now, slot, registration.transport());
            self.entries.slots.bind((new.external, registration.transport()), slot);
            self.charge_endpoint(slot, new.internal.ip);
            self.entries.slots.cold_mut(slot).endpoints[family] = Some(new);
        }
        let cold = self.entries.slots.cold_mut(slot);
        cold.replica.is_remote[family] = false;
        // A server that did not register itself has been queried by the caller.
        let check = CheckMethod::of(registration).filter(|_| cold.server.origin == ListingOrigin::Registered);
        let is_new_check = std::mem::replace(&mut cold.check, check) != check;
        let is_new_addr = old.is_none_or(|old| old.internal != new.internal);
        if is_new_addr {
            cold.check_attempts[family] = None;
        }
        let states = &mut self.entries.slots.hot_mut(slot).states;
        states[family] = if is_new_addr { EndpointState::Checking } else { state };
        if is_new_transport {
            states.iter_mut().filter(|state| **state != EndpointState::Absent).for_each(|state| {
                *state = EndpointState::Checking;
            });
        }
        PerFamily::from_fn(|other| match states[other] {
            EndpointState::Absent => false,
            EndpointState::Listed => is_new_check,
            EndpointState::Checking | EndpointState::Unreachable => is_new_check || other == family,
        })
    }

    /// Removes the endpoint of one family.
    pub(super) fn drop_endpoint(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        let cold = self.entries.slots.cold_mut(slot);
        if let Some(endpoint) = cold.endpoints[family].take() {
            let key = (endpoint.external, cold.transport);
            self.release_endpoint(now, slot, family, endpoint, key);
            self.uncharge_endpoint(slot, endpoint.internal.ip);
        }
        let hot = self.entries.slots.hot_mut(slot);
        hot.states[family] = EndpointState::Absent;
        hot.fingerprints[family] = 0;
    }

    /// Releases an endpoint for other servers; behind an address map, for those of the same inside host until the lease ends.
    fn release_endpoint(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        family: Family,
        endpoint: EndpointEntry,
        key: EndpointKey,
    ) {
        self.entries.slots.unbind(key, slot);
        let EndpointEntry { internal, external } = endpoint;
        if internal.ip != external.ip {
            let until = self.entries.slots.hot(slot).deadlines[family];
            self.entries.reserved.reserve(self.entries.wheel.tick(now), key, internal.ip, until);
        }
    }

    /// Changes the transport, which belongs to the server and not to the endpoint. An endpoint of the other family is kept,
    /// unless another server has registered the same address with the new transport, or it is banned.
    fn change_transport(&mut self, now: Instant, slot: SlotIndex, transport: Transport) {
        let cold = self.entries.slots.cold(slot);
        let old = cold.transport;
        if old == transport {
            return;
        }
        let endpoints = cold.endpoints;
        for family in Family::ALL {
            let Some(endpoint) = endpoints[family] else { continue };
            let key = (endpoint.external, transport);
            let listed = Some((endpoint.external.into(), transport));
            let is_banned = self.ban_for(now, &Candidate { endpoint: listed, ..Candidate::default() }).is_some();
            if self.entries.slots.at_endpoint(key).is_some() || is_banned {
                self.drop_endpoint(now, slot, family);
            } else {
                self.release_endpoint(now, slot, family, endpoint, (endpoint.external, old));
                self.entries.slots.bind(key, slot);
            }
        }
        self.entries.slots.cold_mut(slot).transport = transport;
    }
}
