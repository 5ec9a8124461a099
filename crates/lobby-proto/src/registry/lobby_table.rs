//! The open lobbies: how many servers each has, and which network opened it.
//!
//! Any UUID opens a lobby, so their number has to be bounded, and one network must not be able to use it up.

use super::{Slots, chains::Chain, sample_set::RandomIndices};
use crate::{
    hash::{KeyedHash, KeyedMap, decrement},
    index::SlotIndex,
};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::LobbyId;

#[derive(Debug)]
pub(super) struct LobbyTable {
    by_id: KeyedMap<LobbyId, Lobby>,
    /// Number of open lobbies per network that opened them. Lobbies that were restored after a restart are not charged.
    by_site: KeyedMap<Site, usize>,
    /// Open lobbies that count towards the cap: those that the operator has not named.
    unnamed: Vec<LobbyId>,
    random: RandomIndices,
}

#[derive(Debug)]
struct Lobby {
    /// Number of registered servers, listed or not.
    servers: usize,
    /// Position among those that are not named; `None` if it is.
    unnamed_at: Option<usize>,
    opener: Option<Site>,
    /// The newest server that is not proven.
    newest: Option<SlotIndex>,
}

/// Numbers of open lobbies that count towards the caps.
pub(super) struct OpenLobbies {
    pub total: usize,
    /// Those opened by one network.
    pub by_network: usize,
}

impl LobbyTable {
    pub fn new(keyed: KeyedHash) -> Self {
        let random = RandomIndices::new(keyed);
        Self { by_id: keyed.map(), by_site: keyed.map(), unnamed: Vec::new(), random }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Number of servers in a lobby; `None` if it is not open.
    pub fn servers(&self, id: LobbyId) -> Option<usize> {
        self.by_id.get(&id).map(|lobby| lobby.servers)
    }

    /// Numbers of open lobbies, in total and of one network, not counting `without`.
    pub fn open_without(&self, site: Option<Site>, without: impl Iterator<Item = LobbyId>) -> OpenLobbies {
        let by_network = site.and_then(|site| self.by_site.get(&site)).copied().unwrap_or(0);
        let mut open = OpenLobbies { total: self.unnamed.len(), by_network };
        for lobby in without.filter_map(|id| self.by_id.get(&id)).filter(|lobby| lobby.unnamed_at.is_some()) {
            open.total -= 1;
            open.by_network -= usize::from(site.is_some() && lobby.opener == site);
        }
        open
    }

    /// Adds a server to a lobby. The first one opens it.
    pub fn join(&mut self, id: LobbyId, is_named: bool, opener: Option<Site>) {
        let lobby = self.by_id.entry(id).or_insert_with(|| {
            let opener = opener.filter(|_| !is_named);
            let unnamed_at = (!is_named).then_some(self.unnamed.len());
            if !is_named {
                self.unnamed.push(id);
            }
            if let Some(site) = opener {
                *self.by_site.entry(site).or_default() += 1;
            }
            Lobby { servers: 0, unnamed_at, opener, newest: None }
        });
        lobby.servers += 1;
    }

    /// Removes a server from a lobby. The last one closes it.
    pub fn leave(&mut self, id: LobbyId) {
        let Some(lobby) = self.by_id.get_mut(&id) else { return };
        lobby.servers -= 1;
        if lobby.servers > 0 {
            return;
        }
        let unnamed_at = lobby.unnamed_at;
        if let Some(site) = lobby.opener {
            decrement(&mut self.by_site, site);
        }
        self.by_id.remove(&id);
        if let Some(at) = unnamed_at {
            self.unnamed.swap_remove(at);
            if let Some(moved) = self.unnamed.get(at).and_then(|moved| self.by_id.get_mut(moved)) {
                moved.unnamed_at = Some(at);
            }
        }
    }

    /// The newest server of a lobby that is not proven.
    pub fn newest(&self, id: LobbyId) -> Option<SlotIndex> {
        self.by_id.get(&id)?.newest
    }

    /// Adds a server that is not proven to the chain of its lobby, which it has joined.
    pub fn link(&mut self, slots: &mut Slots, id: LobbyId, slot: SlotIndex) {
        if let Some(lobby) = self.by_id.get_mut(&id) {
            slots.link(Chain::Lobby, &mut lobby.newest, slot);
        }
    }

    /// Removes a server from the chain of its lobby, which it has not left yet.
    pub fn unlink(&mut self, slots: &mut Slots, id: LobbyId, slot: SlotIndex) {
        if let Some(lobby) = self.by_id.get_mut(&id) {
            slots.unlink(Chain::Lobby, &mut lobby.newest, slot);
        }
    }

    /// Some lobbies without a name: all of them if there are at most `count`, otherwise random ones.
    pub fn sample(&mut self, count: usize) -> impl Iterator<Item = LobbyId> {
        let Self { unnamed, random, .. } = self;
        random.draw(unnamed.len(), count).map(|at| unnamed[at])
    }

    /// The newest server of every lobby that is not proven.
    #[cfg(any(test, feature = "invariants"))]
    pub fn all_newest(&self) -> impl Iterator<Item = (LobbyId, Option<SlotIndex>)> {
        self.by_id.iter().map(|(id, lobby)| (*id, lobby.newest))
    }

    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, servers: &KeyedMap<LobbyId, usize>) {
        assert_eq!(servers.len(), self.by_id.len(), "lobbies");
        assert!(servers.iter().all(|(id, &count)| self.servers(*id) == Some(count)), "servers per lobby");
        let unnamed = || self.by_id.values().filter(|lobby| lobby.unnamed_at.is_some());
        assert_eq!(unnamed().count(), self.unnamed.len(), "lobbies that count");
        for (at, id) in self.unnamed.iter().enumerate() {
            assert_eq!(self.by_id.get(id).and_then(|lobby| lobby.unnamed_at), Some(at), "position of a lobby");
        }
        let opened = unnamed().filter(|lobby| lobby.opener.is_some()).count();
        assert_eq!(opened, self.by_site.values().sum::<usize>(), "openers");
    }
}
