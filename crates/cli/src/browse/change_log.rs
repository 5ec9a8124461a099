//! Changes since the browser was opened.

use super::{filter::Column, model::ListStatus};
use crate::watch::{
    event::{Tone, WatchEvent, WatchEventKind},
    first_silences::FirstSilences,
    tracker::ChangeTracker,
};
use rallypoint_query::ScanEvent;
use std::collections::{HashMap, VecDeque};

/// The latest changes, and the cells of the table that they are highlighted in.
pub struct ChangeLog {
    tracker: ChangeTracker,
    silences: FirstSilences,
    entries: VecDeque<LogEntry>,
    /// Changed cells, by server ID and column, with the pass that changed them.
    changed: HashMap<(String, Column), u64>,
    pass: u64,
    clock: fn() -> String,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub time: String,
    pub text: String,
    pub tone: Tone,
}

/// Maximum number of entries.
const MAX_ENTRIES: usize = 500;

impl ChangeLog {
    pub fn new(clock: fn() -> String) -> Self {
        let (tracker, silences) = (ChangeTracker::default(), FirstSilences::default());
        Self { tracker, silences, entries: VecDeque::new(), changed: HashMap::new(), pass: 0, clock }
    }

    pub fn begin_pass(&mut self) {
        self.tracker.begin_pass();
        self.pass += 1;
        // Changes of the previous pass stay highlighted until this one has ended.
        let pass = self.pass;
        self.changed.retain(|_, changed| *changed + 1 >= pass);
    }

    pub fn handle_event(&mut self, event: &ScanEvent, lists: &[ListStatus]) {
        let events = self.tracker.handle_event(event);
        self.add(events, lists);
    }

    pub fn end_pass(&mut self, lists: &[ListStatus]) {
        let events = self.tracker.end_pass();
        self.add(events, lists);
        for line in
            self.silences.lines(|event| event.line(lists.get(event.target_index).map_or("", |list| &*list.name)))
        {
            self.push(line, Tone::Bad);
        }
        let pass = self.pass;
        self.changed.retain(|_, changed| *changed == pass);
    }

    /// Whether a cell has just changed.
    pub fn is_changed(&self, id: &str, column: Column) -> bool {
        !self.changed.is_empty() && self.changed.contains_key(&(id.to_owned(), column))
    }

    /// The entries, latest first.
    pub fn entries(&self) -> impl Iterator<Item = &LogEntry> {
        self.entries.iter().rev()
    }

    fn add(&mut self, events: Vec<WatchEvent>, lists: &[ListStatus]) {
        for event in events {
            if let Some(server) = &event.server {
                for column in changed_columns(&event.kind) {
                    self.changed.insert((server.id.clone(), column), self.pass);
                }
            }
            let Some(event) = self.silences.take(event) else { continue };
            // The results of the first pass are not changes.
            if event.kind == (WatchEventKind::Appeared { at_first: true }) {
                continue;
            }
            let target = lists.get(event.target_index).map_or("", |list| &*list.name);
            self.push(event.line(target), event.kind.tone());
        }
    }

    fn push(&mut self, text: String, tone: Tone) {
        self.entries.push_back(LogEntry { time: (self.clock)(), text, tone });
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_front();
        }
    }
}

/// The columns in which an event is visible.
fn changed_columns(kind: &WatchEventKind) -> Vec<Column> {
    let of_field = |field: &str| match field {
        "name" => Some(Column::Name),
        "map" => Some(Column::Map),
        "game" => Some(Column::Game),
        "players" | "max_players" | "bots" => Some(Column::Players),
        _ => None,
    };
    match kind {
        WatchEventKind::Changed(changes) => changes.iter().filter_map(|change| of_field(change.field)).collect(),
        WatchEventKind::Appeared { at_first: false } => vec![Column::Name],
        WatchEventKind::Joined(_) | WatchEventKind::Left(_) => vec![Column::Players],
        WatchEventKind::Silent { .. } | WatchEventKind::Back => vec![Column::Ping],
        _ => Vec::new(),
    }
}
