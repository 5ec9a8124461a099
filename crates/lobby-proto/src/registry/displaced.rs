//! Servers whose endpoint was taken by an unproven one (W45).
//!
//! A registration with a new ID replaces the server at the same endpoint (L8), because a restarted server has a new ID. But the
//! source can be forged, and then the new ID leaves again: it moves to another port, is unregistered or expires. The former
//! server is therefore kept for the rest of its lease, with its place, and returns when the new one leaves: if it is proven, or
//! if it cannot be checked and has registered more than once. The latter gives way when a cap is reached, like any other server
//! that is not proven.
//!
//! In a cluster (W90), the other nodes learn of the replacement only when the new server is listed. A former server that other
//! nodes heard returns as they know it, and is then read again from the store.

use super::{Registry, seen_endpoints::EndpointKey};
use crate::{
    ListedServer, PublicId, UnlistReason,
    entry::{CheckMethod, ColdEntry, EndpointEntry, EndpointState, Family, PerFamily, ReplicaState, Trust},
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_wire::lobby::{ServerId, Transport};
use std::{sync::Arc, time::Instant};

/// A server that was replaced by another one, which nothing has proven.
#[derive(Debug)]
pub(crate) struct DisplacedServer {
    pub id: ServerId,
    /// Whether the ID is a stand-in, because only other nodes of a cluster know it.
    has_stand_in_id: bool,
    /// Whether another node of a cluster heard it.
    is_remote: bool,
    transport: Transport,
    check: Option<CheckMethod>,
    /// The endpoint that was taken.
    pub endpoint: EndpointEntry,
    /// When its lease ends.
    deadline: Tick,
    /// When it was first registered.
    admitted: Tick,
    /// The evidence that it is real.
    trust: Trust,
    pub server: Arc<ListedServer>,
}

impl DisplacedServer {
    /// Its public ID.
    pub fn public_id(&self) -> PublicId {
        self.server.public_id()
    }

    /// Whether it has replied to a check or a query.
    pub fn is_proven(&self) -> bool {
        self.trust == Trust::Proven
    }

    fn key(&self) -> EndpointKey {
        (self.endpoint.external, self.transport)
    }
}

impl Registry {
    /// Whether an entry is kept when its endpoint is taken. A server that cannot be checked has nothing but its registrations to
    /// prove itself. In a cluster it is not kept: the other nodes do not know how often it has registered.
    pub(super) fn is_kept_when_displaced(&self, slot: SlotIndex) -> bool {
        let cold = self.slots.cold(slot);
        let has_no_check = cold.check.is_none() && self.replication.is_none();
        cold.trust == Trust::Proven || (has_no_check && self.has_returned(slot))
    }

    /// Removes an entry whose endpoint of one family is taken by another server. Returns the server to be kept, if there is
    /// one: this one if it is proven, otherwise the one that it has displaced itself, or this one if it cannot be checked.
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
        let is_kept = hot.states[taken] == EndpointState::Listed && self.is_kept_when_displaced(slot);
        let displaced = cold.endpoints[taken].filter(|_| is_kept).map(|endpoint| {
            let deadline = hot.deadlines[taken];
            let server = Arc::clone(&cold.server);
            let (transport, check) = (cold.transport, cold.check);
            let (has_stand_in_id, is_remote) = (cold.replica.has_stand_in_id, cold.replica.is_remote[taken]);
            Box::new(DisplacedServer {
                id: hot.id,
                has_stand_in_id,
                is_remote,
                transport,
                check,
                endpoint,
                deadline,
                admitted: cold.admitted,
                trust: cold.trust,
                server,
            })
        });
        let key = cold.endpoints[taken].map(|endpoint| (endpoint.external, cold.transport));
        // Whether the other nodes of a cluster lose it, too, is decided when the new server is listed.
        match displaced {
            Some(_) => self.without_reporting(|registry| registry.remove(now, slot, reason)),
            None => self.remove(now, slot, reason),
        }
        match inherited {
            Some(former) if Some(former.key()) != key => {
                self.return_displaced(now, *former);
                displaced
            }
            // A forger that takes the endpoint twice, and registers in between, does not replace the former server by its own.
            Some(former) if !displaced.as_ref().is_some_and(|displaced| displaced.is_proven()) => Some(former),
            _ => displaced,
        }
    }

    /// Keeps a displaced server with the entry that has taken its endpoint. If it is the same server, which has returned, it
    /// gets back what it had.
    pub(super) fn keep_displaced(&mut self, now: Instant, slot: SlotIndex, displaced: Box<DisplacedServer>) {
        if displaced.public_id() == self.slots.cold(slot).server.public_id() {
            let cold = self.slots.cold_mut(slot);
            let server = cold.server.updated(cold.server.lobby_id, &cold.server.block);
            cold.server = Arc::new(server.with_since(displaced.server.since));
            cold.admitted = displaced.admitted;
            if displaced.is_proven() {
                self.prove(slot);
            }
            return;
        }
        let cold = self.slots.cold(slot);
        if cold.trust == Trust::Proven || cold.displaced.is_some() {
            // The store may still have it.
            return self.read_again(displaced.public_id());
        }
        let source = displaced.endpoint.internal.ip;
        let memory = displaced.server.memory();
        let is_proven = displaced.is_proven();
        if !is_proven && !self.has_room_for_displaced(source, memory) {
            return;
        }
        self.usage.memory += memory;
        self.usage.charge(source, memory);
        self.displaced_by_id.insert(displaced.public_id(), slot);
        self.slots.cold_mut(slot).displaced = Some(displaced);
        if !self.trim_source(now, source, slot, is_proven) && !is_proven {
            self.take_displaced(slot);
        }
    }

    /// Takes the displaced server of an entry.
    pub(super) fn take_displaced(&mut self, slot: SlotIndex) -> Option<Box<DisplacedServer>> {
        let displaced = self.slots.cold_mut(slot).displaced.take()?;
        self.displaced_by_id.remove(&displaced.public_id());
        let memory = displaced.server.memory();
        self.usage.memory -= memory;
        self.usage.uncharge(displaced.endpoint.internal.ip, memory);
        Some(displaced)
    }

    /// Forgets the displaced server with this ID, which has registered elsewhere than at the endpoint `except`, or was
    /// unregistered. Returns whether there was one whose lease has not ended.
    pub(super) fn forget_displaced(&mut self, now: Instant, id: PublicId, except: Option<EndpointKey>) -> bool {
        let Some(&holder) = self.displaced_by_id.get(&id) else { return false };
        let place = self.slots.cold(holder).displaced.as_ref().map(|displaced| displaced.key());
        let reached = self.wheel.tick(now);
        place != except && self.take_displaced(holder).is_some_and(|displaced| displaced.deadline > reached)
    }

    /// Whether this server was displaced from this endpoint.
    pub(super) fn is_displaced_from(&self, id: PublicId, key: EndpointKey) -> bool {
        let holder = self.displaced_by_id.get(&id);
        let displaced = holder.and_then(|&holder| self.slots.cold(holder).displaced.as_ref());
        displaced.is_some_and(|displaced| displaced.key() == key)
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
    pub(super) fn yield_to_displaced(&mut self, now: Instant, slot: SlotIndex, is_check_refused: PerFamily<bool>) {
        let cold = self.slots.cold(slot);
        let is_leased = |displaced: &&DisplacedServer| displaced.deadline > self.wheel.tick(now);
        let Some(displaced) = cold.displaced.as_deref().filter(is_leased) else { return };
        // The endpoint of the other family proves nothing about the one that was taken.
        let family = Family::of(displaced.endpoint.internal.ip);
        let is_unreachable = self.slots.hot(slot).states[family] == EndpointState::Unreachable;
        if is_check_refused[family] || (is_unreachable && displaced.check != cold.check) {
            self.remove(now, slot, UnlistReason::Unreachable);
        }
    }

    /// Lists a displaced server again for the rest of its lease. If it had an endpoint of the other family, that one returns with
    /// its next registration.
    pub(super) fn return_displaced(&mut self, now: Instant, displaced: DisplacedServer) {
        let public_id = displaced.public_id();
        let DisplacedServer {
            id,
            has_stand_in_id,
            is_remote,
            transport,
            check,
            endpoint,
            deadline,
            admitted,
            trust,
            server,
        } = displaced;
        let key = (endpoint.external, transport);
        let reached = self.wheel.tick(now);
        // The lease of a server that other nodes heard is kept in the store.
        let deadline = if is_remote { self.remote_deadline() } else { deadline };
        let is_back = self.replication.is_some() && self.find_replicated(public_id).is_some();
        if deadline <= reached || is_back || self.slots.at_endpoint(key).is_some() {
            return self.read_again(public_id);
        }
        if trust < Trust::Proven && self.is_full_for(key, endpoint.internal.ip, &server) {
            return;
        }
        self.usage.memory += server.memory();
        self.join_lobby(None, server.lobby_id);
        let family = Family::of(endpoint.internal.ip);
        let mut replica = ReplicaState { has_stand_in_id, is_remote: PerFamily::default() };
        replica.is_remote[family] = is_remote;
        let cold = ColdEntry::new(transport, check, server, admitted);
        let slot = self.slots.insert(id, ColdEntry { trust, replica, ..cold });
        self.link_entry(slot);
        self.index_public_id(slot);
        self.slots.bind(key, slot);
        self.charge_endpoint(slot, endpoint.internal.ip);
        self.slots.cold_mut(slot).endpoints[family] = Some(endpoint);
        let hot = self.slots.hot_mut(slot);
        hot.states[family] = EndpointState::Listed;
        hot.deadlines[family] = deadline;
        self.wheel.schedule(slot, deadline);
        // It lists the server, unless it was banned in the meantime.
        self.review_entry(now, slot);
        if self.slots.get(slot).is_some() {
            // An entry that is displaced again and again must not stay listed without a check.
            self.renew_checks(now, slot);
        }
        // Also if another node removed the server that had taken its place.
        self.read_again(public_id);
    }
}
