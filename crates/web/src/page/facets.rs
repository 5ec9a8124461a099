//! Values to filter by, which the form of the list suggests.

use crate::{WebSettings, filter::Filter, render_age::RenderAge};
use rallypoint_lobby::TableSnapshot;
use rallypoint_wire::lobby::ListId;
use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of suggestions for each field: the most common values.
const MAX_SUGGESTIONS: usize = 50;

/// Maximum age of counts of an earlier snapshot, whatever counting costs.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Maximum number of lobbies whose counts are kept.
const MAX_LOBBIES: usize = 64;

/// The lobbies, and the most common values of each text field.
#[derive(Debug)]
pub(super) struct Facets {
    pub lobbies: Vec<LobbyChoice>,
    pub values: Arc<CommonValues>,
    /// The game that is filtered by, if it is not one of the most common.
    pub other_game: Option<String>,
}

#[derive(Debug)]
pub(super) struct LobbyChoice {
    pub id: String,
    pub name: String,
    pub servers: usize,
    pub is_selected: bool,
}

/// The most common values of the servers of one lobby, or of all.
#[derive(Debug)]
pub(super) struct CommonValues {
    /// The lobbies with the most servers, and their number; only if the values are those of all lobbies.
    lobbies: Vec<(ListId, usize)>,
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

/// The most common values, counted once for each snapshot and lobby.
#[derive(Debug, Default)]
pub(crate) struct FacetCache(Mutex<HashMap<Option<ListId>, Counted>>);

#[derive(Clone, Debug)]
struct Counted {
    age: RenderAge,
    values: Arc<CommonValues>,
}

impl FacetCache {
    /// The values to suggest for a filter.
    pub(super) fn facets(&self, snapshot: &TableSnapshot, filter: &Filter, settings: &WebSettings) -> Facets {
        let all = self.values(snapshot, None);
        let mut lobbies = all.lobbies.clone();
        if let Some(selected) = filter.lobby
            && !lobbies.iter().any(|(id, _)| *id == selected)
        {
            lobbies.push((selected, snapshot.lobbies().get(&selected).map_or(0, |totals| totals.servers)));
        }
        let choice = |(id, servers): (ListId, usize)| LobbyChoice {
            id: id.to_string(),
            name: settings.names.short(&id),
            servers,
            is_selected: filter.lobby == Some(id),
        };
        // A client can request any UUID: values are kept only for lobbies that exist.
        let values = match filter.lobby.filter(|lobby| snapshot.lobbies().contains_key(lobby)) {
            None if filter.lobby.is_some() => Arc::new(CommonValues::count(&TableSnapshot::empty(), None)),
            lobby => self.values(snapshot, lobby),
        };
        let other_game = filter.game.clone().filter(|game| !values.games.iter().any(|choice| choice.value == *game));
        Facets { lobbies: lobbies.into_iter().map(choice).collect(), values, other_game }
    }

    fn values(&self, snapshot: &TableSnapshot, lobby: Option<ListId>) -> Arc<CommonValues> {
        let version = snapshot.version();
        if let Some(counted) = self.counted().get(&lobby)
            && counted.age.is_fresh(version, MAX_AGE)
        {
            return Arc::clone(&counted.values);
        }
        let started = Instant::now();
        let values = Arc::new(CommonValues::count(snapshot, lobby));
        let counted = Counted { age: RenderAge::new(version, started), values: Arc::clone(&values) };
        let mut cache = self.counted();
        if cache.len() > MAX_LOBBIES && !cache.contains_key(&lobby) {
            cache.retain(|lobby, counted| lobby.is_none() || counted.age.is_fresh(version, MAX_AGE));
            if cache.len() > MAX_LOBBIES {
                cache.retain(|lobby, _| lobby.is_none());
            }
        }
        cache.insert(lobby, counted);
        values
    }

    fn counted(&self) -> MutexGuard<'_, HashMap<Option<ListId>, Counted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommonValues {
    fn count(snapshot: &TableSnapshot, lobby: Option<ListId>) -> Self {
        let mut games: HashMap<&str, usize> = HashMap::new();
        let mut game_names: HashMap<&str, &str> = HashMap::new();
        let mut maps = HashMap::new();
        let mut versions = HashMap::new();
        for row in snapshot.records().filter(|row| lobby.is_none_or(|lobby| lobby == row.lobby)) {
            *games.entry(&*row.game).or_insert(0) += 1;
            game_names.entry(&*row.game).or_insert(if row.game_name.is_empty() { &*row.game } else { &*row.game_name });
            *maps.entry(&*row.map).or_insert(0) += 1;
            *versions.entry(&*row.version).or_insert(0) += 1;
        }
        let mut lobbies = Vec::new();
        if lobby.is_none() {
            lobbies.extend(snapshot.lobbies().iter().map(|(id, totals)| (*id, totals.servers)));
            lobbies.sort_by_key(|(_, servers)| Reverse(*servers));
            lobbies.truncate(MAX_SUGGESTIONS);
        }
        let game = |(value, servers): (&str, usize)| GameChoice {
            value: value.to_owned(),
            label: game_names.get(value).copied().unwrap_or(value).to_owned(),
            servers,
        };
        let texts = |counts| most_common(counts).into_iter().map(|(text, _)| text.to_owned()).collect();
        let games = most_common(games).into_iter().map(game).collect();
        Self { lobbies, games, maps: texts(maps), versions: texts(versions) }
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
