//! Values to filter by, which the form of the list suggests.

use crate::{WebSettings, filter::Filter};
use rallypoint_lobby::TableSnapshot;
use std::{cmp::Reverse, collections::HashMap};

/// Maximum number of suggestions for each field: the most common values.
const MAX_SUGGESTIONS: usize = 50;

/// The lobbies, and the most common values of each text field.
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
    pub is_selected: bool,
}

impl Facets {
    pub fn of(snapshot: &TableSnapshot, filter: &Filter, settings: &WebSettings) -> Self {
        let mut games = HashMap::new();
        let mut maps = HashMap::new();
        let mut versions = HashMap::new();
        for row in snapshot.records().filter(|row| filter.lobby.is_none_or(|lobby| lobby == row.lobby)) {
            *games.entry(&*row.game).or_insert(0) += 1;
            *maps.entry(&*row.map).or_insert(0) += 1;
            *versions.entry(&*row.version).or_insert(0) += 1;
        }
        let lobbies = lobbies(snapshot, filter, settings);
        Self { lobbies, games: most_common(games), maps: most_common(maps), versions: most_common(versions) }
    }
}

/// The lobbies with the most servers, and the selected one.
fn lobbies(snapshot: &TableSnapshot, filter: &Filter, settings: &WebSettings) -> Vec<LobbyChoice> {
    let mut all: Vec<_> = snapshot.lobbies().iter().map(|(id, totals)| (*id, totals.servers)).collect();
    all.sort_by_key(|(_, servers)| Reverse(*servers));
    all.truncate(MAX_SUGGESTIONS);
    if let Some(selected) = filter.lobby
        && !all.iter().any(|(id, _)| *id == selected)
    {
        all.push((selected, snapshot.lobbies().get(&selected).map_or(0, |totals| totals.servers)));
    }
    let choice = |(id, servers)| LobbyChoice {
        id: rallypoint_wire::lobby::LobbyId::to_string(&id),
        name: settings.names.short(&id),
        servers,
        is_selected: filter.lobby == Some(id),
    };
    all.into_iter().map(choice).collect()
}

/// The non-empty values with the highest counts.
fn most_common(counts: HashMap<&str, usize>) -> Vec<String> {
    let mut counts: Vec<_> = counts.into_iter().filter(|(text, _)| !text.is_empty()).collect();
    counts.sort_unstable_by_key(|(text, count)| (Reverse(*count), *text));
    counts.into_iter().take(MAX_SUGGESTIONS).map(|(text, _)| text.to_owned()).collect()
}
