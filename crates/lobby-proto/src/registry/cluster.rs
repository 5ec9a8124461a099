//! The registry as a node of a cluster: what it reports, and the states that other nodes report.

use super::{DisplacedServer, Evidence, LeaseRenewal, LocalChange, Registry, ReplicatedEndpoint, ReplicatedServer};
use crate::{
    ListedServer, PublicId, UnlistReason,
    entry::{Addr, ColdEntry, EndpointEntry, EndpointKey, Endpoints, Family, PerFamily, ReplicaState},
    index::SlotIndex,
};
use rallypoint_wire::lobby::{ListBlock, MAX_BLOCK};
use std::{net::SocketAddr, num::NonZeroU16, sync::Arc, time::Instant};

/// How a state of the store is applied to an entry that this node heard itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMode {
    /// The state is the result of a later change: it replaces what is known here.
    Change,
    /// An endpoint of the server has expired in the store. One that this node heard within its lease stays, and is reported
    /// again.
    Expiry,
    /// The state is part of the whole content of the store, which may have lost changes. A server that this node heard within
    /// its lease is reported again if it differs.
    Snapshot,
}

/// The effect of applying a state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// The entry has that state now.
    Applied,
    /// The entry has a change that was not reported yet, or was heard here and is reported again.
    Kept,
    /// The server is banned here, or has private addresses only, which this node does not accept.
    Forbidden,
    /// The maximum number of servers, or the maximum memory, is reached.
    Full,
    /// The data are not valid.
    Malformed,
}

/// Why a server is no longer in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A node removed it for this reason.
    Change(UnlistReason),
    /// Its leases ended in the store, or the store does not have it. If this node heard it within its lease it stays, and is
    /// reported again.
    Lost,
}

impl Registry {
    /// Makes the registry a node of a cluster. The key must be unpredictable, and need not be the same at the next start.
    /// Intended for an empty registry.
    pub fn enable_replication(&mut self, now: Instant, stand_in_key: [u8; 16]) {
        self.replication.enable(now, stand_in_key, &self.entries);
    }

    /// Sets when remote endpoints expire: the caller moves this ahead as long as it is in contact with the store.
    pub fn set_remote_deadline(&mut self, at: Instant) {
        self.replication.set_remote_deadline(at);
    }

    /// The public IDs of all servers that have a remote endpoint or a listed local one.
    pub fn replicated_ids(&self) -> impl Iterator<Item = PublicId> {
        self.replication.ids()
    }

