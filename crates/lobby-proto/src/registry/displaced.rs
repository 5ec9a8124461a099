//! Proven servers whose endpoint was taken by an unproven one (W45).
//!
//! A registration with a new ID replaces the server at the same endpoint (L8), because a restarted server has a new ID. But the
//! source can be forged, and then the new ID leaves again: it moves to another port, is unregistered or expires. The former
//! server is therefore kept for the rest of its lease, with its place, and returns when the new one leaves.

use super::{Registry, seen_endpoints::EndpointKey};
use crate::{
    ListedServer, UnlistReason,
    entry::{CheckMethod, ColdEntry, EndpointEntry, EndpointState, Family, Trust},
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_wire::lobby::{ServerId, Transport};
use std::{sync::Arc, time::Instant};

/// A server that was replaced by another one, which nothing has proven.
#[derive(Debug)]
pub(crate) struct DisplacedServer {
    pub id: ServerId,
    transport: Transport,
    check: Option<CheckMethod>,
    /// The endpoint that was taken.
    pub endpoint: EndpointEntry,
    /// When its lease ends.
    deadline: Tick,
    pub server: Arc<ListedServer>,
}

impl DisplacedServer {
    fn key(&self) -> EndpointKey {
        (self.endpoint.external, self.transport)
    }
}

impl Registry {
    /// Removes an entry whose endpoint of one family is taken by another server. Returns the server to be kept, if there is
    /// one: this one if it is proven, otherwise the one that it has displaced itself.
    pub(super) fn displace(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        taken: Family,
        reason: UnlistReason,
    ) -> Option<Box<DisplacedServer>> {
        let inherited = self.take_displaced(slot);
        Family::ALL.into_iter().for_each(|family| self.note_replaced(now, slot, family));
        let hot = self.slots.hot(slot);
        let cold = self.slots.cold(slot);
        let is_kept = cold.trust == Trust::Proven && hot.states[taken] == EndpointState::Listed;
        let displaced = cold.endpoints[taken].filter(|_| is_kept).map(|endpoint| {
            let deadline = hot.deadlines[taken];
            let server = Arc::clone(&cold.server);
            let (transport, check) = (cold.transport, cold.check);
            Box::new(DisplacedServer { id: hot.id, transport, check, endpoint, deadline, server })
        });
        let key = cold.endpoints[taken].map(|endpoint| (endpoint.external, cold.transport));
        self.remove(now, slot, reason);
        match inherited {
            Some(former) if Some(former.key()) != key => {
                self.return_displaced(now, *former);
                displaced
            }
            inherited => displaced.or(inherited),
        }
    }

    /// Keeps a displaced server with the entry that has taken its endpoint. If it is the same server, which has returned, it
    /// gets back what it had.
    pub(super) fn keep_displaced(&mut self, now: Instant, slot: SlotIndex, displaced: Box<DisplacedServer>) {
        if displaced.id == self.slots.hot(slot).id {
            let cold = self.slots.cold_mut(slot);
            let server = cold.server.updated(cold.server.lobby_id, &cold.server.block);
            cold.server = Arc::new(server.with_since(displaced.server.since));
            return self.prove(slot);
        }
        let cold = self.slots.cold(slot);
        if cold.trust == Trust::Proven || cold.displaced.is_some() {
            return;
        }
        let source = displaced.endpoint.internal.ip;
        let memory = displaced.server.memory();
        self.usage.memory += memory;
        self.usage.charge(source, memory);
        self.displaced_by_id.insert(displaced.id, slot);
        self.slots.cold_mut(slot).displaced = Some(displaced);
        self.trim_source(now, source, slot);
    }

    /// Takes the displaced server of an entry.
    pub(super) fn take_displaced(&mut self, slot: SlotIndex) -> Option<Box<DisplacedServer>> {
        let displaced = self.slots.cold_mut(slot).displaced.take()?;
        self.displaced_by_id.remove(&displaced.id);
        let memory = displaced.server.memory();
        self.usage.memory -= memory;
        self.usage.uncharge(displaced.endpoint.internal.ip, memory);
        Some(displaced)
    }

    /// Forgets the displaced server with this ID, which has registered elsewhere than at the endpoint `except`, or was
    /// unregistered. Returns whether there was one whose lease has not ended.
    pub(super) fn forget_displaced(&mut self, now: Instant, id: ServerId, except: Option<EndpointKey>) -> bool {
        let Some(&holder) = self.displaced_by_id.get(&id) else { return false };
        let place = self.slots.cold(holder).displaced.as_ref().map(|displaced| displaced.key());
        let reached = self.wheel.tick(now);
        place != except && self.take_displaced(holder).is_some_and(|displaced| displaced.deadline > reached)
    }

    /// Lets the displaced server of an entry return, if the entry has left its endpoint, and forgets it when its lease ends.
    pub(super) fn release_displaced(&mut self, now: Instant, slot: SlotIndex) {
        let Some(displaced) = &self.slots.cold(slot).displaced else { return };
        let is_left = self.slots.at_endpoint(displaced.key()) != Some(slot);
        if (is_left || displaced.deadline <= self.wheel.tick(now))
            && let Some(displaced) = self.take_displaced(slot)
        {
            self.return_displaced(now, *displaced);
        }
    }

    /// Removes an entry that has displaced a proven server and cannot be listed in its place: it was not reached, or cannot be
    /// checked now. If both are checked at the same port, the former server would not be reached either, and does not return.
    pub(super) fn yield_to_displaced(&mut self, now: Instant, slot: SlotIndex, family: Family, is_check_refused: bool) {
        let is_unreachable = self.slots.hot(slot).states[family] == EndpointState::Unreachable;
        let cold = self.slots.cold(slot);
        let Some(displaced) = &cold.displaced else { return };
        if is_check_refused || (is_unreachable && displaced.check != cold.check) {
            self.remove(now, slot, UnlistReason::Unreachable);
        }
    }

    /// Lists a displaced server again for the rest of its lease. If it had an endpoint of the other family, that one returns with its next registration.
    pub(super) fn return_displaced(&mut self, now: Instant, displaced: DisplacedServer) {
        let DisplacedServer { id, transport, check, endpoint, deadline, server } = displaced;
        let key = (endpoint.external, transport);
        let reached = self.wheel.tick(now);
        if deadline <= reached || self.slots.at_endpoint(key).is_some() {
            return;
        }
        self.usage.memory += server.memory();
        self.join_lobby(None, server.lobby_id);
        let cold = ColdEntry { trust: Trust::Proven, ..ColdEntry::new(transport, check, server, reached) };
        let slot = self.slots.insert(id, cold);
        self.index_public_id(slot);
        let family = Family::of(endpoint.internal.ip);
        self.slots.bind(key, slot);
        self.charge_endpoint(slot, endpoint.internal.ip);
        self.slots.cold_mut(slot).endpoints[family] = Some(endpoint);
        let hot = self.slots.hot_mut(slot);
        hot.states[family] = EndpointState::Listed;
        hot.deadlines[family] = deadline;
        self.wheel.schedule(slot, deadline);
        // It lists the server, unless it was banned in the meantime.
        let public_id = self.slots.cold(slot).server.public_id();
        self.review_entry(now, slot);
        // Also if another node removed the server that had taken its place.
        self.report_again(public_id);
    }
}
