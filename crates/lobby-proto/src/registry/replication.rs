//! The registry as a node of a cluster: changes that it reports to the other nodes, and states that it applies.
//!
//! Every node has all servers. A server's endpoints are *local* if this node heard their registrations, and *remote* if another
//! node did. Local leases are renewed by registrations as ever; the leases of remote endpoints are kept in the store that the
//! nodes share, so that here they end only when the store says so, or when it has been out of reach for too long
//! ([`Registry::set_remote_deadline`]).
//!
//! A refresh does nothing for the cluster: renewed leases are collected by a sweep over all entries
//! ([`Registry::take_renewals`]). Without a cluster, nothing of this is allocated.

mod outgoing;

pub use outgoing::{LeaseRenewal, LocalChange};

use super::{
    Entries,
    tombstones::{REORDERING_TIME, Tombstones},
};
use crate::{
    Config, ListingOrigin, PublicId, UnlistReason,
    doors::Door,
    entry::{ColdEntry, Family},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
    wheel::{Clock, Tick},
};
use outgoing::{Outgoing, local_part};
use rallypoint_wire::lobby::{ListId, ServerId, Transport};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    hash::Hasher,
    net::SocketAddr,
    sync::Arc,
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
    /// The list in which it is listed.
    pub list_id: ListId,
    /// How it came into the list.
    pub origin: ListingOrigin,
    /// The transport of its endpoints.
    pub transport: Transport,
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

/// What a registry that is a node of a cluster reports to the other nodes, and knows of them. Without a cluster it is empty, and
/// nothing is reported.
#[derive(Debug)]
pub(super) struct Replication {
    config: Arc<Config>,
    clock: Clock,
    /// Key of the stand-ins for server IDs that only other nodes know; `None` without a cluster.
    stand_in_key: Option<[u8; 16]>,
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
    pub fn new(config: &Arc<Config>, keyed: KeyedHash, clock: Clock) -> Self {
        Self {
            config: Arc::clone(config),
            clock,
            stand_in_key: None,
            by_public_id: keyed.map(),
            tombstones: Tombstones::new(keyed, REORDERING_TIME),
            departures: Tombstones::new(keyed, config.lease + DEPARTURE_MARGIN),
            outgoing: Outgoing::new(keyed),
            remote_deadline: Tick::default(),
            is_applying: false,
        }
    }

