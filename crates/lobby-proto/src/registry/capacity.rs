//! The caps on servers, lobbies and memory, and the usage that is counted against them.

use super::{
    Registry, Slots,
    chains::Chain,
    eviction::Victims,
    lobby_table::LobbyTable,
    sample_set::{RandomIndices, SampleSet},
    seen_endpoints::EndpointKey,
};
use crate::{
    Caps, CheckTarget, ListedServer, RegistrationOutcome,
    entry::{Family, Trust},
    hash::{KeyedHash, KeyedMap},
    index::SlotIndex,
    listed_server::BlockSize,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::{LobbyId, Registration, ServerId};
use std::{collections::hash_map::Entry, net::IpAddr};

/// Size of a block in the list besides the table: its length, two endpoints, occupancy and so on.
const BLOCK_HEADER: usize = 64;

/// Servers with no more data than this, in bytes, may still be updated when the memory is used up.
pub(super) const MODEST: usize = 1_024;

/// Servers that every network (/24 or /48) may have, whatever its share of the whole is. There are networks with 750.
const MIN_PER_NETWORK: usize = 1_000;

/// Memory that the servers of every network may use, in bytes, whatever its share of the whole is.
const MIN_NETWORK_MEMORY: usize = 4 << 20;

/// The counts that the caps limit, and the entries that are not proven, which give way when a cap is reached.
#[derive(Debug)]
pub(super) struct Usage {
    pub lobbies: LobbyTable,
    pub sources: KeyedMap<Lan, SourceUsage>,
    pub networks: KeyedMap<Site, NetworkUsage>,
    /// Entries that are not proven.
    pub unproven: SampleSet,
    /// For a choice among equals.
    pub random: RandomIndices,
    /// Estimated memory use of all entries, in bytes.
    pub memory: usize,
}

/// The use of one source: an IPv4 address or an IPv6 /64.
#[derive(Debug, Default)]
pub(super) struct SourceUsage {
    /// Number of registered endpoints, and of those that displaced servers will return to.
    pub endpoints: u32,
    /// The newest entry that is not proven.
    pub newest: Option<SlotIndex>,
}

/// The use of one network: a /24 or a /48.
#[derive(Debug, Default)]
pub(super) struct NetworkUsage {
    /// Number of registered endpoints, and of those that displaced servers will return to.
    pub endpoints: u32,
    /// Estimated memory use of the servers with these endpoints, in bytes.
    pub memory: usize,
    /// The newest entry that is not proven.
    pub newest: Option<SlotIndex>,
}

impl Usage {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            lobbies: LobbyTable::new(keyed),
            sources: keyed.map(),
            networks: keyed.map(),
            unproven: SampleSet::new(keyed),
            random: RandomIndices::new(keyed),
            memory: 0,
        }
    }

    /// Counts an endpoint at this address, of a server with this estimated memory use.
    pub fn charge(&mut self, ip: IpAddr, memory: usize) {
        self.sources.entry(Lan::of(ip)).or_default().endpoints += 1;
        let network = self.networks.entry(Site::of(ip)).or_default();
        network.endpoints += 1;
        network.memory += memory;
    }

    pub fn uncharge(&mut self, ip: IpAddr, memory: usize) {
        if let Entry::Occupied(mut source) = self.sources.entry(Lan::of(ip)) {
            source.get_mut().endpoints -= 1;
            if source.get().endpoints == 0 {
                source.remove();
            }
        }
        if let Entry::Occupied(mut entry) = self.networks.entry(Site::of(ip)) {
            let network = entry.get_mut();
            network.endpoints -= 1;
            network.memory -= memory;
            if network.endpoints == 0 {
                entry.remove();
            }
        }
    }

    /// Adds the endpoint of an entry that is not proven to the chains of its source and network.
    pub fn link(&mut self, slots: &mut Slots, slot: SlotIndex, ip: IpAddr) {
        let family = Family::of(ip);
        if let Some(source) = self.sources.get_mut(&Lan::of(ip)) {
            slots.link(Chain::Source(family), &mut source.newest, slot);
        }
        if let Some(network) = self.networks.get_mut(&Site::of(ip)) {
            slots.link(Chain::Network(family), &mut network.newest, slot);
        }
    }

    pub fn unlink(&mut self, slots: &mut Slots, slot: SlotIndex, ip: IpAddr) {
        let family = Family::of(ip);
        if let Some(source) = self.sources.get_mut(&Lan::of(ip)) {
            slots.unlink(Chain::Source(family), &mut source.newest, slot);
        }
        if let Some(network) = self.networks.get_mut(&Site::of(ip)) {
            slots.unlink(Chain::Network(family), &mut network.newest, slot);
        }
    }

    /// Number of endpoints of a source.
    pub fn endpoints(&self, lan: Lan) -> usize {
        self.sources.get(&lan).map_or(0, |source| source.endpoints as usize)
    }
}