    /// Whether there are changes to report.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.replication.has_changes()
    }

    /// Takes changes that have not been reported, at most `max` of them, in the order in which they began.
    pub fn take_changes(&mut self, max: usize) -> Vec<LocalChange> {
        self.replication.take_changes(&self.entries, max)
    }

    /// Takes renewed leases in a sweep over all slots that begins again at the end. A call visits at least `min` slots, and as many
    /// as it takes to reach the end with `steps` calls. Returns whether the end was reached.
    pub fn take_renewals(&mut self, steps: usize, min: usize, renewals: &mut Vec<LeaseRenewal>) -> bool {
        self.replication.take_renewals(&self.entries, steps, min, renewals)
    }

    /// Reports the current state of a server again, if this node heard it.
    pub fn report_again(&mut self, id: PublicId) {
        self.replication.report_local(&self.entries, id);
    }

    /// Makes the next sweep report all leases: the store may have lost some.
    pub fn report_all_leases(&mut self) {
        self.replication.report_all_leases();
    }

    /// Applies the state of a server in the store.
    pub fn apply_replicated(&mut self, now: Instant, new: &ReplicatedServer, mode: ApplyMode) -> ApplyOutcome {
        self.without_reporting(|registry| registry.apply(now, new, mode))
    }

    /// Makes changes of which the other nodes know, or that they need not know.
    pub(super) fn without_reporting<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let was_applying = self.replication.set_applying(true);
        let result = change(self);
        self.replication.set_applying(was_applying);
        result
    }

    /// Applies the removal of a server from the store.
    pub fn remove_replicated(&mut self, now: Instant, id: PublicId, removal: Removal) {
        if let Removal::Change(UnlistReason::Unregistered) = removal {
            self.replication.bury(now, id);
        }
        // One that was replaced may return here; for any other reason it is gone.
        let is_replaced = |reason| matches!(reason, UnlistReason::Replaced | UnlistReason::Contested);
        if matches!(removal, Removal::Change(reason) if !is_replaced(reason)) {
            self.entries.forget_displaced(now, id, &[]);
        }
        let Some(slot) = self.replication.find(id).filter(|_| !self.replication.is_unreported(id)) else { return };
        self.without_reporting(|registry| match removal {
            Removal::Change(reason) => registry.remove(now, slot, reason),
            Removal::Lost => registry.drop_remote_endpoints(now, slot),
        });
    }

    /// Drops the endpoints that other nodes heard. What this node heard stays, and is reported again if it is listed.
    fn drop_remote_endpoints(&mut self, now: Instant, slot: SlotIndex) {
        let is_live = self.entries.live_local_endpoints(now, slot) != PerFamily::default();
        for family in Family::ALL {
            if self.entries.cold(slot).replica.is_remote[family] {
                self.admission.note_departure(now, &self.entries, slot, family);
                self.entries.drop_endpoint(now, slot, family);
            }
        }
        if self.entries.cold(slot).endpoints == Endpoints::default() {
            return self.remove(now, slot, UnlistReason::Expired);
        }
        self.update_list(now, slot, None, UnlistReason::Expired);
        if is_live {
            self.report_again(self.entries.cold(slot).server.public_id());
        }
    }

    fn apply(&mut self, now: Instant, new: &ReplicatedServer, mode: ApplyMode) -> ApplyOutcome {
        let id = new.public_id;
        let Some((block, mut endpoints)) = parse(new) else { return ApplyOutcome::Malformed };
        for endpoint in endpoints.iter_mut() {
            endpoint.take_if(|endpoint| self.config.refuses_as_private(endpoint));
        }
        if self.replication.is_unreported(id) {
            return ApplyOutcome::Kept;
        }
        let known = self.replication.find(id);
        if known.is_none() && mode == ApplyMode::Snapshot && self.replication.report_departure(now, id) {
            return ApplyOutcome::Kept;
        }
        if endpoints == Endpoints::default() || self.admission.bans_replica(now, id, &block, &endpoints) {
            known.into_iter().for_each(|slot| self.remove(now, slot, UnlistReason::Banned));
            return ApplyOutcome::Forbidden;
        }
        let is_local = known.map(|slot| self.entries.live_local_endpoints(now, slot)).unwrap_or_default();
        let heard_here = known.filter(|_| mode == ApplyMode::Snapshot && is_local != PerFamily::default());
        if let Some(slot) = heard_here {
            if !self.entries.shows(slot, new.list_id, &block, &endpoints) {
                self.add_remote_endpoints(now, slot, &block, endpoints, is_local);
                self.report_again(id);
            }
            return ApplyOutcome::Kept;
        }
        if known.is_none() && !self.admission.has_room_for_replica(&self.entries, &new.block) {
            return ApplyOutcome::Full;
        }
        let keys = keys(&block, &endpoints);
        self.entries.forget_displaced(now, id, &keys);
        let displaced = self.replace_others(now, known, &keys);
        let Some(slot) = known.or_else(|| self.create_replica(now, new, &block)) else {
            return ApplyOutcome::Malformed;
        };
        self.move_list(now, slot, None, new.list_id);
        let old = self.entries.cold(slot).endpoints;
        let kept =
            PerFamily::from_fn(|family| mode == ApplyMode::Expiry && is_local[family] && endpoints[family].is_none());
        let deadline = self.replication.remote_deadline();
        self.entries.set_remote_endpoints(now, slot, &block, endpoints, kept, deadline);
        // A server that one node has proven counts as proven at all nodes, until it moves (W90).
        let is_moved = |family: Family| {
            endpoints[family].is_some_and(|new| old[family].is_none_or(|old| old.internal != new.internal))
        };
        if new.is_proven {
            self.entries.take_displaced(slot);
            self.prove(slot);
        } else if Family::ALL.into_iter().any(is_moved) {
            self.entries.withdraw_proof(slot);
        }
        self.release_displaced(now, slot);
        displaced.into_iter().for_each(|displaced| self.keep_displaced(now, slot, displaced));
        self.update_list(now, slot, Some(block), UnlistReason::Expired);
        if kept != PerFamily::default() {
            self.report_again(id);
            return ApplyOutcome::Kept;
        }
        ApplyOutcome::Applied
    }

    /// Removes other servers at these endpoints (L8), as the store has decided it. Returns one that is kept (W45).
    fn replace_others(
        &mut self,
        now: Instant,
        known: Option<SlotIndex>,
        keys: &[EndpointKey],
    ) -> Option<Box<DisplacedServer>> {
        let mut displaced = None;
        for key in keys {
            let other = self.entries.at_endpoint(*key).filter(|&slot| Some(slot) != known);
            let former =
                other.and_then(|other| self.displace(now, other, Family::of(key.0.ip), UnlistReason::Replaced));
            displaced = displaced.or(former);
        }
        displaced
    }

    /// Adds the endpoints that other nodes heard to an entry whose data and other endpoints stay as they are.
    fn add_remote_endpoints(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        block: &ListBlock<'_>,
        mut endpoints: Endpoints,
        is_local: PerFamily<bool>,
    ) {
        if self.entries.cold(slot).transport != block.transport {
            return;
        }
        for family in Family::ALL.into_iter().filter(|&family| is_local[family]) {
            endpoints[family] = self.entries.cold(slot).endpoints[family];
        }
        let keys = keys(block, &endpoints);
        let displaced = self.replace_others(now, Some(slot), &keys);
        let server = Arc::clone(&self.entries.cold(slot).server);
        let deadline = self.replication.remote_deadline();
        self.entries.set_remote_endpoints(now, slot, &server.block(), endpoints, is_local, deadline);
        displaced.into_iter().for_each(|displaced| self.keep_displaced(now, slot, displaced));
        self.update_list(now, slot, None, UnlistReason::Expired);
    }

    /// Creates the entry of a server of which only other nodes know the ID, without endpoints. `None` without a cluster.
    fn create_replica(&mut self, now: Instant, new: &ReplicatedServer, block: &ListBlock<'_>) -> Option<SlotIndex> {
        let id = self.replication.stand_in_id(new.public_id)?;
        let server = ListedServer::new(new.public_id, new.list_id, new.since, block);
        let server = server.with_origin(new.origin, new.door);
        let evidence = if new.is_proven { Evidence::Proven } else { Evidence::Known };
        let replica = ReplicaState { has_stand_in_id: true, ..ReplicaState::default() };
        let entry = ColdEntry { replica, ..ColdEntry::new(server, evidence, self.clock.tick(now)) };
        let slot = self.entries.insert(now, None, id, entry);
        self.replication.index(slot, new.public_id);
        Some(slot)
    }
}

/// The data of a server, and its endpoints; `None` if they are not valid: an endpoint is of the wrong family or has port 0.
fn parse(new: &ReplicatedServer) -> Option<(ListBlock<'_>, Endpoints)> {
    let block = ListBlock::parse(&new.block).ok().filter(|_| new.block.len() <= MAX_BLOCK)?;
    let mut endpoints = Endpoints::default();
    for (family, endpoint) in [(Family::V4, new.v4), (Family::V6, new.v6)] {
        if let Some(ReplicatedEndpoint { internal, external, .. }) = endpoint {
            endpoints[family] =
                Some(EndpointEntry { internal: addr(family, internal)?, external: addr(family, external)? });
        }
    }
    Some((block, endpoints))
}

fn keys(block: &ListBlock<'_>, endpoints: &Endpoints) -> Vec<EndpointKey> {
    endpoints.iter().flatten().map(|endpoint| (endpoint.external, block.transport)).collect()
}

fn addr(family: Family, addr: SocketAddr) -> Option<Addr> {
    let ip = addr.ip().to_canonical();
    let port = NonZeroU16::new(addr.port())?;
    (Family::of(ip) == family).then_some(Addr { ip, port })
}
