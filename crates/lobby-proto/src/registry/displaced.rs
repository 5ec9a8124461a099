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

use super::{
    Evidence, Registry,
    groups::{Group, Usage},
    seen_endpoints::EndpointKey,
};
use crate::{
    ListedServer, PublicId, UnlistReason,
    entry::{ColdEntry, EndpointEntry, EndpointState, Family, PerFamily, ReplicaState},
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_wire::lobby::ServerId;
use std::{sync::Arc, time::Instant};

/// A server that was replaced by another one, which nothing has proven.
#[derive(Debug)]
pub(crate) struct DisplacedServer {
    pub id: ServerId,
    /// Whether another node of a cluster heard it.
    is_remote: bool,
    /// The endpoint that was taken.
    pub endpoint: EndpointEntry,
    /// When its lease ends.
    deadline: Tick,
    /// Its entry, without endpoints.
    entry: ColdEntry,
}

impl DisplacedServer {
    /// Its public ID.
    pub fn public_id(&self) -> PublicId {
        self.entry.server.public_id()
    }

    /// The server as the list showed it.
    pub fn server(&self) -> &Arc<ListedServer> {
        &self.entry.server
    }

    /// Whether it has replied to a check or a query.
    pub fn is_proven(&self) -> bool {
        self.entry.evidence == Evidence::Proven
    }

    /// What the server uses: its place at its source and network, and memory.
    pub(super) fn usage(&self) -> impl Iterator<Item = (Group, Usage)> + use<> {
        let usage = self.entry.usage();
        let ip = self.endpoint.internal.ip;
        let places = [Group::source(ip), Group::network(ip)].map(|group| (group, usage));
        [(Group::All, Usage { servers: 0, ..usage })].into_iter().chain(places)
    }

    fn key(&self) -> EndpointKey {
        (self.endpoint.external, self.entry.transport)
    }
}

impl Registry {
    /// Whether an entry is kept when its endpoint is taken. A server that cannot be checked has nothing but its registrations to
    /// prove itself. In a cluster it is not kept: the other nodes do not know how often it has registered.
    pub(super) fn is_kept_when_displaced(&self, slot: SlotIndex) -> bool {
        let cold = self.entries.slots.cold(slot);
        let has_no_check = cold.check.is_none() && self.replication.is_none();
        cold.evidence == Evidence::Proven || (has_no_check && self.has_returned(slot))
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
        // One whose lease has ended is gone, even if the timer that forgets it has not fired yet.
        let reached = self.entries.wheel.tick(now);
        let inherited = self.take_displaced(slot).filter(|former| former.deadline > reached);
        Family::ALL.into_iter().for_each(|family| self.note_replaced(now, slot, family));
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        let is_kept = hot.states[taken] == EndpointState::Listed && self.is_kept_when_displaced(slot);
        let displaced = cold.endpoints[taken].filter(|_| is_kept).map(|endpoint| {
            let replica = ReplicaState { is_remote: PerFamily::default(), ..cold.replica };
            let entry = ColdEntry::new(cold.transport, cold.check, Arc::clone(&cold.server), cold.admitted);
            let entry = ColdEntry { evidence: cold.evidence, replica, ..entry };
            let (deadline, is_remote) = (hot.deadlines[taken], cold.replica.is_remote[taken]);
            Box::new(DisplacedServer { id: hot.id, is_remote, endpoint, deadline, entry })
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
        if displaced.public_id() == self.entries.slots.cold(slot).server.public_id() {
            let cold = self.entries.slots.cold_mut(slot);
            let server = cold.server.updated(cold.server.list_id, &cold.server.block);
            cold.server = Arc::new(server.with_since(displaced.server().since));
            cold.admitted = displaced.entry.admitted;
            if displaced.is_proven() {
                self.prove(slot);
            }
            return;
        }
        let cold = self.entries.slots.cold(slot);
        if cold.evidence == Evidence::Proven || cold.displaced.is_some() {
            // The store may still have it.
            return self.read_again(displaced.public_id());
        }
        let source = displaced.endpoint.internal.ip;
        let is_proven = displaced.is_proven();
        if !is_proven && !self.has_room_for_displaced(source, displaced.server().memory()) {
            return;
        }
        displaced.usage().for_each(|(group, usage)| self.admission.groups.charge(group, usage));
        self.entries.displaced_by_id.insert(displaced.public_id(), slot);
        self.entries.slots.cold_mut(slot).displaced = Some(displaced);
        if !self.trim_source(now, source, slot, is_proven) && !is_proven {
            self.take_displaced(slot);
        }
    }

    /// Takes the displaced server of an entry.
    pub(super) fn take_displaced(&mut self, slot: SlotIndex) -> Option<Box<DisplacedServer>> {
        let displaced = self.entries.slots.cold_mut(slot).displaced.take()?;
        self.entries.displaced_by_id.remove(&displaced.public_id());
        displaced.usage().for_each(|(group, usage)| self.admission.groups.uncharge(group, usage));
        Some(displaced)
    }

    /// Forgets the displaced server with this ID, which has registered elsewhere than at the endpoint `except`, or was
    /// unregistered. Returns whether there was one whose lease has not ended.
    pub(super) fn forget_displaced(&mut self, now: Instant, id: PublicId, except: Option<EndpointKey>) -> bool {
        let Some(&holder) = self.entries.displaced_by_id.get(&id) else { return false };
        let place = self.entries.slots.cold(holder).displaced.as_ref().map(|displaced| displaced.key());
        let reached = self.entries.wheel.tick(now);
        place != except && self.take_displaced(holder).is_some_and(|displaced| displaced.deadline > reached)
    }

    /// Whether this server was displaced from this endpoint.
    pub(super) fn is_displaced_from(&self, id: PublicId, key: EndpointKey) -> bool {
        let holder = self.entries.displaced_by_id.get(&id);
        let displaced = holder.and_then(|&holder| self.entries.slots.cold(holder).displaced.as_ref());
        displaced.is_some_and(|displaced| displaced.key() == key)
    }

    /// Lets the displaced server of an entry return, if the entry has left its endpoint, and forgets it when its lease ends.
    pub(super) fn release_displaced(&mut self, now: Instant, slot: SlotIndex) {
        let Some(displaced) = &self.entries.slots.cold(slot).displaced else { return };
        let is_left = self.entries.slots.at_endpoint(displaced.key()) != Some(slot);
        if (is_left || displaced.deadline <= self.entries.wheel.tick(now))
            && let Some(displaced) = self.take_displaced(slot)
        {
            self.return_displaced(now, *displaced);
        }
    }

    /// Removes an entry that has displaced a proven server and cannot be listed in its place: it was not reached, or cannot be
    /// checked now. If both are checked at the same port, the former server would not be reached either, and does not return.
    pub(super) fn yield_to_displaced(&mut self, now: Instant, slot: SlotIndex, is_check_refused: PerFamily<bool>) {
        let cold = self.entries.slots.cold(slot);
        let is_leased = |displaced: &&DisplacedServer| displaced.deadline > self.entries.wheel.tick(now);
        let Some(displaced) = cold.displaced.as_deref().filter(is_leased) else { return };
        // The endpoint of the other family proves nothing about the one that was taken.
        let family = Family::of(displaced.endpoint.internal.ip);
        let is_unreachable = self.entries.slots.hot(slot).states[family] == EndpointState::Unreachable;
        if is_check_refused[family] || (is_unreachable && displaced.entry.check != cold.check) {
            self.remove(now, slot, UnlistReason::Unreachable);
        }
    }

    /// Lists a displaced server again for the rest of its lease. If it had an endpoint of the other family, that one returns with
    /// its next registration.
    pub(super) fn return_displaced(&mut self, now: Instant, displaced: DisplacedServer) {
        let public_id = displaced.public_id();
        let key = displaced.key();
        let DisplacedServer { id, is_remote, endpoint, deadline, mut entry } = displaced;
        let reached = self.entries.wheel.tick(now);
        // The lease of a server that other nodes heard is kept in the store.
        let deadline = if is_remote { self.remote_deadline() } else { deadline };
        let is_back = self.replication.is_some() && self.find_replicated(public_id).is_some();
        if deadline <= reached || is_back || self.entries.slots.at_endpoint(key).is_some() {
            return self.read_again(public_id);
        }
        if entry.evidence < Evidence::Proven && self.is_full_for(key, endpoint.internal.ip, &entry.server) {
            return;
        }
        let family = Family::of(endpoint.internal.ip);
        entry.replica.is_remote[family] = is_remote;
        let slot = self.add_entry(None, id, entry);
        self.entries.slots.bind(key, slot);
        self.charge_endpoint(slot, endpoint.internal.ip);
        self.entries.slots.cold_mut(slot).endpoints[family] = Some(endpoint);
        let hot = self.entries.slots.hot_mut(slot);
        hot.states[family] = EndpointState::Listed;
        hot.deadlines[family] = deadline;
        self.entries.wheel.schedule(slot, deadline);
        // It lists the server, unless it was banned in the meantime.
        self.review_entry(now, slot);
        if self.entries.slots.get(slot).is_some() {
            // An entry that is displaced again and again must not stay listed without a check.
            self.renew_checks(now, slot);
        }
        // Also if another node removed the server that had taken its place.
        self.read_again(public_id);
    }
}
