//! Filter and sort order of the table.

use rallypoint_query::ScannedServer;
use std::{cmp::Reverse, net::SocketAddr};

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    Favourite,
    Name,
    Map,
    Players,
    Ping,
    Game,
    Address,
}

/// Which servers are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Words that all have to occur in the texts of a server.
    pub words: String,
    /// Only favourites.
    pub favourites: bool,
    pub not_empty: bool,
    pub not_full: bool,
    pub no_password: bool,
}

impl Column {
    pub const ALL: [Self; 7] =
        [Self::Favourite, Self::Name, Self::Map, Self::Players, Self::Ping, Self::Game, Self::Address];

    /// Title of the column.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Favourite => "",
            Self::Name => "Name",
            Self::Map => "Map",
            Self::Players => "Players",
            Self::Ping => "Ping",
            Self::Game => "Game",
            Self::Address => "Address",
        }
    }

    /// The next column, or the previous one.
    pub fn step(self, forward: bool) -> Self {
        let index = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        let count = Self::ALL.len();
        Self::ALL[(index + if forward { 1 } else { count - 1 }) % count]
    }

    /// Whether the largest value comes first by default.
    pub const fn starts_with_most(self) -> bool {
        matches!(self, Self::Players | Self::Favourite)
    }

    /// Sort key of a server. Unknown values come last in either direction. Equal servers are sorted by players, then by name.
    pub fn key(self, record: &ScannedServer, is_favourite: bool, most_first: bool) -> impl Ord + use<> {
        let text =
            |text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| SortValue::Text(text.to_lowercase()));
        let info = &record.info;
        let value = match self {
            Self::Favourite => Some(SortValue::Number(is_favourite.into())),
            Self::Name => text(Some(record.name())),
            Self::Map => text(info.map.as_deref()),
            Self::Game => text(record.game()),
            Self::Players => info.players.map(|players| SortValue::Number(players.into())),
            Self::Ping => record.ping_ms().map(|ping| SortValue::Number((ping * 1e3) as u64)),
            Self::Address => record.address.map(SortValue::Address),
        };
        let is_unknown = value.is_none();
        let (ascending, descending) = if most_first { (None, Some(Reverse(value))) } else { (value, None) };
        (is_unknown, ascending, descending, Reverse(info.players), record.name().to_lowercase(), record.address)
    }
}

/// Value in a column.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SortValue {
    Number(u64),
    Text(String),
    Address(SocketAddr),
}

impl Filter {
    /// Whether a server is shown.
    pub fn shows(&self, record: &ScannedServer, is_favourite: bool) -> bool {
        let info = &record.info;
        let players = info.players.unwrap_or(0);
        let is_full = info.max_players.is_some_and(|most| most > 0 && players >= most);
        !(self.favourites && !is_favourite
            || self.not_empty && players == 0
            || self.not_full && is_full
            || self.no_password && info.password == Some(true))
            && self.words.split_whitespace().all(|word| contains_word(record, &word.to_lowercase()))
    }

    /// Whether any server may be hidden.
    pub fn is_active(&self) -> bool {
        *self != Self::default()
    }

    /// Short description.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        for (is_on, word) in [
            (self.favourites, "favourites"),
            (self.not_empty, "not empty"),
            (self.not_full, "not full"),
            (self.no_password, "no password"),
        ] {
            if is_on {
                parts.push(word.to_owned());
            }
        }
        if !self.words.trim().is_empty() {
            parts.push(format!("\u{201c}{}\u{201d}", self.words.trim()));
        }
        parts.join(", ")
    }
}

fn contains_word(record: &ScannedServer, word: &str) -> bool {
    let info = &record.info;
    let texts = [&info.name, &info.map, &info.game, &info.game_name, &info.mode, &info.description, &info.version];
    let has = |text: &str| text.to_lowercase().contains(word);
    texts.into_iter().flatten().any(|text| has(text))
        || info.tags.iter().any(|tag| has(tag))
        || info.player_list.iter().flatten().any(|player| has(&player.name))
        || record.endpoints.iter().chain(&record.address).any(|address| has(&address.to_string()))
        || has(&record.target)
}
