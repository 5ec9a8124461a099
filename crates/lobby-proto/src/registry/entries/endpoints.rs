//! The endpoints of an entry: where its server is, in each address family.

use super::{Entries, Group};
use crate::{
    CheckResult, CheckTarget, ListingOrigin,
    entry::{CheckAttempts, CheckMethod, EndpointEntry, EndpointKey, EndpointState, Endpoints, Family, PerFamily},
    index::SlotIndex,
    registry::evidence::RETURN_AFTER,
    wheel::Tick,
};
use rallypoint_wire::lobby::{ListBlock, ListId, Transport};
use std::time::Instant;

impl Entries {
    /// Adds an endpoint to an entry that has none of its family.
    fn add_endpoint(&mut self, slot: SlotIndex, family: Family, endpoint: EndpointEntry) {
        let cold = self.slots.cold_mut(slot);
        cold.endpoints[family] = Some(endpoint);
        cold.check_attempts[family] = None;
        let key = (endpoint.external, cold.transport);
        self.slots.bind(key, slot);
        for group in self.places(slot, endpoint) {
            self.groups.join(group, slot, self.slots.cold(slot));
        }
    }

    /// Adds an endpoint that is listed until its lease ends.
    pub fn add_listed(&mut self, slot: SlotIndex, endpoint: EndpointEntry, is_remote: bool, deadline: Tick) {
        let family = Family::of(endpoint.internal.ip);
        self.add_endpoint(slot, family, endpoint);
        self.slots.cold_mut(slot).replica.is_remote[family] = is_remote;
        self.list_until(slot, family, deadline);
    }

    /// Lists an endpoint until this time.
    pub fn list_until(&mut self, slot: SlotIndex, family: Family, deadline: Tick) {
        let hot = self.slots.hot_mut(slot);
        hot.states[family] = EndpointState::Listed;
        hot.deadlines[family] = deadline;
        self.wheel.schedule(slot, deadline);
    }

    pub fn set_state(&mut self, slot: SlotIndex, family: Family, state: EndpointState) {
        self.slots.hot_mut(slot).states[family] = state;
    }

    /// The source and the network of an endpoint, if its server is charged to them.
    fn places(&self, slot: SlotIndex, endpoint: EndpointEntry) -> impl Iterator<Item = Group> + use<> {
        let is_charged = self.cold(slot).server.origin.is_charged();
        let ip = endpoint.internal.ip;
        [Group::source(ip), Group::network(ip)].into_iter().filter(move |_| is_charged)
    }

    /// Removes the endpoint of one family.
    pub fn drop_endpoint(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        let cold = self.slots.cold_mut(slot);
        if let Some(endpoint) = cold.endpoints[family].take() {
            let transport = cold.transport;
            self.release_endpoint(now, slot, endpoint, transport);
            for group in self.places(slot, endpoint) {
                self.groups.leave(group, slot, self.slots.cold(slot));
            }
        }
        self.set_state(slot, family, EndpointState::Absent);
        self.forget_fingerprint(slot, family);
    }

    /// Releases an endpoint for other servers; behind an address map, for those of the same inside host until the lease ends.
    fn release_endpoint(&mut self, now: Instant, slot: SlotIndex, endpoint: EndpointEntry, transport: Transport) {
        let EndpointEntry { internal, external } = endpoint;
        let key = (external, transport);
        self.slots.unbind(key, slot);
        if internal.ip != external.ip {
            let until = self.hot(slot).deadlines[Family::of(internal.ip)];
            self.reserved.reserve(self.clock.tick(now), key, internal.ip, until);
        }
    }

    /// Whether an entry has this endpoint.
    pub fn has_endpoint(&self, slot: SlotIndex, endpoint: EndpointEntry, transport: Transport) -> bool {
        let cold = self.cold(slot);
        cold.transport == transport && cold.endpoints[Family::of(endpoint.internal.ip)] == Some(endpoint)
    }

    /// Changes the transport, which belongs to the server and not to the endpoint. An endpoint of the other family is kept,
    /// unless another server has registered the same address with the new transport, or it is banned.
    fn set_transport(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        transport: Transport,
        is_banned: impl Fn(EndpointKey) -> bool,
    ) {
        let old = self.cold(slot).transport;
        if old == transport {
            return;
        }
        for family in Family::ALL {
            let Some(endpoint) = self.cold(slot).endpoints[family] else { continue };
            let key = (endpoint.external, transport);
            if self.at_endpoint(key).is_some() || is_banned(key) {
                self.drop_endpoint(now, slot, family);
            } else {
                self.release_endpoint(now, slot, endpoint, old);
                self.slots.bind(key, slot);
                self.set_state(slot, family, EndpointState::Checking);
            }
        }
        self.slots.cold_mut(slot).transport = transport;
    }

