//! Reports to the other nodes: changes of servers that register here, and renewed leases.

use super::{Registry, ReplicatedEndpoint, ReplicatedServer};
use crate::{
    PublicId, UnlistReason,
    entry::{EndpointState, Family, PerFamily},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
    registry::Evidence,
    wheel::Tick,
};
use rallypoint_wire::lobby::{ListBlock, ServerId};
use std::{
    collections::{VecDeque, hash_map::Entry},
    time::Instant,
};

/// Maximum number of removals that are kept while they cannot be reported to the other nodes. A server whose removal is dropped
/// leaves their lists when its lease ends.
const MAX_REMOVALS: usize = 65_536;

/// A change of the list that a node reports to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalChange {
    /// A server is listed or has changed. It has only the endpoints that this node heard itself.
    Put(Box<ReplicatedServer>),
    /// A server has left the list.
    Remove {
        /// Its public ID.
        public_id: PublicId,
        /// Why it left.
        reason: UnlistReason,
        /// When a lease would end that had been renewed at that time: a server that was heard later stays.
        deadline: Instant,
    },
    /// A server has changed, but by now this node has nothing to report about it. States of the store that were not applied in
    /// the meantime have to be read again.
    Reread(PublicId),
}

/// A lease that a registration has renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// The server.
    pub public_id: PublicId,
    /// Whether it is the lease of its IPv6 endpoint.
    pub is_ipv6: bool,
    /// Its new end.
    pub deadline: Instant,
}

/// Changes and leases that have not been reported yet.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Changes since they were last taken; a removal with its reason and deadline.
    changed: KeyedMap<PublicId, Option<(UnlistReason, Instant)>>,
    /// The changed servers in the order of the first change of each.
    order: VecDeque<PublicId>,
    removals: usize,
    /// By slot: the leases that were reported last.
    reported: Vec<PerFamily<Tick>>,
    /// Where the sweep for renewed leases continues.
    next: SlotIndex,
}

impl Outgoing {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { changed: keyed.map(), order: VecDeque::new(), removals: 0, reported: Vec::new(), next: SlotIndex::FIRST }
    }

    /// Notes a change of a server, or its removal. `listed` has all servers of the registry.
    fn note(&mut self, id: PublicId, removal: Option<(UnlistReason, Instant)>, listed: &KeyedMap<PublicId, SlotIndex>) {
        let is_removal = removal.is_some();
        if is_removal && self.removals >= MAX_REMOVALS {
            return;
        }
        let was_removal = match self.changed.entry(id) {
            Entry::Occupied(mut known) => known.insert(removal).is_some(),
            Entry::Vacant(vacant) => {
                vacant.insert(removal);
                self.order.push_back(id);
                false
            }
        };
        self.removals = self.removals + usize::from(is_removal) - usize::from(was_removal);
        // Twice what is kept, so that each pass over all of them drops as many.
        if self.order.len() > 2 * (listed.len() + MAX_REMOVALS) {
            self.drop_obsolete(listed);
        }
    }

    /// Drops changes of servers that the registry does not have any more: without contact, anyone can cause any number of them.
    fn drop_obsolete(&mut self, listed: &KeyedMap<PublicId, SlotIndex>) {
        self.changed.retain(|id, removal| removal.is_some() || listed.contains_key(id));
        self.order.retain(|id| self.changed.contains_key(id));
    }

    fn pop(&mut self) -> Option<(PublicId, Option<(UnlistReason, Instant)>)> {
        let id = self.order.pop_front()?;
        let removal = self.changed.remove(&id).flatten();
        self.removals -= usize::from(removal.is_some());
        Some((id, removal))
    }

    fn reported_mut(&mut self, slot: SlotIndex) -> &mut PerFamily<Tick> {
        if self.reported.len() <= slot.get() {
            self.reported.resize(slot.get() + 1, PerFamily::default());
        }
        &mut self.reported[slot.get()]
    }
}

