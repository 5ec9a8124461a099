//! Which servers are shown, and in which order.

use crate::ask::output::record::Record;
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

/// What is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Every word of it has to be somewhere in what a server tells.
    pub words: String,
    pub favourites: bool,
    pub not_empty: bool,
    pub not_full: bool,
    pub no_password: bool,
}

impl Column {
    pub const ALL: [Self; 7] =
        [Self::Favourite, Self::Name, Self::Map, Self::Players, Self::Ping, Self::Game, Self::Address];

    /// What stands above it.
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

    /// The next one, or the one before.
    pub fn step(self, forward: bool) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        let count = Self::ALL.len();
        Self::ALL[(at + if forward { 1 } else { count - 1 }) % count]
    }

    /// Whether the largest is wanted on top.
    pub const fn starts_with_most(self) -> bool {
        matches!(self, Self::Players | Self::Favourite)
    }

    /// By what servers are sorted; what is not known comes last in either direction. Among equals the busier comes first,
    /// then names decide.
    pub fn key(self, record: &Record, is_favourite: bool, most_first: bool) -> impl Ord + use<> {
        let text =
            |text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| Part::Text(text.to_lowercase()));
        let info = &record.info;
        let part = match self {
            Self::Favourite => Some(Part::Number(is_favourite.into())),
            Self::Name => text(Some(record.name())),
            Self::Map => text(info.map.as_deref()),
            Self::Game => text(record.game()),
            Self::Players => info.players.map(|players| Part::Number(players.into())),
            Self::Ping => record.answer.as_ref().map(|answer| Part::Number((answer.ping_ms * 1e3) as u64)),
            Self::Address => record.address.map(Part::Address),
        };
        let (up, down) = if most_first { (None, Some(Reverse(part.clone()))) } else { (part.clone(), None) };
        (part.is_none(), up, down, Reverse(info.players), record.name().to_lowercase(), record.address)
    }
}

/// What stands in a column.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
    Address(SocketAddr),
}

impl Filter {
    /// Whether a server is shown.
    pub fn shows(&self, record: &Record, is_favourite: bool) -> bool {
        let info = &record.info;
        let players = info.players.unwrap_or(0);
        let is_full = info.max_players.is_some_and(|most| most > 0 && players >= most);
        !(self.favourites && !is_favourite
            || self.not_empty && players == 0
            || self.not_full && is_full
            || self.no_password && info.password == Some(true))
            && self.words.split_whitespace().all(|word| says(record, &word.to_lowercase()))
    }

    /// Whether anything may be hidden.
    pub fn is_on(&self) -> bool {
        *self != Self::default()
    }

    /// In a few words.
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

fn says(record: &Record, word: &str) -> bool {
    let info = &record.info;
    let texts = [&info.name, &info.map, &info.game, &info.game_name, &info.mode, &info.description, &info.version];
    let has = |text: &str| text.to_lowercase().contains(word);
    texts.into_iter().flatten().any(|text| has(text))
        || info.tags.iter().any(|tag| has(tag))
        || info.player_list.iter().flatten().any(|player| has(&player.name))
        || record.endpoints.iter().chain(&record.address).any(|address| has(&address.to_string()))
        || has(&record.target)
}
