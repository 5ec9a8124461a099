//! The caps on servers, lists and memory: which of them a server would exceed.

use super::{Admission, DisplacedServer, Entries, Evidence, Group, eviction::Victims};
use crate::{
    Caps, CheckTarget, ListedServer, RegistrationOutcome,
    entry::{EndpointEntry, EndpointKey},
    index::SlotIndex,
    listed_server::{BLOCK_HEADER, BlockSize},
};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::{ListId, Registration, ServerId};
use std::net::IpAddr;

/// Servers with no more data than this, in bytes, may still be updated when the memory is used up.
pub(in crate::registry) const MODEST: usize = 1_024;

/// Servers that every network (/24 or /48) may have, whatever its share of the whole is. There are networks with 750.
const MIN_PER_NETWORK: usize = 1_000;

/// Memory that the servers of every network may use, in bytes, whatever its share of the whole is.
const MIN_NETWORK_MEMORY: usize = 4 << 20;

/// A cap that a server would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registry) enum Cap {
    /// Servers.
    Total,
    /// Servers of one list.
    List,
    /// Lists that one network has opened.
    ListsOfNetwork,
    /// Lists.
    Lists,
    /// Servers of one source.
    Source,
    /// Servers of one network, or their memory.
    Network,
    Memory,
}

impl Cap {
    /// All caps, in the order in which they are examined.
    const ALL: [Self; 7] =
        [Self::Total, Self::List, Self::ListsOfNetwork, Self::Lists, Self::Source, Self::Network, Self::Memory];

    /// The outcome of a registration that is refused because of this cap.
    pub const fn outcome(self) -> RegistrationOutcome {
        match self {
            Self::Source => RegistrationOutcome::AddressFull,
            Self::Network => RegistrationOutcome::NetworkFull,
            Self::List => RegistrationOutcome::ListFull,
            Self::Lists | Self::ListsOfNetwork => RegistrationOutcome::TooManyLists,
            Self::Total => RegistrationOutcome::RegistryFull,
            Self::Memory => RegistrationOutcome::MemoryFull,
        }
    }
}

impl Caps {
    /// Maximum number of servers of one network.
    fn servers_per_network(&self) -> usize {
        self.share_of(self.total).max(MIN_PER_NETWORK)
    }

    /// Maximum memory use of the servers of one network, in bytes.
    fn memory_per_network(&self) -> usize {
        self.share_of(self.memory).max(MIN_NETWORK_MEMORY)
    }

    fn share_of(&self, whole: usize) -> usize {
        (whole as u128 * u128::from(self.network_percent) / 100) as usize
    }
}

/// A server that needs space.
#[derive(Clone, Copy, Debug)]
pub(in crate::registry) struct SpaceRequest {
    /// The endpoint at which it will be listed.
    pub key: EndpointKey,
    /// Its secret ID, if it has registered itself.
    pub id: Option<ServerId>,
    /// How this endpoint is checked, if it is.
    pub target: Option<CheckTarget>,
    /// The entry of the server.
    pub known: Option<SlotIndex>,
    /// The entry that it replaces.
    pub replaced: Option<SlotIndex>,
    /// The source whose servers are counted; `None` if the server is not charged.
    pub source: Option<IpAddr>,
    pub list: ListId,
    /// The network that is charged if the list is new.
    pub opener: Option<Site>,
    /// Size of the server's block in the list.
    pub size: BlockSize,
    /// The evidence that the server is real; `None` if it has not been looked up, because there was room so far.
    pub evidence: Option<Evidence>,
}

impl SpaceRequest {
    /// A new server without data that is not charged to a source.
    pub fn new(key: EndpointKey, list: ListId) -> Self {
        Self {
            key,
            id: None,
            target: None,
            known: None,
            replaced: None,
            source: None,
            list,
            opener: None,
            size: BlockSize::default(),
            evidence: None,
        }
    }

    /// The space for a registration that is not charged to a source.
    pub fn of(key: EndpointKey, new: &Registration<'_>) -> Self {
        // The block is at most this much larger than the table.
        let table = BlockSize::of(new.table().as_bytes());
        let size = BlockSize { bytes: table.bytes + BLOCK_HEADER, ..table };
        Self { id: Some(new.server_id()), size, ..Self::new(key, new.list_id()) }
    }

    /// Whether an entry is that of the server, or the one that it replaces.
    pub fn is_own(&self, slot: SlotIndex) -> bool {
        self.own().any(|own| own == slot)
    }

    fn own(&self) -> impl Iterator<Item = SlotIndex> {
        self.known.into_iter().chain(self.replaced)
    }

    /// The target of the check, if its replies prove that this server is real: several servers can name the same port for
    /// queries, so a port proves only the server that has it itself.
    pub fn own_target(&self) -> Option<CheckTarget> {
        let (addr, _) = self.key;
        self.target.filter(|target| target.addr.port() == addr.port.get())
    }

    /// The group that a cap bounds, if this server would be in it.
    pub fn group(&self, cap: Cap) -> Option<Group> {
        match cap {
            Cap::Total | Cap::Memory => Some(Group::All),
            Cap::List => Some(Group::List(self.list)),
            Cap::Source => self.source.map(Group::source),
            Cap::Network => self.source.map(Group::network),
            Cap::Lists | Cap::ListsOfNetwork => None,
        }
    }
}

