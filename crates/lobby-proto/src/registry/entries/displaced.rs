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

use super::{Entries, Group, Usage};
use crate::{
    ListedServer, PublicId,
    entry::{ColdEntry, EndpointEntry, EndpointKey, EndpointState, Family, PerFamily, ReplicaState},
    index::SlotIndex,
    registry::Evidence,
    wheel::Tick,
};
use rallypoint_wire::lobby::ServerId;
use std::{sync::Arc, time::Instant};

/// A server that was replaced by another one, which nothing has proven.
#[derive(Debug)]
pub(crate) struct DisplacedServer {
    pub id: ServerId,
    /// Whether another node of a cluster heard it.
    pub is_remote: bool,
    /// The endpoint that was taken.
    pub endpoint: EndpointEntry,
    /// When its lease ends.
    pub deadline: Tick,
    /// Its entry, without endpoints.
    pub entry: ColdEntry,
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

    /// The key of the endpoint that was taken.
    pub fn key(&self) -> EndpointKey {
        (self.endpoint.external, self.entry.transport)
    }
}

impl Entries {
    /// The entry that has displaced a server.
    fn holder(&self, id: PublicId) -> Option<(SlotIndex, &DisplacedServer)> {
        let holder = *self.displaced.get(&id)?;
        Some((holder, self.cold(holder).displaced.as_deref()?))
    }

    /// Whether an entry is kept when its endpoint is taken. A server that cannot be checked has nothing but its registrations to
    /// prove itself. In a cluster it is not kept: the other nodes do not know how often it has registered.
    pub fn is_kept_when_displaced(&self, slot: SlotIndex, is_clustered: bool) -> bool {
        let cold = self.cold(slot);
        let has_no_check = cold.check.is_none() && !is_clustered;
        cold.evidence == Evidence::Proven || (has_no_check && self.has_returned(slot))
    }

    /// An entry as it is kept when its endpoint of one family is taken; `None` if it is not.
    pub fn to_displaced(&self, slot: SlotIndex, taken: Family, is_clustered: bool) -> Option<Box<DisplacedServer>> {
        let hot = self.hot(slot);
        let cold = self.cold(slot);
        let is_kept = hot.states[taken] == EndpointState::Listed && self.is_kept_when_displaced(slot, is_clustered);
        let endpoint = cold.endpoints[taken].filter(|_| is_kept)?;
        let entry = ColdEntry {
            serial: 0,
            endpoints: PerFamily::default(),
            check_attempts: PerFamily::default(),
            server: Arc::clone(&cold.server),
            position: None,
            displaced: None,
            replaced: None,
            replica: ReplicaState { is_remote: PerFamily::default(), ..cold.replica },
            ..*cold
        };
        let is_remote = cold.replica.is_remote[taken];
        Some(Box::new(DisplacedServer { id: hot.id, is_remote, endpoint, deadline: hot.deadlines[taken], entry }))
    }

    /// Keeps a displaced server, with its place, with the entry that has taken its endpoint.
    pub fn keep_displaced(&mut self, slot: SlotIndex, displaced: Box<DisplacedServer>) {
        displaced.usage().for_each(|(group, usage)| self.groups.charge(group, usage));
        self.displaced.insert(displaced.public_id(), slot);
        self.slots.cold_mut(slot).displaced = Some(displaced);
    }

    /// Takes the displaced server of an entry.
    pub fn take_displaced(&mut self, slot: SlotIndex) -> Option<Box<DisplacedServer>> {
        let displaced = self.slots.cold_mut(slot).displaced.take()?;
        self.displaced.remove(&displaced.public_id());
        displaced.usage().for_each(|(group, usage)| self.groups.uncharge(group, usage));
        Some(displaced)
    }

    /// Takes the displaced server of an entry that has left its endpoint, or whose lease has ended.
    pub fn take_released(&mut self, now: Instant, slot: SlotIndex) -> Option<Box<DisplacedServer>> {
        let displaced = self.cold(slot).displaced.as_ref()?;
        let is_left = self.at_endpoint(displaced.key()) != Some(slot);
        if is_left || displaced.deadline <= self.clock.tick(now) { self.take_displaced(slot) } else { None }
    }

    /// Forgets the displaced server with this ID, which has registered elsewhere than at these endpoints, or was unregistered.
    /// Returns whether there was one whose lease has not ended.
    pub fn forget_displaced(&mut self, now: Instant, id: PublicId, except: &[EndpointKey]) -> bool {
        let reached = self.clock.tick(now);
        let elsewhere = self.holder(id).filter(|(_, displaced)| !except.contains(&displaced.key()));
        let Some(holder) = elsewhere.map(|(holder, _)| holder) else { return false };
        self.take_displaced(holder).is_some_and(|displaced| displaced.deadline > reached)
    }

    /// Gives a server that returns in place of itself what it had before it was displaced.
    pub fn give_back(&mut self, slot: SlotIndex, displaced: &DisplacedServer) {
        let cold = self.slots.cold_mut(slot);
        let server = cold.server.updated(cold.server.list_id, &cold.server.block);
        cold.server = Arc::new(server.with_since(displaced.server().since));
        cold.admitted = displaced.entry.admitted;
    }
}
