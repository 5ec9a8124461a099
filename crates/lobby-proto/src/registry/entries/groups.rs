//! The groups of servers that the caps bound: all servers, those of a list, those of a source, and those of a network.
//!
//! A group knows how much its servers use, and which of them are on probation: those that nothing has proven give way when a cap
//! is reached (W45). Every entry has its position in each of its groups, so that joining and leaving one takes the same time
//! however many servers there are.

use crate::{
    entry::{ColdEntry, Family},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::ListId;
use std::{collections::hash_map::Entry, net::IpAddr};

/// The servers that one cap counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
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

/// What the servers of a group use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
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
    /// By slot: the positions of an entry on probation in its groups.
    positions: Vec<[u32; Group::MAX]>,
}

impl Groups {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { by_key: keyed.map(), positions: Vec::new() }
    }

    pub fn usage(&self, group: Group) -> Usage {
        self.by_key.get(&group).map(|members| members.usage).unwrap_or_default()
    }

    /// The members that can give way.
    pub fn on_probation(&self, group: Group) -> &[SlotIndex] {
        self.by_key.get(&group).map_or(&[], |members| &members.on_probation)
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

    /// Counts an entry towards a group.
    pub fn join(&mut self, group: Group, slot: SlotIndex, entry: &ColdEntry) {
        self.charge(group, entry.usage());
        if entry.is_on_probation() {
            self.begin_probation(group, slot);
        }
    }

    pub fn leave(&mut self, group: Group, slot: SlotIndex, entry: &ColdEntry) {
        if entry.is_on_probation() {
            self.end_probation(group, slot);
        }
        self.uncharge(group, entry.usage());
    }

    /// Adds an entry to those of a group that can give way.
    pub fn begin_probation(&mut self, group: Group, slot: SlotIndex) {
        if self.positions.len() <= slot.get() {
            self.positions.resize(slot.get() + 1, [0; Group::MAX]);
        }
        let members = &mut self.by_key.entry(group).or_default().on_probation;
        self.positions[slot.get()][group.index()] = members.len() as u32;
        members.push(slot);
    }

    pub fn end_probation(&mut self, group: Group, slot: SlotIndex) {
        let Some(Members { on_probation, .. }) = self.by_key.get_mut(&group) else { return };
        let at = self.positions[slot.get()][group.index()];
        on_probation.swap_remove(at as usize);
        if let Some(moved) = on_probation.get(at as usize) {
            self.positions[moved.get()][group.index()] = at;
        }
    }

    /// Panics unless these are the groups of all entries on probation, and what all servers use.
    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants<'a>(
        &self,
        entries: impl Iterator<Item = (SlotIndex, &'a ColdEntry)>,
        used: &KeyedMap<Group, Usage>,
    ) {
        assert_eq!(used.len(), self.by_key.len(), "groups");
        assert!(used.iter().all(|(&group, &used)| used == self.usage(group)), "usage by group");
        let mut expected = 0;
        for (slot, entry) in entries.filter(|(_, entry)| entry.is_on_probation()) {
            for group in entry.groups() {
                let at = self.positions[slot.get()][group.index()] as usize;
                assert_eq!(
                    self.on_probation(group).get(at),
                    Some(&slot),
                    "position of an entry on probation: {group:?}"
                );
                expected += 1;
            }
        }
        let on_probation = self.by_key.values().map(|members| members.on_probation.len());
        assert_eq!(on_probation.sum::<usize>(), expected, "entries on probation");
    }
}

impl ColdEntry {
    /// The groups that the entry is in.
    pub(in crate::registry) fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        let endpoints = self.endpoints;
        let is_charged = self.server.origin.is_charged();
        let families = Family::ALL.into_iter().filter(move |_| is_charged);
        let ips = families.filter_map(move |family| endpoints[family]).map(|endpoint| endpoint.internal.ip);
        let places = ips.flat_map(|ip| [Group::source(ip), Group::network(ip)]);
        [Group::All, Group::List(self.server.list_id)].into_iter().chain(places)
    }

    /// What the entry uses in each of its groups.
    pub(in crate::registry) fn usage(&self) -> Usage {
        Usage { servers: 1, memory: self.server.memory() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{
        Evidence,
        entries::tests::{slot, unproven},
    };

    #[test]
    fn a_group_counts_its_members_and_knows_which_can_give_way() {
        let mut groups = Groups::new(KeyedHash::new(7));
        let proven = ColdEntry { evidence: Evidence::Proven, ..unproven() };
        for (number, entry) in [(0, unproven()), (1, proven), (2, unproven()), (3, unproven())] {
            groups.join(Group::All, slot(number), &entry);
        }
        assert_eq!(groups.usage(Group::All).servers, 4);
        assert_eq!(groups.on_probation(Group::All), [slot(0), slot(2), slot(3)]);
        groups.leave(Group::All, slot(0), &unproven());
        assert_eq!(groups.on_probation(Group::All), [slot(3), slot(2)], "the last one moves to the free position");
        groups.leave(Group::All, slot(3), &unproven());
        groups.end_probation(Group::All, slot(2));
        assert_eq!((groups.usage(Group::All).servers, groups.on_probation(Group::All)), (2, &[][..]));
    }

    #[test]
    fn a_group_without_members_is_forgotten() {
        let mut groups = Groups::new(KeyedHash::new(7));
        let group = Group::source(IpAddr::from([203, 0, 113, 9]));
        groups.join(group, slot(0), &unproven());
        groups.leave(group, slot(0), &unproven());
        assert!(groups.by_key.is_empty());
    }
}