impl Admission {
    /// The cap that a request would exceed, if any, taking into account the space that its own entry, the replaced one and the
    /// victims would free.
    pub(super) fn find_cap_reached(&self, entries: &Entries, request: &SpaceRequest, victims: &Victims) -> Option<Cap> {
        Cap::ALL.into_iter().find(|&cap| match request.group(cap) {
            Some(group) => self.is_group_full(entries, cap, group, request, victims),
            None if matches!(cap, Cap::Lists | Cap::ListsOfNetwork) => {
                self.are_lists_full(entries, cap, request, victims)
            }
            None => false,
        })
    }

    fn is_group_full(
        &self,
        entries: &Entries,
        cap: Cap,
        group: Group,
        request: &SpaceRequest,
        victims: &Victims,
    ) -> bool {
        let caps = &self.config.caps;
        let used = entries.usage(group);
        let is_in_group = |slot: &SlotIndex| entries.cold(*slot).groups().any(|of_entry| of_entry == group);
        let is_member = request.own().any(|slot| is_in_group(&slot));
        let leaving = || victims.slots().filter(is_in_group);
        // A server that was displaced takes the place of its holder.
        let freed = || leaving().filter(|&slot| !has_heir(entries, slot)).count();
        let is_full_for_one_more = |max: usize, freed: usize| !is_member && used.servers >= max.saturating_add(freed);
        let memory_of = |slot| entries.cold(slot).server.memory();
        let needed = request.size.memory();
        match cap {
            Cap::Total => is_full_for_one_more(caps.total, freed()),
            Cap::List => is_full_for_one_more(caps.per_list, freed()),
            Cap::Source => is_full_for_one_more(caps.per_address, leaving().count()),
            Cap::Network => {
                let memory = caps.memory_per_network().saturating_add(leaving().map(memory_of).sum());
                is_full_for_one_more(caps.servers_per_network(), leaving().count())
                    || (!is_member && used.servers > 0 && used.memory + needed > memory)
            }
            Cap::Memory => {
                let freed: usize = request.own().map(memory_of).sum();
                let others = used.memory - freed - leaving().map(memory_of).sum::<usize>();
                // Registered servers can be updated within reason even if others have used up the rest.
                let extra = if freed > 0 && request.size.bytes <= MODEST { caps.memory / 8 } else { 0 };
                needed > freed && others + needed > caps.memory.saturating_add(extra)
            }
            Cap::Lists | Cap::ListsOfNetwork => false,
        }
    }

    /// Whether no list can be opened for a server, if it needs a new one.
    fn are_lists_full(&self, entries: &Entries, cap: Cap, request: &SpaceRequest, victims: &Victims) -> bool {
        let servers_of = |list| entries.usage(Group::List(list)).servers;
        if servers_of(request.list) > 0 || self.config.named_lists.contains(&request.list) {
            return false;
        }
        let leaving = request.own().chain(victims.slots().filter(|&slot| !has_heir(entries, slot)));
        let mut left: Vec<_> = leaving.map(|slot| entries.cold(slot).server.list_id).collect();
        left.sort_unstable();
        let closing = left.chunk_by(|a, b| a == b).filter(|left| servers_of(left[0]) == left.len()).map(|left| left[0]);
        let open = entries.open_lists(request.opener, closing);
        let caps = &self.config.caps;
        match cap {
            // Lists of the network of a server that was listed before may have been opened by forged registrations.
            Cap::ListsOfNetwork if request.evidence >= Some(Evidence::Known) => {
                open.by_network >= caps.lists_per_network.saturating_mul(2)
            }
            Cap::ListsOfNetwork => open.by_network >= caps.lists_per_network,
            _ => open.total >= caps.lists,
        }
    }

    /// Whether the caps leave room for a server that is kept although it is displaced and not proven.
    pub fn has_room_for_displaced(&self, entries: &Entries, displaced: &DisplacedServer) -> bool {
        let caps = &self.config.caps;
        let memory = displaced.server().memory();
        let network = entries.usage(Group::network(displaced.endpoint.internal.ip));
        entries.usage(Group::All).memory + memory <= caps.memory
            && (network.servers == 0 || network.memory + memory <= caps.memory_per_network())
            && network.servers < caps.servers_per_network()
    }

    /// Whether the caps leave room for a server that was listed before, without another that gives way.
    pub fn has_room_at(
        &self,
        entries: &Entries,
        endpoint: &EndpointEntry,
        server: &ListedServer,
        evidence: Evidence,
    ) -> bool {
        let key = (endpoint.external, server.block().transport);
        let request = SpaceRequest {
            source: server.origin.is_charged().then_some(endpoint.internal.ip),
            size: BlockSize::of(&server.block),
            evidence: Some(evidence),
            ..SpaceRequest::new(key, server.list_id)
        };
        self.find_cap_reached(entries, &request, &Victims::default()).is_none()
    }

    /// Whether the caps on all servers leave room for one that other nodes of a cluster have accepted.
    pub fn has_room_for_replica(&self, entries: &Entries, block: &[u8]) -> bool {
        let caps = &self.config.caps;
        let used = entries.usage(Group::All);
        used.servers < caps.total && used.memory + BlockSize::of(block).memory() <= caps.memory
    }

    /// Whether a server may change its size without an examination of the caps.
    pub fn has_memory_for(&self, entries: &Entries, old: &ListedServer, new: &ListedServer) -> bool {
        let (before, after) = (old.memory(), new.memory());
        let is_within = || entries.usage(Group::All).memory - before + after <= self.config.caps.memory;
        after <= before || new.block.len() <= MODEST && is_within()
    }
}

/// Whether a proven server, which was displaced, takes the place of an entry that is evicted.
fn has_heir(entries: &Entries, slot: SlotIndex) -> bool {
    entries.cold(slot).displaced.as_ref().is_some_and(|displaced| displaced.is_proven())
}
