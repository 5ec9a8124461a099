//! The caps on servers, lobbies and memory, and the usage that is counted against them.

use super::{Registry, lobby_table::LobbyTable};
use crate::{
    RegistrationOutcome,
    hash::{KeyedHash, KeyedMap, decrement},
    index::SlotIndex,
    listed_server::memory_of,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::{LobbyId, Registration};

/// Size of a block in the list besides the table: its length, two endpoints, occupancy and so on.
const BLOCK_HEADER: usize = 64;

/// Servers with no more data than this, in bytes, may still be updated when the memory is used up.
pub(super) const MODEST: usize = 1_024;

/// What is counted against the caps.
#[derive(Debug)]
pub(super) struct Usage {
    pub lobbies: LobbyTable,
    /// Number of registered endpoints per source.
    pub per_lan: KeyedMap<Lan, usize>,
    /// Estimated memory use of all entries, in bytes.
    pub memory: usize,
}

impl Usage {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { lobbies: LobbyTable::new(keyed), per_lan: keyed.map(), memory: 0 }
    }

    pub fn charge_lan(&mut self, lan: Lan) {
        *self.per_lan.entry(lan).or_default() += 1;
    }

    pub fn uncharge_lan(&mut self, lan: Lan) {
        decrement(&mut self.per_lan, lan);
    }
}

/// The space that a server needs.
pub(super) struct SpaceRequest {
    /// The source whose servers are counted; `None` if the server is not charged.
    pub lan: Option<Lan>,
    pub lobby: LobbyId,
    /// The network that is charged if the lobby is new.
    pub opener: Option<Site>,
    /// Size of the server's block in the list, in bytes.
    pub size: usize,
}

impl SpaceRequest {
    /// The space for a server that is not charged to a source.
    pub fn uncharged(new: &Registration<'_>) -> Self {
        // The block is at most this much larger than the table.
        Self { lan: None, lobby: new.lobby_id(), opener: None, size: new.table().size() + BLOCK_HEADER }
    }
}

impl Registry {
    /// Counts the memory of an entry whose server has changed; `before` is what was counted for it until now.
    pub(super) fn recharge_memory(&mut self, slot: SlotIndex, before: usize) {
        self.usage.memory = self.usage.memory - before + self.slots.cold(slot).server.memory();
    }

    /// The cap that a request would exceed, if any, taking into account the space that its own entry and the replaced one
    /// would free.
    pub(super) fn find_cap_reached(
        &self,
        request: &SpaceRequest,
        known: Option<SlotIndex>,
        replaced: Option<SlotIndex>,
    ) -> Option<RegistrationOutcome> {
        let caps = &self.config.caps;
        let own = || known.into_iter().chain(replaced);
        let lobby_of = |slot| self.slots.cold(slot).server.lobby_id;
        if own().next().is_none() && self.slots.len() >= caps.total {
            return Some(RegistrationOutcome::RegistryFull);
        }
        match self.usage.lobbies.servers(request.lobby) {
            Some(count) if count >= caps.per_lobby && !own().any(|slot| lobby_of(slot) == request.lobby) => {
                return Some(RegistrationOutcome::LobbyFull);
            }
            None if !self.config.named_lobbies.contains(&request.lobby) => {
                let closing = self.lobbies_only_of(known, replaced);
                let open = self.usage.lobbies.open_without(request.opener, closing);
                if open.total >= caps.lobbies || open.by_network >= caps.lobbies_per_network {
                    return Some(RegistrationOutcome::TooManyLobbies);
                }
            }
            _ => {}
        }
        if let Some(lan) = request.lan {
            let count = self.usage.per_lan.get(&lan).copied().unwrap_or(0);
            if count >= caps.per_address && !own().any(|slot| self.is_from_lan(slot, lan)) {
                return Some(RegistrationOutcome::AddressFull);
            }
        }
        let freed: usize = own().map(|slot| self.slots.cold(slot).server.memory()).sum();
        let others = self.usage.memory - freed;
        let needed = memory_of(request.size);
        // Registered servers can be updated within reason even if others have used up the rest.
        let extra = if freed > 0 && request.size <= MODEST { caps.memory / 8 } else { 0 };
        let is_full = needed > freed && others + needed > caps.memory.saturating_add(extra);
        is_full.then_some(RegistrationOutcome::MemoryFull)
    }

    /// The lobbies that would be empty without these servers.
    fn lobbies_only_of(&self, a: Option<SlotIndex>, b: Option<SlotIndex>) -> impl Iterator<Item = LobbyId> {
        let lobby_of = |slot: Option<SlotIndex>| slot.map(|slot| self.slots.cold(slot).server.lobby_id);
        let a = lobby_of(a);
        let b = lobby_of(b);
        let with =
            |lobby: Option<LobbyId>, servers| lobby.filter(|&id| self.usage.lobbies.servers(id) == Some(servers));
        let empty = if a == b { [with(a, 2), None] } else { [with(a, 1), with(b, 1)] };
        empty.into_iter().flatten()
    }

    fn is_from_lan(&self, slot: SlotIndex, lan: Lan) -> bool {
        let cold = self.slots.cold(slot);
        let mut endpoints = cold.endpoints.iter().flatten();
        cold.server.origin.is_charged() && endpoints.any(|endpoint| Lan::of(endpoint.internal.ip) == lan)
    }
}
