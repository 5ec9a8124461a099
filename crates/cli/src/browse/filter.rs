//! Which servers are shown, and in which order.

use crate::ask::output::record::Record;
use std::cmp::Ordering;

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

    /// How two servers compare; what is not known comes last in either direction.
    pub fn compare(
        self,
        (a, a_is_favourite): (&Record, bool),
        (b, b_is_favourite): (&Record, bool),
        most_first: bool,
    ) -> Ordering {
        let turn = |order: Ordering| if most_first { order.reverse() } else { order };
        let order = match self {
            Self::Favourite => turn(a_is_favourite.cmp(&b_is_favourite)),
            Self::Name => turn(text(Some(a.name())).cmp(&text(Some(b.name())))),
            Self::Map => known(text(a.info.map.as_deref()), text(b.info.map.as_deref()), turn),
            Self::Game => known(text(a.game()), text(b.game()), turn),
            Self::Players => known(a.info.players, b.info.players, turn),
            Self::Ping => known(ping(a), ping(b), turn),
            Self::Address => known(a.address, b.address, turn),
        };
        let busier = || b.info.players.cmp(&a.info.players);
        let by_name = || text(Some(a.name())).cmp(&text(Some(b.name())));
        order.then_with(busier).then_with(by_name).then_with(|| a.address.cmp(&b.address))
    }
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

fn known<T: Ord>(a: Option<T>, b: Option<T>, turn: impl Fn(Ordering) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => turn(a.cmp(&b)),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn text(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_lowercase)
}

/// In microseconds, so that it can be compared.
fn ping(record: &Record) -> Option<u64> {
    record.answer.as_ref().map(|answer| (answer.ping_ms * 1e3) as u64)
}
