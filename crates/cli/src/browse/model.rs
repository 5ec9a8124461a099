//! What the browser knows and shows, and what every key does. No terminal and no network: keys and news come in, wishes go
//! out.

mod keys;
mod rows;

pub use keys::HELP;
pub use rows::Row;

use super::{
    favourites::Favourites,
    filter::{Column, Filter},
    join::JoinCommand,
    log::Log,
};
use crate::{
    ask::{
        Target, Trouble,
        output::record::Record,
        survey::{News, Seen},
    },
    host::{GAME, GAME_NAME},
};
use rallypoint_session::PublicKey;
use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

/// Everything there is to show.
pub struct Model {
    pub places: Vec<Place>,
    rows: Vec<Row>,
    by_id: HashMap<String, usize>,
    /// Those that are shown, in their order.
    shown: Vec<usize>,
    selected: Option<String>,
    /// Where the chosen one was among those that are shown: if it goes, the one there is chosen.
    selected_at: usize,
    /// The first row on the screen.
    offset: usize,
    /// How many rows the screen has.
    page: usize,
    pub column: Column,
    pub most_first: bool,
    pub filter: Filter,
    pub mode: Mode,
    pub show_details: bool,
    /// How far the details are scrolled.
    pub scroll: u16,
    pub help_scroll: u16,
    pub message: Option<Message>,
    pub favourites: Favourites,
    /// What has happened, if that is wanted.
    pub log: Option<Log>,
    joins: Joins,
    can_reach: fn(SocketAddr) -> bool,
    /// Whether it is looking now.
    pub is_looking: bool,
    look: u32,
    is_dirty: bool,
    /// Counts how often something was drawn while looking: what moves on the screen.
    pub beat: usize,
}

/// A lobby, or whatever else was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    pub state: PlaceState,
}

/// How it is with a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceState {
    Unknown,
    Listed,
    Failed(Trouble),
}

/// What the keys are for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Table,
    Filter,
    Details,
    Help,
    Join,
}

/// A sentence for the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub is_bad: bool,
}

/// What joins a server.
#[derive(Clone, Debug, Default)]
pub struct Joins {
    pub any: Option<JoinCommand>,
    pub by_game: BTreeMap<String, JoinCommand>,
}

/// What the model wants to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    Quit,
    /// Look at all places, and ask these servers, which no list has.
    Look(Vec<Seen>),
    /// Ask one server again.
    Ask(Box<Seen>),
    Join(JoinCommand, SocketAddr),
    /// Stop for now, as other programs do on Ctrl-Z.
    Suspend,
}

impl Model {
    pub fn new(places: &[Target], favourites: Favourites, joins: Joins, can_reach: fn(SocketAddr) -> bool) -> Self {
        let place = |target: &Target| {
            let name = target.to_string();
            let name = name.strip_prefix("lobby://").unwrap_or(&name).to_owned();
            Place { name, state: PlaceState::Unknown }
        };
        let mut model = Self {
            places: places.iter().map(place).collect(),
            rows: Vec::new(),
            by_id: HashMap::new(),
            shown: Vec::new(),
            selected: None,
            selected_at: 0,
            offset: 0,
            page: 10,
            column: Column::Players,
            most_first: true,
            filter: Filter::default(),
            mode: Mode::Table,
            show_details: true,
            scroll: 0,
            help_scroll: 0,
            message: None,
            favourites,
            log: None,
            joins,
            can_reach,
            is_looking: false,
            look: 0,
            is_dirty: true,
            beat: 0,
        };
        model.remember_favourites();
        model
    }

    /// A look begins. The wish says whom to ask beside the lists.
    pub fn start_look(&mut self) -> Wish {
        self.is_looking = true;
        self.look += 1;
        if let Some(log) = &mut self.log {
            log.begin();
        }
        let unlisted = self.rows.iter().filter(|row| !row.is_listed).map(|row| row.seen.clone()).collect();
        Wish::Look(unlisted)
    }

