//! The groups of servers that the caps bound: all servers, those of a list, those of a source, and those of a network.
//!
//! A group knows how much its servers use, and which of them are on probation: those that nothing has proven give way when a cap
//! is reached (W45). An entry knows its position in each of its groups, so that joining and leaving one takes the same time
//! however many servers there are.

use super::{Registry, Slots};
use crate::{
    entry::{ColdEntry, Family},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
    registry::Evidence,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::{ListId, ServerId};
use std::{collections::hash_map::Entry, hash::BuildHasher, net::IpAddr};

/// The servers that one cap counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Group {
    /// All servers.
    All,
    List(ListId),
    /// Servers of an IPv4 address or an IPv6 /64.
    Source(Family, Lan),
    /// Servers of a /24 or a /48.
    Network(Family, Site),
}

impl Group {
    /// Number of groups that an entry can be in: it has two endpoints at most.
    const MAX: usize = 6;

    pub fn source(ip: IpAddr) -> Self {
        Self::Source(Family::of(ip), Lan::of(ip))
    }

    pub fn network(ip: IpAddr) -> Self {
        Self::Network(Family::of(ip), Site::of(ip))
    }

    /// The index of the group among those of an entry.
    const fn index(self) -> usize {
        match self {
            Self::All => 0,
            Self::List(_) => 1,
            Self::Source(family, _) => 2 + family as usize,
            Self::Network(family, _) => 4 + family as usize,
        }
    }
}

/// The positions of an entry on probation in its groups.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupPositions([u32; Group::MAX]);

/// What the servers of a group use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Number of servers; in a source or network, also of those that were displaced and keep their place.
    pub servers: usize,
    /// Estimated memory in bytes, including that of displaced servers.
    pub memory: usize,
}

#[derive(Debug, Default)]
struct Members {
    usage: Usage,
    on_probation: Vec<SlotIndex>,
}

/// All groups that have servers.
#[derive(Debug)]
pub(super) struct Groups {
    by_key: KeyedMap<Group, Members>,
    keyed: KeyedHash,
    /// Number of samples that were drawn.
    drawn: u64,
}

impl Groups {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { by_key: keyed.map(), keyed, drawn: 0 }
    }

    pub fn usage(&self, group: Group) -> Usage {
        self.by_key.get(&group).map(|members| members.usage).unwrap_or_default()
    }

    /// The members that can give way.
    pub fn on_probation(&self, group: Group) -> &[SlotIndex] {
        self.by_key.get(&group).map_or(&[], |members| &members.on_probation)
    }

    /// Up to `count` members that can give way, in an order that cannot be predicted: all of them if there are no more, otherwise
    /// random ones, which may repeat.
    pub fn sample(&mut self, group: Group, count: usize) -> Vec<SlotIndex> {
        let indices = self.draw(self.on_probation(group).len(), count);
        let members = self.on_probation(group);
        indices.map(|at| members[at]).collect()
    }

    /// Up to `count` indices below `len`, in an order that cannot be predicted without the secret key.
    pub fn draw(&mut self, len: usize, count: usize) -> impl Iterator<Item = usize> + use<> {
        let Self { keyed, drawn, .. } = *self;
        self.drawn += count as u64;
        let random = move |number: usize| (keyed.hash_one(drawn + number as u64) % len.max(1) as u64) as usize;
        let first = random(0);
        (0..count.min(len)).map(move |number| if len <= count { (first + number) % len } else { random(number) })
    }

    /// Counts servers and memory towards a group.
    pub fn charge(&mut self, group: Group, added: Usage) {
        let usage = &mut self.by_key.entry(group).or_default().usage;
        usage.servers += added.servers;
        usage.memory += added.memory;
    }

    pub fn uncharge(&mut self, group: Group, removed: Usage) {
        let Entry::Occupied(mut members) = self.by_key.entry(group) else { return };
        let usage = &mut members.get_mut().usage;
        usage.servers -= removed.servers;
        usage.memory -= removed.memory;
        if usage.servers == 0 {
            members.remove();
        }
    }

    /// Adds an entry to those of a group that can give way.
    fn begin_probation(&mut self, slots: &mut Slots, group: Group, slot: SlotIndex) {
        let members = &mut self.by_key.entry(group).or_default().on_probation;
        slots.cold_mut(slot).positions.0[group.index()] = members.len() as u32;
        members.push(slot);
    }

    fn end_probation(&mut self, slots: &mut Slots, group: Group, slot: SlotIndex) {
        let Some(Members { on_probation, .. }) = self.by_key.get_mut(&group) else { return };
        let at = slots.cold(slot).positions.0[group.index()];
        on_probation.swap_remove(at as usize);
        if let Some(&moved) = on_probation.get(at as usize) {
            slots.cold_mut(moved).positions.0[group.index()] = at;
        }
    }

    /// Panics unless these are the groups of all entries on probation, and what all servers use.
    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, slots: &Slots, used: &KeyedMap<Group, Usage>) {
        assert_eq!(used.len(), self.by_key.len(), "groups");
        assert!(used.iter().all(|(&group, &used)| used == self.usage(group)), "usage by group");
        let mut on_probation = 0;
        for (&group, members) in &self.by_key {
            for (at, &slot) in members.on_probation.iter().enumerate() {
                let cold = slots.cold(slot);
                assert_eq!(cold.positions.0[group.index()] as usize, at, "position of an entry on probation");
                let is_member = cold.groups().any(|of_entry| of_entry == group);
                assert!(is_member && cold.evidence < Evidence::Proven, "an entry in the wrong group: {group:?}");
                on_probation += 1;
            }
        }
        let used = SlotIndex::FIRST.until(slots.end()).filter_map(|slot| slots.get(slot));
        let expected = used.filter(|cold| cold.evidence < Evidence::Proven).map(|cold| cold.groups().count());
        assert_eq!(on_probation, expected.sum::<usize>(), "entries on probation");
    }
}