/// A cap that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    /// Servers of one source.
    Address(IpAddr),
    /// Servers of one network, or their memory.
    Network(IpAddr),
    /// Servers of one lobby.
    Lobby(LobbyId),
    /// Lobbies.
    Lobbies,
    /// Lobbies that one network has opened.
    LobbiesOfNetwork,
    /// Servers.
    Total,
    Memory,
}

impl Cap {
    /// The outcome of a registration that is refused because of this cap.
    pub const fn outcome(self) -> RegistrationOutcome {
        match self {
            Self::Address(_) => RegistrationOutcome::AddressFull,
            Self::Network(_) => RegistrationOutcome::NetworkFull,
            Self::Lobby(_) => RegistrationOutcome::LobbyFull,
            Self::Lobbies | Self::LobbiesOfNetwork => RegistrationOutcome::TooManyLobbies,
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
pub(super) struct SpaceRequest {
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
    pub lobby: LobbyId,
    /// The network that is charged if the lobby is new.
    pub opener: Option<Site>,
    /// Size of the server's block in the list.
    pub size: BlockSize,
    /// Whether a server was listed at this endpoint before, which raises the number of lobbies that its network can open: the
    /// others may have been opened by forged registrations.
    pub is_former: bool,
    /// Whether the server has replied to a check or a query, so that the registration is not forged.
    pub has_replied: bool,
}

impl SpaceRequest {
    /// A new server without data that is not charged to a source.
    pub fn new(key: EndpointKey, lobby: LobbyId) -> Self {
        Self {
            key,
            id: None,
            target: None,
            known: None,
            replaced: None,
            source: None,
            lobby,
            opener: None,
            size: BlockSize::default(),
            is_former: false,
            has_replied: false,
        }
    }

    /// The space for a registration that is not charged to a source.
    pub fn of(key: EndpointKey, new: &Registration<'_>) -> Self {
        // The block is at most this much larger than the table.
        let table = BlockSize::of(new.table().as_bytes());
        let size = BlockSize { bytes: table.bytes + BLOCK_HEADER, ..table };
        Self { id: Some(new.server_id()), size, ..Self::new(key, new.lobby_id()) }
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
}

impl Registry {
    /// The cap that a request would exceed, if any, taking into account the space that its own entry, the replaced one and the
    /// victims would free.
    pub(super) fn find_cap_reached(&self, request: &SpaceRequest, victims: &Victims) -> Option<Cap> {
        let caps = &self.config.caps;
        let own = || request.own();
        let lobby_of = |slot| self.slots.cold(slot).server.lobby_id;
        // A proven server that was displaced takes the place of the victim.
        let is_taken = |slot| self.slots.cold(slot).displaced.as_ref().is_some_and(|displaced| displaced.is_proven());
        let leaving = || victims.slots().filter(|&slot| !is_taken(slot));
        if own().next().is_none() && self.slots.len() >= caps.total.saturating_add(leaving().count()) {
            return Some(Cap::Total);
        }
        match self.usage.lobbies.servers(request.lobby) {
            Some(count) if !own().any(|slot| lobby_of(slot) == request.lobby) => {
                let leaving = leaving().filter(|&slot| lobby_of(slot) == request.lobby).count();
                if count >= caps.per_lobby.saturating_add(leaving) {
                    return Some(Cap::Lobby(request.lobby));
                }
            }
            None if !self.config.named_lobbies.contains(&request.lobby) => {
                let closing = self.lobbies_only_of(own().chain(leaving()).collect());
                let open = self.usage.lobbies.open_without(request.opener, closing.into_iter());
                let per_network = caps.lobbies_per_network.saturating_mul(if request.is_former { 2 } else { 1 });
                if open.by_network >= per_network {
                    return Some(Cap::LobbiesOfNetwork);
                }
                if open.total >= caps.lobbies {
                    return Some(Cap::Lobbies);
                }
            }
            _ => {}
        }
        let memory_of_entry = |slot| self.slots.cold(slot).server.memory();
        let needed = request.size.memory();
        if let Some(ip) = request.source {
            let is_new_here = |is_here: &dyn Fn(IpAddr) -> bool| !own().any(|slot| self.is_charged_at(slot, is_here));
            let leaving = |is_here: &dyn Fn(IpAddr) -> bool| {
                let leaving = victims.slots().map(|slot| (slot, self.charged_at(slot, is_here).count()));
                leaving.fold((0, 0), |(count, memory), (slot, endpoints)| {
                    (count + endpoints, memory + endpoints * memory_of_entry(slot))
                })
            };
            let lan = Lan::of(ip);
            let is_in_lan = |ip| Lan::of(ip) == lan;
            if is_new_here(&is_in_lan)
                && self.usage.endpoints(lan) >= caps.per_address.saturating_add(leaving(&is_in_lan).0)
            {
                return Some(Cap::Address(ip));
            }
            let site = Site::of(ip);
            let is_in_site = |ip| Site::of(ip) == site;
            if let Some(network) = self.usage.networks.get(&site)
                && is_new_here(&is_in_site)
            {
                let (count, memory) = leaving(&is_in_site);
                if network.endpoints as usize >= caps.servers_per_network().saturating_add(count)
                    || network.memory + needed > caps.memory_per_network().saturating_add(memory)
                {
                    return Some(Cap::Network(ip));
                }
            }
        }
        let freed: usize = own().map(memory_of_entry).sum();
        let leaving: usize = victims.slots().map(memory_of_entry).sum();
        let others = self.usage.memory - freed - leaving;
        // Registered servers can be updated within reason even if others have used up the rest.
        let extra = if freed > 0 && request.size.bytes <= MODEST { caps.memory / 8 } else { 0 };
        let is_full = needed > freed && others + needed > caps.memory.saturating_add(extra);
        is_full.then_some(Cap::Memory)
    }

    /// Whether the caps leave room for a server that is kept although it is displaced and not proven.
    pub(super) fn has_room_for_displaced(&self, source: IpAddr, memory: usize) -> bool {
        let caps = &self.config.caps;
        let has_room = |network: &NetworkUsage| {
            network.memory + memory <= caps.memory_per_network()
                && (network.endpoints as usize) < caps.servers_per_network()
        };
        self.usage.memory + memory <= caps.memory && self.usage.networks.get(&Site::of(source)).is_none_or(has_room)
    }

    /// Whether there is no room for a server that was displaced and is not proven: others may have come meanwhile.
    pub(super) fn is_full_for(&self, key: EndpointKey, source: IpAddr, server: &ListedServer) -> bool {
        let size = BlockSize::of(&server.block);
        let request = SpaceRequest { source: Some(source), size, ..SpaceRequest::new(key, server.lobby_id) };
        self.find_cap_reached(&request, &Victims::default()).is_some()
    }

    /// The lobbies that would be empty without these servers.
    fn lobbies_only_of(&self, leaving: Vec<SlotIndex>) -> Vec<LobbyId> {
        let mut lobbies: Vec<_> = leaving.into_iter().map(|slot| self.slots.cold(slot).server.lobby_id).collect();
        lobbies.sort_unstable();
        let is_empty = |lobbies: &&[LobbyId]| self.usage.lobbies.servers(lobbies[0]) == Some(lobbies.len());
        lobbies.chunk_by(|a, b| a == b).filter(is_empty).map(|lobbies| lobbies[0]).collect()
    }

    /// The endpoints of an entry, in this place, that count towards the caps of their source.
    fn charged_at(&self, slot: SlotIndex, is_here: &dyn Fn(IpAddr) -> bool) -> impl Iterator<Item = IpAddr> {
        let cold = self.slots.cold(slot);
        let is_charged = cold.server.origin.is_charged();
        let endpoints = cold.endpoints.iter().flatten().map(|endpoint| endpoint.internal.ip);
        endpoints.filter(move |&ip| is_charged && is_here(ip))
    }

    /// Whether an entry has an endpoint, in this place, that counts towards the caps of its source.
    fn is_charged_at(&self, slot: SlotIndex, is_here: &dyn Fn(IpAddr) -> bool) -> bool {
        self.charged_at(slot, is_here).next().is_some()
    }

    /// Counts an endpoint towards the caps of its source, if its server is charged.
    pub(super) fn charge_endpoint(&mut self, slot: SlotIndex, source: IpAddr) {
        let cold = self.slots.cold(slot);
        let is_unproven = cold.trust < Trust::Proven;
        if cold.server.origin.is_charged() {
            self.usage.charge(source, cold.server.memory());
            if is_unproven {
                self.usage.link(&mut self.slots, slot, source);
            }
        }
    }

    pub(super) fn uncharge_endpoint(&mut self, slot: SlotIndex, source: IpAddr) {
        let cold = self.slots.cold(slot);
        let memory = cold.server.memory();
        let is_unproven = cold.trust < Trust::Proven;
        if cold.server.origin.is_charged() {
            if is_unproven {
                self.usage.unlink(&mut self.slots, slot, source);
            }
            self.usage.uncharge(source, memory);
        }
    }

    /// Counts the memory of an entry whose data has changed, in place of `before` bytes.
    pub(super) fn recharge_memory(&mut self, slot: SlotIndex, before: usize) {
        let cold = self.slots.cold(slot);
        let after = cold.server.memory();
        if before == after {
            return;
        }
        self.usage.memory = self.usage.memory - before + after;
        if cold.server.origin.is_charged() {
            for endpoint in cold.endpoints.iter().flatten() {
                if let Some(network) = self.usage.networks.get_mut(&Site::of(endpoint.internal.ip)) {
                    network.memory = network.memory - before + after;
                }
            }
        }
    }
}
