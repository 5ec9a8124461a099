//! What has happened while the browser was open.

use super::{filter::Column, model::Place};
use crate::{
    ask::survey::News,
    watch::{
        book::Book,
        event::{Event, What},
    },
};
use std::collections::{HashMap, VecDeque};

/// The last events, and which columns of which servers have changed with them.
pub struct Log {
    book: Book,
    lines: VecDeque<Entry>,
    changed: HashMap<(String, Column), u64>,
    look: u64,
    clock: fn() -> String,
}

/// An event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub time: String,
    pub text: String,
    pub mood: i8,
}

/// So many are kept.
const MOST: usize = 500;

impl Log {
    pub fn new(clock: fn() -> String) -> Self {
        Self { book: Book::default(), lines: VecDeque::new(), changed: HashMap::new(), look: 0, clock }
    }

    pub fn begin(&mut self) {
        self.book.begin();
        self.look += 1;
        // What changed with the look before is still new, until this one has ended.
        let look = self.look;
        self.changed.retain(|_, changed| *changed + 1 >= look);
    }

    pub fn handle_news(&mut self, news: &News, places: &[Place]) {
        let events = self.book.handle_news(news);
        self.take(events, places);
    }

    pub fn end(&mut self, places: &[Place]) {
        let events = self.book.end();
        self.take(events, places);
        let look = self.look;
        self.changed.retain(|_, changed| *changed == look);
    }

    /// Whether this has just changed.
    pub fn is_changed(&self, id: &str, column: Column) -> bool {
        !self.changed.is_empty() && self.changed.contains_key(&(id.to_owned(), column))
    }

    /// The last events, the newest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.lines.iter().rev()
    }

    fn take(&mut self, events: Vec<Event>, places: &[Place]) {
        for event in events {
            if let Some(seen) = &event.server {
                for column in columns(&event.what) {
                    self.changed.insert((seen.id.clone(), column), self.look);
                }
            }
            // What the first look finds has not happened just now.
            if event.what == (What::Appeared { at_first: true }) {
                continue;
            }
            let place = places.get(event.place).map_or("", |place| &*place.name);
            let entry = Entry { time: (self.clock)(), text: event.line(place), mood: event.what.mood() };
            self.lines.push_back(entry);
            if self.lines.len() > MOST {
                self.lines.pop_front();
            }
        }
    }
}

/// Where an event can be seen.
fn columns(what: &What) -> Vec<Column> {
    let of_field = |field: &str| match field {
        "name" => Some(Column::Name),
        "map" => Some(Column::Map),
        "game" => Some(Column::Game),
        "players" | "max_players" | "bots" => Some(Column::Players),
        _ => None,
    };
    match what {
        What::Changed(changes) => changes.iter().filter_map(|change| of_field(change.field)).collect(),
        What::Appeared { at_first: false } => vec![Column::Name],
        What::Joined(_) | What::Left(_) => vec![Column::Players],
        What::Silent(_) | What::Back => vec![Column::Ping],
        _ => Vec::new(),
    }
}