impl Registry {
    /// Whether there are changes to report.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.replication.as_ref().is_some_and(|replication| !replication.outgoing.order.is_empty())
    }

    /// Takes changes that have not been reported, at most `max` of them, in the order in which they began.
    pub fn take_changes(&mut self, max: usize) -> Vec<LocalChange> {
        let mut changes = Vec::new();
        while changes.len() < max {
            let Some(replication) = &mut self.replication else { break };
            let Some((public_id, removal)) = replication.outgoing.pop() else { break };
            let slot = replication.by_public_id.get(&public_id).copied();
            let put = slot.and_then(|slot| self.local_part(slot));
            let remove = || removal.map(|(reason, deadline)| LocalChange::Remove { public_id, reason, deadline });
            changes.push(
                put.map(|server| LocalChange::Put(Box::new(server)))
                    .or_else(remove)
                    .unwrap_or(LocalChange::Reread(public_id)),
            );
        }
        changes
    }

    /// Whether a change of a server has not been taken yet. It is later than anything that the store can tell about the server.
    pub(super) fn is_unreported(&self, id: PublicId) -> bool {
        self.replication.as_ref().is_some_and(|replication| replication.outgoing.changed.contains_key(&id))
    }

    /// Reports the current state of a server again, if this node heard it.
    pub fn report_again(&mut self, id: PublicId) {
        let Some(replication) = &mut self.replication else { return };
        let Some(&slot) = replication.by_public_id.get(&id) else { return };
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        let is_local = |family| hot.states[family] == EndpointState::Listed && !cold.replica.is_remote[family];
        if Family::ALL.into_iter().any(is_local) {
            replication.outgoing.note(id, None, &replication.by_public_id);
        }
    }

    /// Reports the state of a server if this node heard it, or else has the store's state of it read again.
    pub(in crate::registry) fn read_again(&mut self, id: PublicId) {
        if let Some(replication) = &mut self.replication {
            replication.outgoing.note(id, None, &replication.by_public_id);
        }
    }

    /// Takes renewed leases in a sweep over all slots that begins again at the end. A call visits at least `min` slots, and as many
    /// as it takes to reach the end with `steps` calls. Returns whether the end was reached.
    pub fn take_renewals(&mut self, steps: usize, min: usize, renewals: &mut Vec<LeaseRenewal>) -> bool {
        let Some(replication) = &mut self.replication else { return true };
        // Slots of removed entries are visited, too, so the number of entries would not do.
        let slots = self.entries.slots.end().get().div_ceil(steps.max(1)).max(min);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        let end = replication.outgoing.next.plus(slots).min(self.entries.slots.end());
        for slot in replication.outgoing.next.until(end) {
            let Some(cold) = self.entries.slots.get(slot).filter(|cold| cold.position.is_some()) else { continue };
            let hot = self.entries.slots.hot(slot);
            for family in Family::ALL {
                let is_local = hot.states[family] == EndpointState::Listed && !cold.replica.is_remote[family];
                let tick = hot.deadlines[family];
                let reported = replication.outgoing.reported_mut(slot);
                if is_local && reported[family] != tick {
                    reported[family] = tick;
                    let deadline = self.entries.wheel.instant(tick);
                    let is_ipv6 = family == Family::V6;
                    renewals.push(LeaseRenewal { public_id: cold.server.public_id(), is_ipv6, deadline });
                }
            }
        }
        let is_end = end == self.entries.slots.end();
        replication.outgoing.next = if is_end { SlotIndex::FIRST } else { end };
        is_end
    }

    /// Makes the next sweep report all leases: the store may have lost some.
    pub fn report_all_leases(&mut self) {
        if let Some(replication) = &mut self.replication {
            replication.outgoing.reported.clear();
            replication.outgoing.next = SlotIndex::FIRST;
        }
    }

    /// Notes that a listed entry has changed.
    pub(in crate::registry) fn note_change(&mut self, slot: SlotIndex) {
        let Some(replication) = &mut self.replication else { return };
        if !replication.is_applying {
            let id = self.entries.slots.cold(slot).server.public_id();
            replication.outgoing.note(id, None, &replication.by_public_id);
        }
    }

    /// Notes that an entry has left the list.
    pub(in crate::registry) fn note_removal(&mut self, now: Instant, slot: SlotIndex, reason: UnlistReason) {
        let Some(replication) = &mut self.replication else { return };
        if replication.is_applying {
            return;
        }
        let cold = self.entries.slots.cold(slot);
        let is_heard = || {
            Family::ALL.into_iter().any(|family| cold.endpoints[family].is_some() && !cold.replica.is_remote[family])
        };
        let is_reported = match reason {
            // The owner, or a new server at the same endpoint, has contacted this node.
            UnlistReason::Unregistered | UnlistReason::Replaced | UnlistReason::Contested => true,
            UnlistReason::Moved
            | UnlistReason::Unreachable
            | UnlistReason::Banned
            | UnlistReason::Unwatched
            | UnlistReason::Evicted => is_heard(),
            // The store decides about leases.
            UnlistReason::Expired => false,
        };
        if is_reported {
            let id = cold.server.public_id();
            if reason == UnlistReason::Unregistered {
                replication.remember_departure(now, id);
            }
            let removal = Some((reason, now + self.config.lease));
            replication.outgoing.note(id, removal, &replication.by_public_id);
        }
    }

    /// Reports again that a server has unregistered, if it has and is not known to have registered since: the store still has
    /// it, because it was restored from a backup. If it has registered later than that, the store keeps it, and this node gets
    /// its state.
    pub(super) fn report_departure(&mut self, now: Instant, id: PublicId) -> bool {
        let Some(replication) = &mut self.replication else { return false };
        let Some(at) = replication.departures.unregistered_at(now, id) else { return false };
        let removal = Some((UnlistReason::Unregistered, at + self.config.lease));
        replication.outgoing.note(id, removal, &replication.by_public_id);
        true
    }

    /// Notes the unregistration of a server that has no entry here.
    pub(in crate::registry) fn note_unregistered(&mut self, now: Instant, id: ServerId) {
        let id = self.public_id(id);
        if let Some(replication) = &mut self.replication {
            let removal = Some((UnlistReason::Unregistered, now + self.config.lease));
            replication.outgoing.note(id, removal, &replication.by_public_id);
        }
    }

    /// A listed server with the endpoints that this node heard; `None` if there are none. Their leases count as reported.
    fn local_part(&mut self, slot: SlotIndex) -> Option<ReplicatedServer> {
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        cold.position?;
        let endpoint = |family| {
            let is_local = hot.states[family] == EndpointState::Listed && !cold.replica.is_remote[family];
            let endpoint = cold.endpoints[family].filter(|_| is_local)?;
            let deadline = self.entries.wheel.instant(hot.deadlines[family]);
            Some(ReplicatedEndpoint {
                internal: endpoint.internal.into(),
                external: endpoint.external.into(),
                deadline,
            })
        };
        let v4 = endpoint(Family::V4);
        let v6 = endpoint(Family::V6);
        v4.or(v6)?;
        let mut block = Vec::new();
        ListBlock { v4: None, v6: None, ..cold.server.block() }.emit(&mut block);
        block.drain(..4);
        let server = ReplicatedServer {
            public_id: cold.server.public_id(),
            list_id: cold.server.list_id(),
            origin: cold.server.origin(),
            door: cold.server.door(),
            is_proven: cold.evidence == Evidence::Proven,
            since: cold.server.since(),
            block,
            v4,
            v6,
        };
        let deadlines = hot.deadlines;
        if let Some(replication) = &mut self.replication {
            *replication.outgoing.reported_mut(slot) = deadlines;
        }
        Some(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without contact nothing is taken, while clients register servers that expire.
    #[test]
    fn changes_of_servers_that_are_gone_are_bounded() {
        let keyed = KeyedHash::new(1);
        let (mut outgoing, mut listed) = (Outgoing::new(keyed), keyed.map());
        let id = |number: usize| PublicId::from_bytes((number as u128).to_be_bytes());
        let removal = Some((UnlistReason::Unregistered, Instant::now()));
        outgoing.note(id(1), removal, &listed);
        listed.insert(id(2), SlotIndex::FIRST);
        outgoing.note(id(2), None, &listed);
        let bound = 2 * (1 + MAX_REMOVALS);
        for number in 3..3 * bound {
            outgoing.note(id(number), None, &listed);
            assert!(outgoing.order.len() <= bound && outgoing.changed.len() == outgoing.order.len());
        }
        assert_eq!([outgoing.pop(), outgoing.pop()], [Some((id(1), removal)), Some((id(2), None))]);
    }
}