    /// Sets the endpoint of one family, the transport, and how the server is checked. Returns which of its endpoints have to be
    /// checked now: those whose address or transport is new, those that are to be checked in a new way (W14), and the one that
    /// registers if it is not listed.
    pub fn set_endpoint(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        (new, transport): (EndpointEntry, Transport),
        check: Option<CheckMethod>,
        is_banned: impl Fn(EndpointKey) -> bool,
    ) -> PerFamily<bool> {
        let family = Family::of(new.internal.ip);
        let old = self.cold(slot).endpoints[family];
        let is_new_addr = old.is_none_or(|old| old.internal != new.internal);
        if self.has_endpoint(slot, new, transport) {
            self.forget_fingerprint(slot, family);
        } else {
            let state = self.state(slot, family);
            let attempts = self.cold(slot).check_attempts[family].filter(|_| !is_new_addr);
            let is_new = is_new_addr || self.cold(slot).transport != transport;
            self.drop_endpoint(now, slot, family);
            if is_new_addr {
                self.withdraw_proof(slot);
            }
            self.set_transport(now, slot, transport, is_banned);
            self.add_endpoint(slot, family, new);
            self.slots.cold_mut(slot).check_attempts[family] = attempts;
            self.set_state(slot, family, if is_new { EndpointState::Checking } else { state });
        }
        let cold = self.slots.cold_mut(slot);
        cold.replica.is_remote[family] = false;
        // A server that did not register itself has been queried by the caller.
        let check = check.filter(|_| cold.server.origin == ListingOrigin::Registered);
        let is_new_check = std::mem::replace(&mut cold.check, check) != check;
        let states = self.hot(slot).states;
        PerFamily::from_fn(|other| match states[other] {
            EndpointState::Absent => false,
            EndpointState::Listed => is_new_check,
            EndpointState::Checking | EndpointState::Unreachable => is_new_check || other == family,
        })
    }

    /// Gives an entry these endpoints, which other nodes of a cluster heard, except that `kept` ones stay as they are.
    pub fn set_remote_endpoints(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        block: &ListBlock<'_>,
        endpoints: Endpoints,
        kept: PerFamily<bool>,
        deadline: Tick,
    ) {
        let transport = block.transport;
        let is_new_transport = self.cold(slot).transport != transport;
        for family in Family::ALL {
            let is_same = self.cold(slot).endpoints[family] == endpoints[family]
                && self.state(slot, family) == EndpointState::Listed;
            if is_new_transport || !(kept[family] || is_same) {
                self.drop_endpoint(now, slot, family);
            }
        }
        let cold = self.slots.cold_mut(slot);
        // No endpoint is left if it is a new one.
        cold.transport = transport;
        let check = CheckMethod::for_server(transport, block.table.get(b"x-query"));
        cold.check = check.filter(|_| cold.server.origin == ListingOrigin::Registered);
        for family in Family::ALL {
            if let (Some(endpoint), None) = (endpoints[family], self.cold(slot).endpoints[family]) {
                self.add_listed(slot, endpoint, true, deadline);
            }
        }
    }

    /// Whether an entry shows these data in this list, at these endpoints.
    pub fn shows(&self, slot: SlotIndex, list: ListId, block: &ListBlock<'_>, endpoints: &Endpoints) -> bool {
        let cold = self.cold(slot);
        let without_endpoints = |block| ListBlock { v4: None, v6: None, ..block };
        cold.server.list_id == list
            && cold.endpoints == *endpoints
            && without_endpoints(cold.server.block()) == without_endpoints(*block)
    }

    /// Whether an endpoint belongs to another inside host than that of the server `known`, which registers there (W44). The source
    /// of a registration identifies a host; behind an address map several hosts share an external address, and one of them must
    /// not take the place of another. A mapped host precedes one that merely sends from the external address.
    pub fn is_endpoint_taken(
        &self,
        now: Instant,
        known: Option<SlotIndex>,
        key: EndpointKey,
        new: EndpointEntry,
    ) -> bool {
        let owner = self.reserved.owner(self.clock.tick(now), key);
        let is_mapped = |endpoint: EndpointEntry| endpoint.internal.ip != endpoint.external.ip;
        let may_replace =
            |old: EndpointEntry| old.internal.ip == new.internal.ip || (is_mapped(new) && !is_mapped(old));
        match self.at_endpoint(key) {
            Some(holder) if Some(holder) == known => false,
            Some(holder) => {
                let old = self.cold(holder).endpoints[Family::of(new.external.ip)];
                !old.is_none_or(may_replace) && owner != Some(new.internal.ip)
            }
            None => owner.is_some_and(|owner| owner != new.internal.ip),
        }
    }

    /// The target of the check of an endpoint, if it is to be checked.
    pub fn check_target(&self, slot: SlotIndex, family: Family) -> Option<CheckTarget> {
        self.get(slot)?.check_target(family, &self.config.checks)
    }

    /// Sets the state of an endpoint to the result of its check.
    pub fn set_result(&mut self, slot: SlotIndex, family: Family, result: CheckResult) {
        match result {
            CheckResult::Reachable(latency) => {
                self.cold(slot).server.set_latency(latency);
                self.set_state(slot, family, EndpointState::Listed);
            }
            CheckResult::Unreachable | CheckResult::Refused => {
                self.set_state(slot, family, EndpointState::Unreachable);
            }
            CheckResult::Unknown => {}
        }
    }

    /// Number of times an endpoint has returned for its check.
    pub fn count_return(&mut self, now: Instant, slot: SlotIndex, family: Family) -> u8 {
        let now = self.clock.tick(now);
        let attempts = &mut self.slots.cold_mut(slot).check_attempts[family];
        let attempts = attempts.get_or_insert(CheckAttempts { last: now, returns: 0 });
        if now >= attempts.last.plus(RETURN_AFTER) {
            attempts.last = now;
            attempts.returns = attempts.returns.saturating_add(1);
        }
        attempts.returns
    }
}
