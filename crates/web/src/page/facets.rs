//! What there is to filter by: offered while somebody types.

use crate::{WebSettings, book::Snapshot, filter::Filter};
use std::{cmp::Reverse, collections::HashMap};

/// So many of each are offered: the most common ones.
const MOST: usize = 50;

/// The most common values of the texts that can be filtered by, and the lobbies.
#[derive(Debug)]
pub(super) struct Facets {
    pub lobbies: Vec<LobbyChoice>,
    pub games: Vec<String>,
    pub maps: Vec<String>,
    pub versions: Vec<String>,
}

#[derive(Debug)]
pub(super) struct LobbyChoice {
    pub id: String,
    pub name: String,
    pub servers: usize,
    pub is_chosen: bool,
}

impl Facets {
    pub fn of(snapshot: &Snapshot, filter: &Filter, settings: &WebSettings) -> Self {
        let (mut games, mut maps, mut versions) = (HashMap::new(), HashMap::new(), HashMap::new());
        for row in snapshot.records().filter(|row| filter.lobby.is_none_or(|lobby| lobby == row.lobby)) {
            *games.entry(&*row.game).or_insert(0) += 1;
            *maps.entry(&*row.map).or_insert(0) += 1;
            *versions.entry(&*row.version).or_insert(0) += 1;
        }
        let lobbies = lobbies(snapshot, filter, settings);
        Self { lobbies, games: most(games), maps: most(maps), versions: most(versions) }
    }
}

/// The lobbies that have servers, the fullest first, and the one that is chosen.
fn lobbies(snapshot: &Snapshot, filter: &Filter, settings: &WebSettings) -> Vec<LobbyChoice> {
    let mut all: Vec<_> = snapshot.lobbies().iter().map(|(id, totals)| (*id, totals.servers)).collect();
    all.sort_by_key(|(_, servers)| Reverse(*servers));
    all.truncate(MOST);
    if let Some(chosen) = filter.lobby
        && !all.iter().any(|(id, _)| *id == chosen)
    {
        all.push((chosen, snapshot.lobbies().get(&chosen).map_or(0, |totals| totals.servers)));
    }
    let choice = |(id, servers)| LobbyChoice {
        id: rallypoint_wire::lobby::LobbyId::to_string(&id),
        name: settings.names.short(&id),
        servers,
        is_chosen: filter.lobby == Some(id),
    };
    all.into_iter().map(choice).collect()
}

fn most(counts: HashMap<&str, usize>) -> Vec<String> {
    let mut counts: Vec<_> = counts.into_iter().filter(|(text, _)| !text.is_empty()).collect();
    counts.sort_unstable_by_key(|(text, count)| (Reverse(*count), *text));
    counts.into_iter().take(MOST).map(|(text, _)| text.to_owned()).collect()
}
