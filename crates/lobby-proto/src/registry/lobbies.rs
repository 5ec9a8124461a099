//! Which lobbies there are, how many servers each has, and who opened it.
//!
//! Any UUID opens a lobby, so there must be an end to their number; and one network must not be able to use it up.

use super::uncount;
use crate::hash::{Keyed, KeyedMap};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::LobbyId;

#[derive(Debug)]
pub(super) struct Lobbies {
    by_id: KeyedMap<LobbyId, Lobby>,
    /// How many are open by whom. What a restart brought back is charged to nobody.
    by_area: KeyedMap<Site, usize>,
    /// Those that count: the others have a name, and with it a place of their own.
    unnamed: usize,
}

#[derive(Debug)]
struct Lobby {
    /// Registered servers, listed or not.
    servers: usize,
    is_named: bool,
    opener: Option<Site>,
}

impl Lobbies {
    pub fn new(keyed: Keyed) -> Self {
        Self { by_id: keyed.map(), by_area: keyed.map(), unnamed: 0 }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many servers a lobby has; nothing if it is not open.
    pub fn servers(&self, id: LobbyId) -> Option<usize> {
        self.by_id.get(&id).map(|lobby| lobby.servers)
    }

    /// How many lobbies count, and how many of them this network has opened, without these lobbies.
    pub fn open_without(&self, area: Option<Site>, without: impl Iterator<Item = LobbyId>) -> (usize, usize) {
        let ours = area.and_then(|area| self.by_area.get(&area)).copied().unwrap_or(0);
        without
            .filter_map(|id| self.by_id.get(&id))
            .filter(|lobby| !lobby.is_named)
            .fold((self.unnamed, ours), |(unnamed, ours), lobby| {
                (unnamed - 1, ours - usize::from(area.is_some() && lobby.opener == area))
            })
    }

    /// One more server. If it is the first, it opens the lobby.
    pub fn join(&mut self, id: LobbyId, is_named: bool, opener: Option<Site>) {
        let lobby = self.by_id.entry(id).or_insert_with(|| {
            let opener = opener.filter(|_| !is_named);
            self.unnamed += usize::from(!is_named);
            if let Some(area) = opener {
                *self.by_area.entry(area).or_default() += 1;
            }
            Lobby { servers: 0, is_named, opener }
        });
        lobby.servers += 1;
    }

    /// One less. If it was the last, the lobby is closed.
    pub fn leave(&mut self, id: LobbyId) {
        let Some(lobby) = self.by_id.get_mut(&id) else { return };
        lobby.servers -= 1;
        if lobby.servers == 0 {
            self.unnamed -= usize::from(!lobby.is_named);
            if let Some(area) = lobby.opener {
                uncount(&mut self.by_area, area);
            }
            self.by_id.remove(&id);
        }
    }

    pub fn check_invariants(&self, servers: &KeyedMap<LobbyId, usize>) {
        assert_eq!(servers.len(), self.by_id.len(), "lobbies");
        assert!(servers.iter().all(|(id, &count)| self.servers(*id) == Some(count)), "servers per lobby");
        let unnamed = || self.by_id.values().filter(|lobby| !lobby.is_named);
        assert_eq!(unnamed().count(), self.unnamed, "lobbies that count");
        assert_eq!(
            unnamed().filter(|lobby| lobby.opener.is_some()).count(),
            self.by_area.values().sum::<usize>(),
            "openers"
        );
    }
}
