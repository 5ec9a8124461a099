//! Values to filter by, which the form of the list suggests.

use crate::{WebSettings, filter::Filter};
use rallypoint_lobby::TableSnapshot;
use rallypoint_wire::lobby::ListId;
use std::{cmp::Reverse, collections::HashMap};

/// Maximum number of suggestions for each field: the most common values.
const MAX_SUGGESTIONS: usize = 50;

/// The lists with the most servers, and the most common values of each text field.
#[derive(Debug)]
pub(super) struct Facets {
    pub lists: Vec<ListChoice>,
    pub values: CommonValues,
    /// The game that is filtered by, if it is not one of the most common.
    pub other_game: Option<String>,
}

#[derive(Debug)]
pub(super) struct ListChoice {
    pub id: String,
    pub name: String,
    pub servers: usize,
    pub is_selected: bool,
}

/// The most common values of the servers of one list, or of all.
#[derive(Debug)]
pub(super) struct CommonValues {
    pub games: Vec<GameChoice>,
    pub maps: Vec<String>,
    pub versions: Vec<String>,
}

/// A game to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GameChoice {
    /// The short name, which the filter compares.
    pub value: String,
    /// The full name, or the short one if there is no other.
    pub label: String,
    pub servers: usize,
}

impl Facets {
    /// The values to suggest for a filter. Counting those of 10,000 servers takes half a millisecond, so they are not kept.
    pub fn count(snapshot: &TableSnapshot, filter: &Filter, settings: &WebSettings) -> Self {
        let mut lists: Vec<_> = snapshot.lists().iter().map(|(id, totals)| (*id, totals.servers)).collect();
        lists.sort_by_key(|(_, servers)| Reverse(*servers));
        lists.truncate(MAX_SUGGESTIONS);
        if let Some(selected) = filter.list
            && !lists.iter().any(|(id, _)| *id == selected)
        {
            lists.push((selected, snapshot.lists().get(&selected).map_or(0, |totals| totals.servers)));
        }
        let choice = |(id, servers): (ListId, usize)| ListChoice {
            id: id.to_string(),
            name: settings.names.short(&id),
            servers,
            is_selected: filter.list == Some(id),
        };
        let values = CommonValues::count(snapshot, filter.list);
        let other_game = filter.game.clone().filter(|game| !values.games.iter().any(|choice| choice.value == *game));
        Self { lists: lists.into_iter().map(choice).collect(), values, other_game }
    }
}

impl CommonValues {
    fn count(snapshot: &TableSnapshot, list: Option<ListId>) -> Self {
        let mut games: HashMap<&str, usize> = HashMap::new();
        let mut game_names: HashMap<&str, &str> = HashMap::new();
        let mut maps = HashMap::new();
        let mut versions = HashMap::new();
        for row in snapshot.records().filter(|row| list.is_none_or(|list| list == row.list)) {
            *games.entry(&*row.game).or_insert(0) += 1;
            game_names.entry(&*row.game).or_insert(if row.game_name.is_empty() { &*row.game } else { &*row.game_name });
            *maps.entry(&*row.map).or_insert(0) += 1;
            *versions.entry(&*row.version).or_insert(0) += 1;
        }
        let game = |(value, servers): (&str, usize)| GameChoice {
            value: value.to_owned(),
            label: game_names.get(value).copied().unwrap_or(value).to_owned(),
            servers,
        };
        let texts = |counts| most_common(counts).into_iter().map(|(text, _)| text.to_owned()).collect();
        let games = most_common(games).into_iter().map(game).collect();
        Self { games, maps: texts(maps), versions: texts(versions) }
    }
}

/// The non-empty values with the highest counts.
fn most_common(counts: HashMap<&str, usize>) -> Vec<(&str, usize)> {
    let mut counts: Vec<_> = counts.into_iter().filter(|(text, _)| !text.is_empty()).collect();
    let by_count = |(text, count): &(&str, usize)| (Reverse(*count), text.to_string());
    if counts.len() > MAX_SUGGESTIONS {
        counts.select_nth_unstable_by(MAX_SUGGESTIONS, |(text, count), (other, other_count)| {
            other_count.cmp(count).then(text.cmp(other))
        });
        counts.truncate(MAX_SUGGESTIONS);
    }
    counts.sort_by_cached_key(by_count);
    counts
}
