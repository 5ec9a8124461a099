//! Reports to the other nodes: changes of servers that register here, and renewed leases.

use super::{Entries, ReplicatedEndpoint, ReplicatedServer};
use crate::{
    PublicId, UnlistReason,
    entry::{Family, PerFamily},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
    registry::Evidence,
    wheel::{Clock, Tick},
};
use rallypoint_wire::lobby::ListBlock;
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

impl LocalChange {
    /// The server's public ID.
    #[must_use]
    pub fn public_id(&self) -> PublicId {
        match self {
            Self::Put(server) => server.public_id,
            Self::Remove { public_id, .. } | Self::Reread(public_id) => *public_id,
        }
    }
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
    pub fn note(
        &mut self,
        id: PublicId,
        removal: Option<(UnlistReason, Instant)>,
        listed: &KeyedMap<PublicId, SlotIndex>,
    ) {
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

    /// Takes the next change.
    pub fn pop(&mut self) -> Option<(PublicId, Option<(UnlistReason, Instant)>)> {
        let id = self.order.pop_front()?;
        let removal = self.changed.remove(&id).flatten();
        self.removals -= usize::from(removal.is_some());
        Some((id, removal))
    }

    /// The leases of a slot that were reported last.
    pub fn reported_mut(&mut self, slot: SlotIndex) -> &mut PerFamily<Tick> {
        if self.reported.len() <= slot.get() {
            self.reported.resize(slot.get() + 1, PerFamily::default());
        }
        &mut self.reported[slot.get()]
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether there is a change of a server.
    pub fn contains(&self, id: PublicId) -> bool {
        self.changed.contains_key(&id)
    }

    /// The next part of the sweep for renewed leases.
    pub fn take_renewals(
        &mut self,
        entries: &Entries,
        clock: Clock,
        steps: usize,
        min: usize,
        renewals: &mut Vec<LeaseRenewal>,
    ) -> bool {
        // Slots of removed entries are visited, too, so the number of entries would not do.
        let slots = entries.end().get().div_ceil(steps.max(1)).max(min);
        let end = self.next.plus(u32::try_from(slots).unwrap_or(u32::MAX)).min(entries.end());
        for slot in self.next.until(end) {
            let Some(cold) = entries.get(slot).filter(|cold| cold.position.is_some()) else { continue };
            for family in Family::ALL {
                let tick = entries.hot(slot).deadlines[family];
                let reported = &mut self.reported_mut(slot)[family];
                if *reported != tick && entries.local_endpoint(slot, family).is_some() {
                    *reported = tick;
                    let public_id = cold.server.public_id();
                    let deadline = clock.instant(tick);
                    renewals.push(LeaseRenewal { public_id, is_ipv6: family == Family::V6, deadline });
                }
            }
        }
        let is_end = end == entries.end();
        self.next = if is_end { SlotIndex::FIRST } else { end };
        is_end
    }

    /// Makes the next sweep report all leases.
    pub fn report_all_leases(&mut self) {
        self.reported.clear();
        self.next = SlotIndex::FIRST;
    }
}

/// A listed server with the endpoints that this node heard; `None` if there are none.
pub(super) fn local_part(entries: &Entries, clock: Clock, slot: SlotIndex) -> Option<ReplicatedServer> {
    let cold = entries.cold(slot);
    cold.position?;
    let endpoint = |family| {
        let endpoint = entries.local_endpoint(slot, family)?;
        let deadline = clock.instant(entries.hot(slot).deadlines[family]);
        Some(ReplicatedEndpoint { internal: endpoint.internal.into(), external: endpoint.external.into(), deadline })
    };
    let v4 = endpoint(Family::V4);
    let v6 = endpoint(Family::V6);
    v4.or(v6)?;
    let mut block = Vec::new();
    let data = ListBlock { v4: None, v6: None, ..cold.server.block() };
    data.emit(&mut block);
    block.drain(..4);
    Some(ReplicatedServer {
        public_id: cold.server.public_id(),
        list_id: cold.server.list_id(),
        origin: cold.server.origin(),
        transport: data.transport,
        door: cold.server.door(),
        is_proven: cold.evidence == Evidence::Proven,
        since: cold.server.since(),
        block,
        v4,
        v6,
    })
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