impl ColdEntry {
    /// The groups that the entry is in.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        let endpoints = self.endpoints;
        let is_charged = self.server.origin.is_charged();
        let families = Family::ALL.into_iter().filter(move |_| is_charged);
        let ips = families.filter_map(move |family| endpoints[family]).map(|endpoint| endpoint.internal.ip);
        let places = ips.flat_map(|ip| [Group::source(ip), Group::network(ip)]);
        [Group::All, Group::List(self.server.list_id)].into_iter().chain(places)
    }

    /// What the entry uses in each of its groups.
    pub(super) fn usage(&self) -> Usage {
        Usage { servers: 1, memory: self.server.memory() }
    }
}

impl Registry {
    /// Adds an entry without endpoints, which opens its list if it is the first one there; `opener` is charged for that.
    pub(super) fn add_entry(&mut self, opener: Option<Site>, id: ServerId, cold: ColdEntry) -> SlotIndex {
        let slot = self.entries.slots.insert(id, cold);
        self.join(slot, Group::All);
        self.join_list(slot, opener);
        self.index_public_id(slot);
        slot
    }

    /// Adds an entry to its list; `opener` is charged if the list is new.
    pub(super) fn join_list(&mut self, slot: SlotIndex, opener: Option<Site>) {
        let list = self.entries.slots.cold(slot).server.list_id;
        if self.admission.groups.usage(Group::List(list)).servers == 0 {
            self.admission.lists.open(list, self.config.named_lobbies.contains(&list), opener);
        }
        self.join(slot, Group::List(list));
    }

    /// Removes an entry from its list, which is closed if it was the last one there.
    pub(super) fn leave_list(&mut self, slot: SlotIndex) {
        let list = self.entries.slots.cold(slot).server.list_id;
        self.leave(slot, Group::List(list));
        if self.admission.groups.usage(Group::List(list)).servers == 0 {
            self.admission.lists.close(list);
        }
    }

    /// Counts an entry towards a group.
    pub(super) fn join(&mut self, slot: SlotIndex, group: Group) {
        let cold = self.entries.slots.cold(slot);
        let is_on_probation = cold.evidence < Evidence::Proven;
        self.admission.groups.charge(group, cold.usage());
        if is_on_probation {
            self.admission.groups.begin_probation(&mut self.entries.slots, group, slot);
        }
    }

    pub(super) fn leave(&mut self, slot: SlotIndex, group: Group) {
        let cold = self.entries.slots.cold(slot);
        let usage = cold.usage();
        if cold.evidence < Evidence::Proven {
            self.admission.groups.end_probation(&mut self.entries.slots, group, slot);
        }
        self.admission.groups.uncharge(group, usage);
    }

    /// Counts an endpoint towards the caps of its source and network, if its server is charged.
    pub(super) fn charge_endpoint(&mut self, slot: SlotIndex, source: IpAddr) {
        if self.entries.slots.cold(slot).server.origin.is_charged() {
            [Group::source(source), Group::network(source)].into_iter().for_each(|group| self.join(slot, group));
        }
    }

    pub(super) fn uncharge_endpoint(&mut self, slot: SlotIndex, source: IpAddr) {
        if self.entries.slots.cold(slot).server.origin.is_charged() {
            [Group::source(source), Group::network(source)].into_iter().for_each(|group| self.leave(slot, group));
        }
    }

    /// Counts the memory of an entry whose data has changed, in place of `before` bytes.
    pub(super) fn recharge_memory(&mut self, slot: SlotIndex, before: usize) {
        let cold = self.entries.slots.cold(slot);
        let after = cold.server.memory();
        if before != after {
            for group in cold.groups() {
                self.admission.groups.charge(group, Usage { servers: 0, memory: after });
                self.admission.groups.uncharge(group, Usage { servers: 0, memory: before });
            }
        }
    }

    /// Changes the evidence of an entry, which begins or ends its probation.
    pub(super) fn set_evidence(&mut self, slot: SlotIndex, evidence: Evidence) {
        let Self { entries, admission, .. } = self;
        let cold = entries.slots.cold_mut(slot);
        let before = std::mem::replace(&mut cold.evidence, evidence);
        let groups = cold.groups();
        match (before < Evidence::Proven, evidence < Evidence::Proven) {
            (true, false) => groups.for_each(|group| admission.groups.end_probation(&mut entries.slots, group, slot)),
            (false, true) => groups.for_each(|group| admission.groups.begin_probation(&mut entries.slots, group, slot)),
            _ => {}
        }
    }
}
