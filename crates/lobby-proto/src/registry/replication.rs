//! The registry as a node of a cluster: changes that it reports to the other nodes, and states that it applies.
//!
//! Every node has all servers. A server's endpoints are *local* if this node heard their registrations, and *remote* if another
//! node did. Local leases are renewed by registrations as ever; the leases of remote endpoints are kept in the store that the
//! nodes share, so that here they end only when the store says so, or when it has been out of reach for too long
//! ([`Registry::set_remote_deadline`]).
//!
//! A refresh does nothing for the cluster: renewed leases are collected by a sweep over all entries
//! ([`Registry::take_renewals`]). Without a cluster, nothing of this is allocated.

mod apply;
mod outgoing;

pub use apply::{ApplyMode, ApplyOutcome, Removal};
pub use outgoing::{LeaseRenewal, LocalChange};

use super::{
    Registry,
    tombstones::{REORDERING_TIME, Tombstones},
};
use crate::{
    ListingOrigin, PublicId,
    doors::Door,
    entry::{EndpointState, Family, PerFamily},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
    wheel::Tick,
};
use outgoing::Outgoing;
use rallypoint_wire::lobby::{ListId, ServerId};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    hash::Hasher,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long after its lease would have ended a server that has unregistered is remembered: the store lets leases end later after an
/// outage.
const DEPARTURE_MARGIN: Duration = Duration::from_secs(30);

/// Maximum number of servers that have unregistered and are remembered. Without those beyond it, a store that is restored from
/// a backup lists a server that has ended until its lease ends.
const MAX_DEPARTURES: usize = 100_000;

/// A server as the nodes of a cluster exchange it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedServer {
    /// Its public ID; the secret one stays with the node that heard it (L13).
    pub public_id: PublicId,
    /// The lobby in which it is listed.
    pub list_id: ListId,
    /// How it came into the list.
    pub origin: ListingOrigin,
    /// The door through which it came, if this version has that door.
    pub door: Option<&'static Door>,
    /// Whether it has replied to a check or query of a node at its endpoints (W45).
    pub is_proven: bool,
    /// When it first registered.
    pub since: Instant,
    /// Its block of the list reply, without the length field. Its endpoints are ignored.
    pub block: Vec<u8>,
    /// Its IPv4 endpoint.
    pub v4: Option<ReplicatedEndpoint>,
    /// Its IPv6 endpoint.
    pub v6: Option<ReplicatedEndpoint>,
}

/// An endpoint of a [`ReplicatedServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicatedEndpoint {
    /// The source address of the registration, with the registered port.
    pub internal: SocketAddr,
    /// The listed address: the same, unless the address map of the accepting node changed it.
    pub external: SocketAddr,
    /// When its lease ends. Ignored in what other nodes heard: their leases are kept in the store.
    pub deadline: Instant,
}

/// The state of a registry that is a node of a cluster.
#[derive(Debug)]
pub(super) struct Replication {
    /// Key of the stand-ins for server IDs that only other nodes know.
    stand_in_key: [u8; 16],
    by_public_id: KeyedMap<PublicId, SlotIndex>,
    /// Servers that have just unregistered, at any node.
    tombstones: Tombstones<PublicId>,
    /// Servers that have unregistered, at any node, and whose leases have not ended: a store that was restored from a backup still
    /// has them.
    departures: Tombstones<PublicId>,
    outgoing: Outgoing,
    /// When remote endpoints expire unless the deadline is moved.
    remote_deadline: Tick,
    /// Whether a change of another node is being applied, which is not reported back.
    is_applying: bool,
}

impl Replication {
    /// Remembers that a server has unregistered.
    fn remember_departure(&mut self, now: Instant, id: PublicId) {
        if self.departures.queued() < MAX_DEPARTURES {
            self.departures.insert(now, id);
        }
    }

    /// Forgets an entry that is removed.
    pub fn forget(&mut self, id: PublicId) {
        self.by_public_id.remove(&id);
    }

    /// The ID under which an entry of another node is kept. It cannot be guessed: its owner could remove the server.
    fn stand_in_id(&self, id: PublicId) -> ServerId {
        let mut hasher = SipHasher24::new_with_key(&self.stand_in_key);
        hasher.write(id.as_bytes());
        ServerId::from_bytes(hasher.finish128().as_bytes())
    }
}

