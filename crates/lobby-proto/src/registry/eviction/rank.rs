//! Eviction order: which entries give way, and to which newcomers.

use super::{super::Registry, Victims};
use crate::{
    entry::Trust,
    index::SlotIndex,
    registry::{capacity::SpaceRequest, chains::Chain, seen_endpoints::Priority, trust::KNOWN_FOR},
    wheel::Tick,
};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::LobbyId;
use std::{cmp::Reverse, net::IpAddr};

/// A network with more than this fraction (1/16) of all servers or all memory is large: its unproven entries give way to any
/// smaller network.
const LARGE_SHARE: usize = 16;

/// Servers and bytes of memory up to which a network is not large, however low the caps are.
const MAX_SMALL: (usize, usize) = (64, 1 << 20);

/// Servers of a lobby that can be evicted to close it.
const MAX_LOBBY: usize = 16;

const PERMILLE: usize = 1_000;

/// Order in which entries give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// In a network that is larger than that of the request. The largest one loses an entry.
    Large(Reverse<usize>),
    /// It has not returned.
    New,
    Returned,
    /// A server was listed at its endpoint before.
    Known,
    /// It has been registered for ten minutes.
    Established,
}

/// The entries among which one has to give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// Those of a source, a network or a lobby, which a forger of few addresses can fill: a server that returns does not push
    /// out another one, because then those of a full address would push out each other for ever.
    Neighbours,
    /// All: newcomers and forgeries that return share the places by chance.
    All,
}

impl Rank {
    /// Whether an entry of this rank gives way to a registration with this priority.
    pub fn gives_way(self, priority: Priority, among: Among) -> bool {
        match (priority, self) {
            (_, Self::Large(_)) | (Priority::Former, _) | (Priority::Returning, Self::New) => true,
            (Priority::Returning, _) => among == Among::All,
            (Priority::New, _) => false,
        }
    }

    /// Whether nothing but chance decides between entries of this rank and higher ones. The newest of them would be the
    /// server that was let in last, which is as likely honest as any other.
    pub fn is_by_chance(self) -> bool {
        self >= Self::Known
    }
}

/// Whether a network of this size is large.
pub(super) const fn is_large(size: usize) -> bool {
    size > PERMILLE / LARGE_SHARE
}

impl Registry {
    /// The rank of an entry, seen from a network of this size.
    pub(super) fn rank(&self, now: Tick, slot: SlotIndex, own_size: usize) -> Rank {
        let size = self.size_of_network(slot);
        if is_large(size) && size > own_size {
            return Rank::Large(Reverse(size));
        }
        match self.trust(now, slot) {
            Trust::Unproven if !self.has_returned(slot) => Rank::New,
            Trust::Unproven if now < self.slots.cold(slot).admitted.plus(KNOWN_FOR) => Rank::Returned,
            Trust::Unproven => Rank::Established,
            Trust::Known | Trust::Proven => Rank::Known,
        }
    }

    /// The size of the network of an entry: the larger one, if its endpoints are in two.
    pub(super) fn size_of_network(&self, slot: SlotIndex) -> usize {
        let endpoints = self.slots.cold(slot).endpoints;
        endpoints.iter().flatten().map(|endpoint| self.network_size(endpoint.internal.ip)).max().unwrap_or(0)
    }

    /// The share of a network in the caps on servers and memory, whichever is greater, in permille; 0 for a small network.
    pub(super) fn network_size(&self, ip: IpAddr) -> usize {
        let caps = &self.config.caps;
        let (max_servers, max_memory) = MAX_SMALL;
        self.usage.networks.get(&Site::of(ip)).map_or(0, |network| {
            let count = network.endpoints as usize;
            if count <= max_servers && network.memory <= max_memory {
                return 0;
            }
            let servers = PERMILLE * count / caps.total;
            servers.max(PERMILLE * (network.memory / 1_024) / (caps.memory / 1_024))
        })
    }

    /// The order in which lobbies give way: by the best of their servers, then by their number. `None` if a lobby stays.
    pub(super) fn lobby_rank(
        &self,
        now: Tick,
        lobby: LobbyId,
        request: &SpaceRequest,
        victims: &Victims,
    ) -> Option<(Rank, usize)> {
        let count = self.usage.lobbies.servers(lobby)?;
        let newest = self.usage.lobbies.newest(lobby);
        let servers: Vec<_> = self.slots.chain(Chain::Lobby, newest).take(MAX_LOBBY + 1).collect();
        let is_kept = |&slot: &SlotIndex| request.is_own(slot) || victims.contains(slot);
        // A proven server is not in the chain.
        if servers.len() != count || count > MAX_LOBBY || servers.iter().any(is_kept) {
            return None;
        }
        let best = servers.into_iter().map(|slot| self.rank(now, slot, usize::MAX)).max()?;
        Some((best, count))
    }
}