    /// Makes the registry a node of a cluster, which reports all its servers.
    pub fn enable(&mut self, now: Instant, stand_in_key: [u8; 16], entries: &Entries) {
        self.stand_in_key = Some(stand_in_key);
        self.remote_deadline = self.clock.deadline(now, self.config.lease);
        for (slot, entry) in entries.iter() {
            let id = entry.server.public_id();
            self.index(slot, id);
            self.report(id);
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.stand_in_key.is_some()
    }

    pub fn set_config(&mut self, config: &Arc<Config>) {
        self.config = Arc::clone(config);
    }

    /// Sets when remote endpoints expire.
    pub fn set_remote_deadline(&mut self, at: Instant) {
        self.remote_deadline = self.clock.tick(at);
    }

    /// When remote endpoints expire.
    pub fn remote_deadline(&self) -> Tick {
        self.remote_deadline
    }

    /// The time until which an endpoint whose local lease has ended is held, because the store may know a later one.
    pub fn holds_until(&self, now: Instant) -> Option<Tick> {
        (self.is_enabled() && self.remote_deadline > self.clock.tick(now)).then_some(self.remote_deadline)
    }

    /// The public IDs of all entries.
    pub fn ids(&self) -> impl Iterator<Item = PublicId> {
        self.by_public_id.keys().copied()
    }

    /// The entry of a server.
    pub fn find(&self, id: PublicId) -> Option<SlotIndex> {
        self.by_public_id.get(&id).copied()
    }

    /// Adds a new entry.
    pub fn index(&mut self, slot: SlotIndex, id: PublicId) {
        if self.is_enabled() {
            self.by_public_id.insert(id, slot);
            self.departures.remove(id);
        }
    }

    /// Forgets an entry that is removed.
    pub fn forget(&mut self, id: PublicId) {
        self.by_public_id.remove(&id);
    }

    /// The ID under which an entry of another node is kept. It cannot be guessed: its owner could remove the server.
    pub fn stand_in_id(&self, id: PublicId) -> Option<ServerId> {
        let mut hasher = SipHasher24::new_with_key(&self.stand_in_key?);
        hasher.write(id.as_bytes());
        Some(ServerId::from_bytes(hasher.finish128().as_bytes()))
    }

    /// Whether a server has just unregistered at another node (L11).
    pub fn is_buried(&self, now: Instant, id: PublicId) -> bool {
        self.tombstones.contains(now, id)
    }

    /// Records that a server has unregistered at another node.
    pub fn bury(&mut self, now: Instant, id: PublicId) {
        self.tombstones.insert(now, id);
        self.remember_departure(now, id);
    }

    fn remember_departure(&mut self, now: Instant, id: PublicId) {
        if self.departures.queued() < MAX_DEPARTURES {
            self.departures.insert(now, id);
        }
    }

    pub fn forget_expired(&mut self, now: Instant) {
        self.tombstones.forget_expired(now);
        self.departures.forget_expired(now);
    }

    /// Sets whether changes are those of other nodes, which are not reported back. Returns what it was before.
    pub fn set_applying(&mut self, is_applying: bool) -> bool {
        std::mem::replace(&mut self.is_applying, is_applying)
    }

    fn report_removal(&mut self, id: PublicId, reason: UnlistReason, at: Instant) {
        if self.is_enabled() {
            self.outgoing.note(id, Some((reason, at + self.config.lease)), &self.by_public_id);
        }
    }

    /// Reports the state of a server if this node heard it, or else has the store's state of it read again.
    pub fn report(&mut self, id: PublicId) {
        if self.is_enabled() {
            self.outgoing.note(id, None, &self.by_public_id);
        }
    }

    /// Reports that a listed server has changed, unless other nodes know it.
    pub fn note_change(&mut self, id: PublicId) {
        if !self.is_applying {
            self.report(id);
        }
    }

    /// Reports the current state of a server again, if this node heard it.
    pub fn report_local(&mut self, entries: &Entries, id: PublicId) {
        let slot = self.find(id);
        let is_local = |slot| Family::ALL.into_iter().any(|family| entries.local_endpoint(slot, family).is_some());
        if slot.is_some_and(is_local) {
            self.report(id);
        }
    }

    /// Reports that an entry has left the list, unless other nodes know it.
    pub fn note_removal(&mut self, now: Instant, entry: &ColdEntry, reason: UnlistReason) {
        let is_heard = |family| entry.endpoints[family].is_some() && !entry.replica.is_remote[family];
        let is_reported = match reason {
            _ if self.is_applying || !self.is_enabled() => false,
            // The owner, or a new server at the same endpoint, has contacted this node.
            UnlistReason::Unregistered | UnlistReason::Replaced | UnlistReason::Contested => true,
            UnlistReason::Moved
            | UnlistReason::Unreachable
            | UnlistReason::Banned
            | UnlistReason::Unwatched
            | UnlistReason::Evicted => Family::ALL.into_iter().any(is_heard),
            // The store decides about leases.
            UnlistReason::Expired => false,
        };
        if is_reported {
            let id = entry.server.public_id();
            if reason == UnlistReason::Unregistered {
                self.remember_departure(now, id);
            }
            self.report_removal(id, reason, now);
        }
    }

    /// Reports that a server without an entry here has unregistered.
    pub fn note_unregistered(&mut self, now: Instant, id: PublicId) {
        self.report_removal(id, UnlistReason::Unregistered, now);
    }

    /// Reports again that a server has unregistered, if it has and is not known to have registered since: the store still has
    /// it, because it was restored from a backup. If it has registered later than that, the store keeps it, and this node gets
    /// its state.
    pub fn report_departure(&mut self, now: Instant, id: PublicId) -> bool {
        let Some(at) = self.departures.unregistered_at(now, id) else { return false };
        self.report_removal(id, UnlistReason::Unregistered, at);
        true
    }

    /// Whether a change of a server has not been taken yet. It is later than anything that the store can tell about the server.
    pub fn is_unreported(&self, id: PublicId) -> bool {
        self.outgoing.contains(id)
    }

    /// Whether there are changes to report.
    pub fn has_changes(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Takes changes that have not been reported, at most `max` of them, in the order in which they began.
    pub fn take_changes(&mut self, entries: &Entries, max: usize) -> Vec<LocalChange> {
        let take = || {
            let (public_id, removal) = self.outgoing.pop()?;
            let listed = self.by_public_id.get(&public_id).copied();
            if let Some((slot, server)) = listed.and_then(|slot| Some((slot, local_part(entries, self.clock, slot)?))) {
                *self.outgoing.reported_mut(slot) = entries.hot(slot).deadlines;
                return Some(LocalChange::Put(Box::new(server)));
            }
            let remove = |(reason, deadline)| LocalChange::Remove { public_id, reason, deadline };
            Some(removal.map_or(LocalChange::Reread(public_id), remove))
        };
        std::iter::from_fn(take).take(max).collect()
    }

    /// Takes renewed leases in a sweep over all slots: see [`Registry::take_renewals`](super::Registry::take_renewals).
    pub fn take_renewals(
        &mut self,
        entries: &Entries,
        steps: usize,
        min: usize,
        renewals: &mut Vec<LeaseRenewal>,
    ) -> bool {
        !self.is_enabled() || self.outgoing.take_renewals(entries, self.clock, steps, min, renewals)
    }

    /// Makes the next sweep report all leases.
    pub fn report_all_leases(&mut self) {
        self.outgoing.report_all_leases();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        registry::entries::tests::{entries, entry_at},
        registry::replication::outgoing::LocalChange,
    };

    /// A node that has one server, whose listing it has reported.
    fn node() -> (Replication, Entries, SlotIndex, Instant) {
        let (mut entries, clock, now) = entries();
        let slot = entry_at(&mut entries, now, 1);
        let mut replication = Replication::new(&Arc::default(), KeyedHash::new(7), clock);
        replication.enable(now, [7; 16], &entries);
        assert_eq!(replication.take_changes(&entries, 9).len(), 1);
        (replication, entries, slot, now)
    }

    #[test]
    fn without_a_cluster_nothing_is_reported() {
        let (entries, clock, now) = entries();
        let mut replication = Replication::new(&Arc::default(), KeyedHash::new(7), clock);
        let id = PublicId::from_bytes([7; 16]);
        replication.note_change(id);
        replication.note_unregistered(now, id);
        assert!(!replication.has_changes() && replication.take_changes(&entries, 9).is_empty());
        assert_eq!(
            (replication.find(id), replication.stand_in_id(id), replication.holds_until(now)),
            (None, None, None)
        );
    }

    #[test]
    fn changes_of_other_nodes_are_not_reported_back() {
        let (mut replication, entries, slot, now) = node();
        let entry = entries.cold(slot);
        let id = entry.server.public_id();
        assert!(!replication.set_applying(true));
        replication.note_change(id);
        replication.note_removal(now, entry, UnlistReason::Unregistered);
        assert!(!replication.has_changes());
        assert!(replication.set_applying(false));
        replication.note_change(id);
        assert!(replication.is_unreported(id));
    }

    #[test]
    fn the_store_decides_about_leases_and_the_owner_about_unregistrations() {
        let (mut replication, entries, slot, now) = node();
        let entry = entries.cold(slot);
        replication.note_removal(now, entry, UnlistReason::Expired);
        assert!(!replication.has_changes());
        replication.note_removal(now, entry, UnlistReason::Unregistered);
        replication.forget(entry.server.public_id());
        let changes = replication.take_changes(&entries, 9);
        assert!(matches!(changes[..], [LocalChange::Remove { reason: UnlistReason::Unregistered, .. }]), "{changes:?}");
        assert!(replication.report_departure(now, entry.server.public_id()), "a store restored from a backup has it");
    }
}
