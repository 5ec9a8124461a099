//! The open lobbies: how many servers each has, and which network opened it.
//!
//! Any UUID opens a lobby, so their number has to be bounded, and one network must not be able to use it up.

use crate::hash::{KeyedHash, KeyedMap, decrement};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::LobbyId;

#[derive(Debug)]
pub(super) struct LobbyTable {
    by_id: KeyedMap<LobbyId, Lobby>,
    /// Number of open lobbies per network that opened them. Lobbies that were restored after a restart are not charged.
    by_site: KeyedMap<Site, usize>,
    /// Number of open lobbies that count towards the cap: those that the operator has not named.
    unnamed: usize,
}

#[derive(Debug)]
struct Lobby {
    /// Number of registered servers, listed or not.
    servers: usize,
    is_named: bool,
    opener: Option<Site>,
}

/// Numbers of open lobbies that count towards the caps.
pub(super) struct OpenLobbies {
    pub total: usize,
    /// Those opened by one network.
    pub by_network: usize,
}

impl LobbyTable {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { by_id: keyed.map(), by_site: keyed.map(), unnamed: 0 }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Number of servers in a lobby; `None` if it is not open.
    pub fn servers(&self, id: LobbyId) -> Option<usize> {
        self.by_id.get(&id).map(|lobby| lobby.servers)
    }

    /// Numbers of open lobbies, in all and of one network, not counting `without`.
    pub fn open_without(&self, site: Option<Site>, without: impl Iterator<Item = LobbyId>) -> OpenLobbies {
        let by_network = site.and_then(|site| self.by_site.get(&site)).copied().unwrap_or(0);
        let mut open = OpenLobbies { total: self.unnamed, by_network };
        for lobby in without.filter_map(|id| self.by_id.get(&id)).filter(|lobby| !lobby.is_named) {
            open.total -= 1;
            open.by_network -= usize::from(site.is_some() && lobby.opener == site);
        }
        open
    }

    /// Adds a server to a lobby. The first one opens it.
    pub fn join(&mut self, id: LobbyId, is_named: bool, opener: Option<Site>) {
        let lobby = self.by_id.entry(id).or_insert_with(|| {
            let opener = opener.filter(|_| !is_named);
            self.unnamed += usize::from(!is_named);
            if let Some(site) = opener {
                *self.by_site.entry(site).or_default() += 1;
            }
            Lobby { servers: 0, is_named, opener }
        });
        lobby.servers += 1;
    }

    /// Removes a server from a lobby. The last one closes it.
    pub fn leave(&mut self, id: LobbyId) {
        let Some(lobby) = self.by_id.get_mut(&id) else { return };
        lobby.servers -= 1;
        if lobby.servers == 0 {
            self.unnamed -= usize::from(!lobby.is_named);
            if let Some(site) = lobby.opener {
                decrement(&mut self.by_site, site);
            }
            self.by_id.remove(&id);
        }
    }

    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, servers: &KeyedMap<LobbyId, usize>) {
        assert_eq!(servers.len(), self.by_id.len(), "lobbies");
        assert!(servers.iter().all(|(id, &count)| self.servers(*id) == Some(count)), "servers per lobby");
        let unnamed = || self.by_id.values().filter(|lobby| !lobby.is_named);
        assert_eq!(unnamed().count(), self.unnamed, "lobbies that count");
        let opened = unnamed().filter(|lobby| lobby.opener.is_some()).count();
        assert_eq!(opened, self.by_site.values().sum::<usize>(), "openers");
    }
}
