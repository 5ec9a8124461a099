//! The memory of the replies that servers gave to probes, which are kept for their pages (W42).
//!
//! A reply with 255 players takes tens of kilobytes, a hundred times as much as a registration, and any registration with
//! `x-query` is probed. So replies have a budget of their own, in total and per network. What only the page of a server shows goes
//! first: player lists, teams, mods, tags and descriptions have half of each budget, and the rest of the reply is kept when that
//! half is used up.

use rallypoint_limit::Site;
use rallypoint_query_proto::{Mod, Player, ServerInfo, Team};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// One network (/24 or /48) has this fraction (1/16) of the budget.
const NETWORK_SHARE: usize = 16;

/// Overhead of an allocation, in bytes.
const ALLOCATION: usize = 16;

/// Size of the entry of a reply in the tables, in bytes.
const ROW: usize = 256;

#[derive(Debug)]
pub(super) struct AnswerBudget {
    max: usize,
    used: usize,
    /// `None` are the replies of servers whose network is not known.
    by_network: HashMap<Option<Site>, usize>,
}

/// The share of one reply in the budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerCharge {
    network: Option<Site>,
    bytes: usize,
}

impl AnswerBudget {
    pub fn new(max: usize) -> Self {
        Self { max, used: 0, by_network: HashMap::new() }
    }

    /// Charges the part of a reply that may be kept, and returns it: all of it, or without what only its page shows, or nothing.
    pub fn charge(
        &mut self,
        network: Option<Site>,
        info: Option<Arc<ServerInfo>>,
    ) -> (Option<Arc<ServerInfo>>, AnswerCharge) {
        let none = AnswerCharge { network, bytes: 0 };
        let Some(info) = info else { return (None, none) };
        let bytes = memory_of(&info);
        if self.take(network, bytes, self.max / 2) {
            return (Some(info), AnswerCharge { network, bytes });
        }
        let rest = ServerInfo {
            player_list: None,
            description: None,
            mods: Vec::new(),
            tags: Vec::new(),
            teams: Vec::new(),
            ..ServerInfo::clone(&info)
        };
        let bytes = memory_of(&rest);
        if self.take(network, bytes, self.max) {
            return (Some(Arc::new(rest)), AnswerCharge { network, bytes });
        }
        (None, none)
    }

    /// Returns the share of a reply that is not kept any more.
    pub fn release(&mut self, charge: AnswerCharge) {
        let AnswerCharge { network, bytes } = charge;
        self.used -= bytes;
        if let Entry::Occupied(mut used) = self.by_network.entry(network) {
            *used.get_mut() -= bytes;
            if *used.get() == 0 {
                used.remove();
            }
        }
    }

    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.used == 0 && self.by_network.is_empty()
    }

    /// Takes bytes if no more than `max` are in use then, and no more than the network's share of that.
    fn take(&mut self, network: Option<Site>, bytes: usize, max: usize) -> bool {
        let by_network = self.by_network.get(&network).copied().unwrap_or(0);
        if self.used + bytes > max || by_network + bytes > max / NETWORK_SHARE {
            return false;
        }
        self.used += bytes;
        self.by_network.insert(network, by_network + bytes);
        true
    }
}

/// Estimated memory of a trimmed reply, in bytes. Names of players are stored twice, because they are searched in lower case, and
/// two bytes can become three then.
fn memory_of(info: &ServerInfo) -> usize {
    let text = |text: &str| text.len() + ALLOCATION;
    let folded = |text: &str| text.len() + text.len() / 2;
    let texts = [
        &info.name,
        &info.description,
        &info.game,
        &info.game_name,
        &info.mode,
        &info.map,
        &info.version,
        &info.website,
    ];
    let texts: usize = texts.into_iter().flatten().map(|value| text(value)).sum();
    let players = info.player_list.iter().flatten();
    let players: usize = players.map(|player| size_of::<Player>() + text(&player.name) + folded(&player.name)).sum();
    let teams: usize = info.teams.iter().map(|team| size_of::<Team>() + text(&team.name)).sum();
    let names_of = |one: &Mod| one.id.iter().chain(&one.name).map(|name| text(name)).sum::<usize>();
    let mods: usize = info.mods.iter().map(|one| size_of::<Mod>() + names_of(one)).sum();
    let tags: usize = info.tags.iter().map(|tag| size_of::<String>() + text(tag)).sum();
    ROW + size_of::<ServerInfo>() + texts + players + teams + mods + tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u8) -> Option<Site> {
        Some(Site::of([203, 0, number, 1].into()))
    }

    /// A reply with 255 players.
    fn answer() -> Option<Arc<ServerInfo>> {
        let player = Player { name: "\u{20ac}".repeat(32), ..Player::default() };
        let name = Some("x".repeat(100));
        Some(Arc::new(ServerInfo { name, player_list: Some(vec![player; 255]), ..ServerInfo::default() }))
    }

    #[test]
    fn w42_player_lists_go_first_and_then_whole_replies() {
        let mut budget = AnswerBudget::new(8 << 20);
        let mut charges = Vec::new();
        let mut kept = [0; 3];
        for number in 0..20_000u32 {
            let (info, charge) = budget.charge(network(number as u8), answer());
            let kind = info.map_or(2, |info| usize::from(info.player_list.is_none()));
            kept[kind] += 1;
            charges.push(charge);
            assert!(budget.used <= 8 << 20);
        }
        let [full, partial, none] = kept;
        assert!((30..80).contains(&full) && partial > 4_000 && none > 1_000, "{kept:?}");
        charges.into_iter().for_each(|charge| budget.release(charge));
        assert!(budget.is_empty());
    }

    #[test]
    fn w42_one_network_leaves_room_for_others() {
        let mut budget = AnswerBudget::new(8 << 20);
        let mut charge = |number| budget.charge(network(number), answer()).0;
        let full = (0..20_000).filter(|_| charge(1).is_some_and(|info| info.player_list.is_some())).count();
        assert!((1..12).contains(&full), "{full}");
        assert!(charge(2).is_some_and(|info| info.player_list.is_some()));
    }
}