impl Registry {
    /// Makes the registry a node of a cluster. The key must be unpredictable, and need not be the same at the next start.
    /// Intended for an empty registry.
    pub fn enable_replication(&mut self, now: Instant, stand_in_key: [u8; 16]) {
        let keyed = KeyedHash::new(self.keys.tables);
        self.replication = Some(Box::new(Replication {
            stand_in_key,
            by_public_id: keyed.map(),
            tombstones: Tombstones::new(keyed, REORDERING_TIME),
            departures: Tombstones::new(keyed, self.config.lease + DEPARTURE_MARGIN),
            outgoing: Outgoing::new(keyed),
            remote_deadline: self.entries.wheel.deadline(now, self.config.lease),
            is_applying: false,
        }));
        for slot in SlotIndex::FIRST.until(self.entries.slots.end()) {
            if self.entries.slots.get(slot).is_some() {
                self.index_public_id(slot);
                self.note_change(slot);
            }
        }
    }

    /// Sets when remote endpoints expire: the caller moves this ahead as long as it is in contact with the store.
    pub fn set_remote_deadline(&mut self, at: Instant) {
        if let Some(replication) = &mut self.replication {
            replication.remote_deadline = self.entries.wheel.tick(at);
        }
    }

    /// When remote endpoints expire.
    pub(super) fn remote_deadline(&self) -> Tick {
        self.replication.as_ref().map(|replication| replication.remote_deadline).unwrap_or_default()
    }

    /// The public IDs of all servers that have a remote endpoint or a listed local one.
    pub fn replicated_ids(&self) -> impl Iterator<Item = PublicId> {
        let replication = self.replication.iter();
        replication.flat_map(|replication| replication.by_public_id.keys().copied())
    }

    /// The entry of a server, by its own ID or, if only other nodes heard it so far, by its public ID.
    pub(super) fn find_or_adopt(&mut self, id: ServerId) -> Option<SlotIndex> {
        let known = self.entries.slots.find(id);
        if known.is_some() || self.replication.is_none() {
            return known;
        }
        let public_id = self.public_id(id);
        let slot = *self.replication.as_ref()?.by_public_id.get(&public_id)?;
        self.entries.slots.set_id(slot, id);
        self.entries.slots.cold_mut(slot).replica.has_stand_in_id = false;
        Some(slot)
    }

    /// Adds a new entry to the index of public IDs.
    pub(super) fn index_public_id(&mut self, slot: SlotIndex) {
        if let Some(replication) = &mut self.replication {
            let id = self.entries.slots.cold(slot).server.public_id();
            replication.by_public_id.insert(id, slot);
            replication.departures.remove(id);
        }
    }

    /// Whether a server has just unregistered at another node (L11).
    pub(super) fn is_unregistered_elsewhere(&self, now: Instant, id: ServerId) -> bool {
        let tombstones = self.replication.as_ref().map(|replication| &replication.tombstones);
        tombstones.is_some_and(|tombstones| tombstones.len() > 0 && tombstones.contains(now, self.public_id(id)))
    }

    pub(super) fn forget_replicated_tombstones(&mut self, now: Instant) {
        if let Some(replication) = &mut self.replication {
            replication.tombstones.forget_expired(now);
            replication.departures.forget_expired(now);
        }
    }

    /// Whether a listed endpoint whose local lease has ended stays because the store may know a later one. It is remote from
    /// now on.
    pub(super) fn is_held_by_cluster(&mut self, slot: SlotIndex, family: Family, reached: Tick) -> bool {
        let Some(replication) = &self.replication else { return false };
        let deadline = replication.remote_deadline;
        let hot = self.entries.slots.hot_mut(slot);
        if deadline <= reached || hot.states[family] != EndpointState::Listed {
            return false;
        }
        hot.deadlines[family] = deadline;
        // The next registration is processed in full, and makes the endpoint local again.
        hot.fingerprints[family] = 0;
        self.entries.slots.cold_mut(slot).replica.is_remote[family] = true;
        true
    }

    /// The listed endpoints that this node heard within their leases.
    fn live_local_endpoints(&self, now: Instant, slot: SlotIndex) -> PerFamily<bool> {
        let reached = self.entries.wheel.tick(now);
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        PerFamily::from_fn(|family| {
            hot.states[family] == EndpointState::Listed
                && !cold.replica.is_remote[family]
                && hot.deadlines[family] > reached
        })
    }
}