    /// Something was learned.
    pub fn handle_news(&mut self, news: News) {
        if let Some(log) = &mut self.log {
            log.handle_news(&news, &self.places);
        }
        match news {
            News::Listed { seen, .. } => self.take(seen, true),
            News::Answered(seen) => self.take_answer(seen),
            News::Silent(seen) => {
                // A server that a person named is worth a line although it does not answer.
                match self.by_id.get(&seen.id) {
                    Some(&at) => {
                        self.rows[at].seen.record.answer = None;
                        self.rows[at].seen.record.trouble = seen.record.trouble;
                    }
                    None => self.take(seen, true),
                }
            }
            News::Complete(place, _) => self.set_place(place, PlaceState::Listed),
            News::Failed(place, trouble) => {
                self.set_place(place, PlaceState::Failed(trouble));
                // What it had is better than nothing.
                let look = self.look;
                self.rows.iter_mut().filter(|row| row.seen.place == place).for_each(|row| row.look = look);
            }
        }
        self.is_dirty = true;
    }

    /// A look has ended: who is not in a list any more is gone.
    pub fn end_look(&mut self) {
        self.is_looking = false;
        if let Some(log) = &mut self.log {
            log.end(&self.places);
        }
        let look = self.look;
        for row in &mut self.rows {
            row.is_listed &= row.look == look;
        }
        let favourites = &self.favourites;
        self.rows.retain(|row| row.is_listed || favourites.contains(&row.seen.id));
        self.by_id = self.rows.iter().enumerate().map(|(at, row)| (row.seen.id.clone(), at)).collect();
        // The rows have other numbers now.
        self.arrange();
    }

    /// A game has ended, or could not be started.
    pub fn handle_joined(&mut self, result: Result<(), String>) {
        self.mode = Mode::Table;
        self.message = result.err().map(Message::bad);
    }

    /// The servers to show, in their order.
    pub fn shown(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.shown.iter().map(|&at| &self.rows[at])
    }

    /// All that are known.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The chosen one, and its place among those that are shown.
    pub fn selected(&self) -> Option<(usize, &Row)> {
        let id = self.selected.as_deref()?;
        self.shown().enumerate().find(|(_, row)| row.seen.id == id)
    }

    /// The first row on the screen, which has room for so many.
    pub fn scroll_to_selection(&mut self, page: usize) -> usize {
        self.page = page.max(1);
        let at = self.selected().map_or(0, |(at, _)| at);
        let last = self.shown.len().saturating_sub(self.page);
        self.offset = self.offset.clamp((at + 1).saturating_sub(self.page), at).min(last);
        self.offset
    }

    /// Puts everything in order. To be called before anything is drawn.
    pub fn settle(&mut self) {
        self.tidy();
        self.beat += usize::from(self.is_looking);
    }

    fn tidy(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            self.arrange();
        }
    }

    /// Where a player has to go.
    pub fn join_address(&self, record: &Record) -> Option<SocketAddr> {
        let reachable = record.endpoints.iter().copied().find(|addr| (self.can_reach)(*addr));
        reachable.or(record.endpoints.first().copied()).or(record.address)
    }

    /// What joins this server. For rooms of this program nobody has to say so.
    pub fn join_command(&self, record: &Record) -> Option<JoinCommand> {
        let of_game = record.game().and_then(|game| self.joins.by_game.get(&game.to_lowercase()));
        of_game.or(self.joins.any.as_ref()).cloned().or_else(|| room_key(record).map(JoinCommand::of_room))
    }

    fn set_place(&mut self, place: usize, state: PlaceState) {
        if let Some(place) = self.places.get_mut(place) {
            place.state = state;
        }
    }
}

/// The key of a room that `rallypoint host` has put into the list.
fn room_key(record: &Record) -> Option<PublicKey> {
    let is_room = record.game().is_some_and(|game| [GAME, GAME_NAME].contains(&game));
    let key = record.info.lobby.as_ref().filter(|_| is_room)?.entry(b"x-session-key")?;
    std::str::from_utf8(key).ok()?.parse().ok()
}

impl Message {
    pub fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_bad: false }
    }

    pub fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_bad: true }
    }
}
