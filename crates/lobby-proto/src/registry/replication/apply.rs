//! Applying the states that other nodes report.

use super::{Registry, ReplicatedEndpoint, ReplicatedServer};
use crate::{
    ListedServer, ListingOrigin, PublicId, UnlistReason,
    bans::Candidate,
    entry::{Addr, CheckMethod, ColdEntry, EndpointEntry, EndpointState, Family, PerFamily, ReplicaState},
    index::SlotIndex,
    listed_server::BlockSize,
    registry::{DisplacedServer, Evidence},
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
    /// Applies the state of a server in the store.
    pub fn apply_replicated(&mut self, now: Instant, new: &ReplicatedServer, mode: ApplyMode) -> ApplyOutcome {
        self.without_reporting(|registry| registry.apply(now, new, mode))
    }

    /// Applies the removal of a server from the store.
    pub fn remove_replicated(&mut self, now: Instant, id: PublicId, removal: Removal) {
        self.without_reporting(|registry| registry.apply_removal(now, id, removal));
    }

    /// Makes changes of which the other nodes know, or that they need not know.
    pub(in crate::registry) fn without_reporting<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let was_applying = self.set_applying(true);
        let result = change(self);
        self.set_applying(was_applying);
        result
    }

    fn set_applying(&mut self, is_applying: bool) -> bool {
        let replication = self.replication.as_mut();
        replication.is_some_and(|replication| std::mem::replace(&mut replication.is_applying, is_applying))
    }

    pub(in crate::registry) fn find_replicated(&self, id: PublicId) -> Option<SlotIndex> {
        self.replication.as_ref()?.by_public_id.get(&id).copied()
    }

    fn apply_removal(&mut self, now: Instant, id: PublicId, removal: Removal) {
        if let (Removal::Change(UnlistReason::Unregistered), Some(replication)) = (removal, &mut self.replication) {
            replication.tombstones.insert(now, id);
            replication.remember_departure(now, id);
        }
        // One that was replaced may return here; for any other reason it is gone.
        let is_replaced = |reason| matches!(reason, UnlistReason::Replaced | UnlistReason::Contested);
        if matches!(removal, Removal::Change(reason) if !is_replaced(reason)) {
            self.forget_displaced(now, id, None);
        }
        let Some(slot) = self.find_replicated(id).filter(|_| !self.is_unreported(id)) else { return };
        match removal {
            Removal::Change(reason) => self.remove(now, slot, reason),
            Removal::Lost => self.drop_remote_endpoints(now, slot),
        }
    }

    /// Drops the endpoints that other nodes heard. What this node heard stays, and is reported again if it is listed.
    fn drop_remote_endpoints(&mut self, now: Instant, slot: SlotIndex) {
        let is_live = self.live_local_endpoints(now, slot).iter().any(|is_live| *is_live);
        for family in Family::ALL {
            if self.entries.slots.cold(slot).replica.is_remote[family] {
                self.note_departure(now, slot, family);
                self.drop_endpoint(now, slot, family);
            }
        }
        if self.entries.slots.hot(slot).states == PerFamily::<EndpointState>::default() {
            return self.remove(now, slot, UnlistReason::Expired);
        }
        self.update_list(now, slot, None, UnlistReason::Expired);
        if is_live {
            self.report_again(self.entries.slots.cold(slot).server.public_id());
        }
    }

    fn apply(&mut self, now: Instant, new: &ReplicatedServer, mode: ApplyMode) -> ApplyOutcome {
        let Ok(block) = ListBlock::parse(&new.block) else { return ApplyOutcome::Malformed };
        let Some(mut endpoints) = endpoints(new).filter(|_| new.block.len() <= MAX_BLOCK) else {
            return ApplyOutcome::Malformed;
        };
        for endpoint in endpoints.iter_mut() {
            endpoint.take_if(|endpoint| self.is_private_refused(endpoint));
        }
        if self.is_unreported(new.public_id) {
            return ApplyOutcome::Kept;
        }
        let known = self.find_replicated(new.public_id);
        if known.is_none() && mode == ApplyMode::Snapshot && self.report_departure(now, new.public_id) {
            return ApplyOutcome::Kept;
        }
        let (name, id) = (Some(block.table.get(b"name").unwrap_or_default()), Some(new.public_id));
        let is_banned = |&EndpointEntry { internal, external }: &EndpointEntry| {
            let endpoint = Some((external.into(), block.transport));
            self.ban_for(now, &Candidate { ip: Some(internal.ip), name, id, endpoint }).is_some()
        };
        if endpoints.iter().flatten().next().is_none() || endpoints.iter().flatten().any(is_banned) {
            known.into_iter().for_each(|slot| self.remove(now, slot, UnlistReason::Banned));
            return ApplyOutcome::Forbidden;
        }
        let is_local = known.map(|slot| self.live_local_endpoints(now, slot)).unwrap_or_default();
        if let Some(slot) = known.filter(|_| mode == ApplyMode::Snapshot && is_local.iter().any(|is_local| *is_local)) {
            if !self.has_state(slot, new, &block, &endpoints) {
                self.add_remote_endpoints(now, slot, &block, endpoints, is_local);
                self.report_again(new.public_id);
            }
            return ApplyOutcome::Kept;
        }
        if known.is_none() && self.is_full(&new.block) {
            return ApplyOutcome::Full;
        }
        self.forget_displaced_elsewhere(now, new.public_id, &block, &endpoints);
        let displaced = self.replace_others(now, known, &block, &endpoints);
        let Some(slot) = known.or_else(|| self.create_replica(now, new, &block)) else {
            return ApplyOutcome::Malformed;
        };
        self.move_lobby(now, slot, None, new.list_id);
        let is_moved = self.is_moved(slot, &endpoints);
        let kept =
            PerFamily::from_fn(|family| mode == ApplyMode::Expiry && is_local[family] && endpoints[family].is_none());
        self.set_replicated_endpoints(now, slot, &block, endpoints, kept);
        self.set_replicated_proof(now, slot, new.is_proven, is_moved, displaced);
        self.update_list(now, slot, Some(block), UnlistReason::Expired);
        if kept.iter().any(|kept| *kept) {
            self.report_again(new.public_id);
            return ApplyOutcome::Kept;
        }
        ApplyOutcome::Applied
    }

    /// Removes other servers at these endpoints (L8), as the store has decided it. Returns one that is kept (W45).
    fn replace_others(
        &mut self,
        now: Instant,
        known: Option<SlotIndex>,
        block: &ListBlock<'_>,
        endpoints: &PerFamily<Option<EndpointEntry>>,
    ) -> Option<Box<DisplacedServer>> {
        let mut displaced = None;
        for endpoint in endpoints.iter().flatten() {
            let other = self.entries.slots.at_endpoint((endpoint.external, block.transport));
            if let Some(other) = other.filter(|&slot| Some(slot) != known) {
                let former = self.displace(now, other, Family::of(endpoint.external.ip), UnlistReason::Replaced);
                displaced = displaced.or(former);
            }
        }
        displaced
    }

    /// Forgets that a server was displaced from another endpoint than these.
    fn forget_displaced_elsewhere(
        &mut self,
        now: Instant,
        id: PublicId,
        block: &ListBlock<'_>,
        endpoints: &PerFamily<Option<EndpointEntry>>,
    ) {
        let mut keys = endpoints.iter().flatten().map(|endpoint| (endpoint.external, block.transport));
        if !keys.any(|key| self.is_displaced_from(id, key)) {
            self.forget_displaced(now, id, None);
        }
    }

    /// Whether an entry is about to get an endpoint with another source address or port.
    fn is_moved(&self, slot: SlotIndex, endpoints: &PerFamily<Option<EndpointEntry>>) -> bool {
        let old = &self.entries.slots.cold(slot).endpoints;
        let is_moved = |family: Family| {
            endpoints[family].is_some_and(|new| old[family].is_none_or(|old| old.internal != new.internal))
        };
        Family::ALL.into_iter().any(is_moved)
    }

    /// A server that one node has proven counts as proven at all nodes, until it moves (W90).
    fn set_replicated_proof(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        is_proven: bool,
        is_moved: bool,
        displaced: Option<Box<DisplacedServer>>,
    ) {
        if is_proven {
            self.take_displaced(slot);
            self.prove(slot);
        } else if is_moved {
            self.withdraw_proof(slot);
        }
        self.release_displaced(now, slot);
        if let Some(displaced) = displaced {
            self.keep_displaced(now, slot, displaced);
        }
    }

    /// Adds the endpoints that other nodes heard to an entry whose data and other endpoints stay as they are.
    fn add_remote_endpoints(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        block: &ListBlock<'_>,
        mut endpoints: PerFamily<Option<EndpointEntry>>,
        is_local: PerFamily<bool>,
    ) {
        if self.entries.slots.cold(slot).transport != block.transport {
            return;
        }
        for family in Family::ALL.into_iter().filter(|&family| is_local[family]) {
            endpoints[family] = self.entries.slots.cold(slot).endpoints[family];
        }
        let displaced = self.replace_others(now, Some(slot), block, &endpoints);
        let server = Arc::clone(&self.entries.slots.cold(slot).server);
        self.set_replicated_endpoints(now, slot, &server.block(), endpoints, is_local);
        if let Some(displaced) = displaced {
            self.keep_displaced(now, slot, displaced);
        }
        self.update_list(now, slot, None, UnlistReason::Expired);
    }

    /// Whether an entry has this state already.
    fn has_state(
        &self,
        slot: SlotIndex,
        new: &ReplicatedServer,
        block: &ListBlock<'_>,
        endpoints: &PerFamily<Option<EndpointEntry>>,
    ) -> bool {
        let cold = self.entries.slots.cold(slot);
        let shown = ListBlock { v4: None, v6: None, ..cold.server.block() };
        cold.server.list_id() == new.list_id
            && cold.endpoints == *endpoints
            && shown == ListBlock { v4: None, v6: None, ..*block }
    }

    fn is_full(&self, block: &[u8]) -> bool {
        let caps = &self.config.caps;
        self.entries.slots.len() >= caps.total || self.memory() + BlockSize::of(block).memory() > caps.memory
    }

    /// Creates the entry of a server of which only other nodes know the ID, without endpoints. `None` without a cluster.
    fn create_replica(&mut self, now: Instant, new: &ReplicatedServer, block: &ListBlock<'_>) -> Option<SlotIndex> {
        let id = self.replication.as_ref()?.stand_in_id(new.public_id);
        self.lists.block.clear();
        ListBlock { v4: None, v6: None, ..*block }.emit(&mut self.lists.block);
        let server = ListedServer::new(new.public_id, new.list_id, new.since, &self.lists.block);
        let server = server.with_origin(new.origin, new.door);
        let replica = ReplicaState { has_stand_in_id: true, ..ReplicaState::default() };
        let is_proven = new.is_proven || new.origin != ListingOrigin::Registered;
        let evidence = if is_proven { Evidence::Proven } else { Evidence::Known };
        let cold = ColdEntry::new(block.transport, None, Arc::new(server), self.entries.wheel.tick(now));
        Some(self.add_entry(None, id, ColdEntry { replica, evidence, ..cold }))
    }

    /// Gives an entry these endpoints, except that `kept` ones stay as they are.
    fn set_replicated_endpoints(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        block: &ListBlock<'_>,
        endpoints: PerFamily<Option<EndpointEntry>>,
        kept: PerFamily<bool>,
    ) {
        let transport = block.transport;
        let is_new_transport = self.entries.slots.cold(slot).transport != transport;
        let deadline = self.remote_deadline();
        for family in Family::ALL {
            let state = self.entries.slots.hot(slot).states[family];
            let is_same = self.entries.slots.cold(slot).endpoints[family] == endpoints[family];
            if kept[family] && !is_new_transport {
                continue;
            }
            if is_same && !is_new_transport && state == EndpointState::Listed {
                continue;
            }
            self.drop_endpoint(now, slot, family);
        }
        let cold = self.entries.slots.cold_mut(slot);
        cold.transport = transport;
        let check = CheckMethod::for_server(transport, block.table.get(b"x-query"));
        cold.check = check.filter(|_| cold.server.origin() == ListingOrigin::Registered);
        for family in Family::ALL {
            let Some(endpoint) = endpoints[family] else { continue };
            if self.entries.slots.cold(slot).endpoints[family].is_some() {
                continue;
            }
            self.entries.slots.bind((endpoint.external, transport), slot);
            self.charge_endpoint(slot, endpoint.internal.ip);
            let cold = self.entries.slots.cold_mut(slot);
            cold.endpoints[family] = Some(endpoint);
            cold.replica.is_remote[family] = true;
            cold.check_attempts[family] = None;
            let hot = self.entries.slots.hot_mut(slot);
            hot.states[family] = EndpointState::Listed;
            hot.deadlines[family] = deadline;
            self.entries.wheel.schedule(slot, deadline);
        }
    }
}

/// The endpoints by family; `None` if one is of the wrong family or has port 0.
fn endpoints(new: &ReplicatedServer) -> Option<PerFamily<Option<EndpointEntry>>> {
    let mut endpoints = PerFamily::default();
    for (family, endpoint) in [(Family::V4, new.v4), (Family::V6, new.v6)] {
        if let Some(ReplicatedEndpoint { internal, external, .. }) = endpoint {
            endpoints[family] =
                Some(EndpointEntry { internal: addr(family, internal)?, external: addr(family, external)? });
        }
    }
    Some(endpoints)
}

fn addr(family: Family, addr: SocketAddr) -> Option<Addr> {
    let ip = addr.ip().to_canonical();
    let port = NonZeroU16::new(addr.port())?;
    (Family::of(ip) == family).then_some(Addr { ip, port })
}
