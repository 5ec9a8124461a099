//! The state of the browser. No terminal and no network: keys and scan events come in, actions go out.

mod keys;
mod rows;
mod scope;

pub use keys::HELP;
pub use rows::Row;
use scope::Scope;

use super::{
    change_log::ChangeLog,
    favourites::Favourites,
    filter::{Column, Filter},
    join::JoinCommand,
};
use crate::mirror_args;
use rallypoint_query::{ProbeError, ScanEvent, ScannedServer, Target, mirror::MirrorEvent};
use rallypoint_room::{GAME, GAME_NAME};
use rallypoint_session::PublicKey;
use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

/// The state of the browser.
pub struct Model {
    /// The lists, by target index.
    pub lists: Vec<ListStatus>,
    rows: Vec<Row>,
    by_id: HashMap<String, usize>,
    /// Indices of the rows that pass the filter, sorted.
    shown: Vec<usize>,
    /// ID of the selected server.
    selected: Option<String>,
    /// Position of the selected server in `shown`: if it disappears, the one at this position is selected.
    selected_at: usize,
    /// Position of the first row on the screen.
    offset: usize,
    /// Number of rows on the screen.
    page: usize,
    /// Column that rows are sorted by.
    pub column: Column,
    pub most_first: bool,
    pub filter: Filter,
    /// The lobby or list that is shown alone.
    scope: Option<Scope>,
    pub mode: Mode,
    pub show_details: bool,
    /// Lines by which the details are scrolled.
    pub scroll: u16,
    pub help_scroll: u16,
    pub message: Option<Message>,
    pub favourites: Favourites,
    /// Changes, for `rallypoint watch`.
    pub log: Option<ChangeLog>,
    joins: JoinCommands,
    can_reach: fn(SocketAddr) -> bool,
    /// Whether a scan is under way.
    pub is_scanning: bool,
    /// Number of the current pass.
    pass: u32,
    /// Whether rows have to be filtered and sorted again.
    is_dirty: bool,
    /// Number of frames drawn during scans: animates the spinner.
    pub frame: usize,
}

/// A lobby or another target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListStatus {
    pub name: String,
    pub state: ListState,
    /// The copy that the servers of this pass come from, in one sentence.
    copy: Option<String>,
    /// Why copies of mirrors were not used in this pass, each in one sentence.
    pub refused_copies: Vec<String>,
}

/// Whether a list could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListState {
    Unknown,
    Listed,
    /// The lobby does not answer, and a copy of its list is shown.
    Copied(String),
    Failed(ProbeError),
}

/// The view that handles key presses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Table,
    Filter,
    Details,
    Help,
    Join,
}

/// A message in the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub is_error: bool,
}

/// Commands that join a server.
#[derive(Clone, Debug, Default)]
pub struct JoinCommands {
    /// For any game.
    pub any: Option<JoinCommand>,
    /// By the short name of the game, in lower case.
    pub by_game: BTreeMap<String, JoinCommand>,
}

/// An action that a key requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Quit,
    /// Scan all targets, and probe these servers, which are in no list.
    Scan(Vec<ScannedServer>),
    /// Probe one server again.
    ProbeAgain(Box<ScannedServer>),
    Join(JoinCommand, SocketAddr),
    /// Stop the process, as other programs do on Ctrl-Z.
    Suspend,
}

impl Model {
    pub fn new(
        targets: &[Target],
        favourites: Favourites,
        joins: JoinCommands,
        can_reach: fn(SocketAddr) -> bool,
    ) -> Self {
        let list = |target: &Target| {
            let name = target.to_string();
            let name = name.strip_prefix("lobby://").unwrap_or(&name).to_owned();
            ListStatus { name, state: ListState::Unknown, copy: None, refused_copies: Vec::new() }
        };
        let mut model = Self {
            lists: targets.iter().map(list).collect(),
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
            scope: None,
            mode: Mode::Table,
            show_details: true,
            scroll: 0,
            help_scroll: 0,
            message: None,
            favourites,
            log: None,
            joins,
            can_reach,
            is_scanning: false,
            pass: 0,
            is_dirty: true,
            frame: 0,
        };
        model.add_favourites();
        model
    }

    /// Begins a scan. The action names the servers to probe that are in no list.
    pub fn start_scan(&mut self) -> Action {
        self.is_scanning = true;
        self.pass += 1;
        self.lists.iter_mut().for_each(|list| list.refused_copies.clear());
        if let Some(log) = &mut self.log {
            log.begin_pass();
        }
        let unlisted = self.rows.iter().filter(|row| !row.is_listed).map(|row| row.server.clone()).collect();
        Action::Scan(unlisted)
    }

    /// Handles an event of the scan.
    pub fn handle_event(&mut self, event: ScanEvent) {
        if let Some(log) = &mut self.log {
            log.handle_event(&event, &self.lists);
        }
        match event {
            ScanEvent::Listed { server, .. } => self.apply_listed(server, true),
            ScanEvent::Answered(server) => self.apply_reply(server),
            ScanEvent::Failed(server) => {
                // A named server is shown even if it does not answer.
                match self.by_id.get(&server.id) {
                    Some(&at) => {
                        self.rows[at].server.reply = None;
                        self.rows[at].server.error = server.error;
                    }
                    None => self.apply_listed(server, true),
                }
            }
            ScanEvent::ListComplete(index, _) => {
                let copy = self.lists.get_mut(index).and_then(|list| list.copy.take());
                if copy.is_some() {
                    // A copy is older than the lobby's own answer.
                    self.keep_servers(index);
                }
                self.set_list_state(index, copy.map_or(ListState::Listed, ListState::Copied));
            }
            ScanEvent::Mirror(index, event) => self.handle_mirror(index, &event),
            ScanEvent::ListFailed(index, error) => {
                self.set_list_state(index, ListState::Failed(error));
                // Old data is better than none.
                self.keep_servers(index);
            }
        }
        self.is_dirty = true;
    }

    /// Keeps the servers of a list that this pass did not find.
    fn keep_servers(&mut self, index: usize) {
        let pass = self.pass;
        self.rows.iter_mut().filter(|row| row.server.target_index == index).for_each(|row| row.pass = pass);
    }

    fn handle_mirror(&mut self, index: usize, event: &MirrorEvent) {
        match event {
            MirrorEvent::Used(copied) => {
                if let Some(list) = self.lists.get_mut(index) {
                    list.copy = Some(mirror_args::describe_copy(copied));
                }
                let warning = mirror_args::warnings(copied).into_iter().next();
                self.message = warning.map(|text| Message { text, is_error: true });
            }
            MirrorEvent::Failed { url, error } => {
                let text = mirror_args::describe_failure(url, error);
                if let Some(list) = self.lists.get_mut(index) {
                    list.refused_copies.push(text.clone());
                }
                self.message = Some(Message::error(text));
            }
        }
    }

    /// Ends a scan: servers that are no longer in a list are removed.
    pub fn finish_scan(&mut self) {
        self.is_scanning = false;
        if let Some(log) = &mut self.log {
            log.end_pass(&self.lists);
        }
        let pass = self.pass;
        for row in &mut self.rows {
            row.is_listed &= row.pass == pass;
        }
        let favourites = &self.favourites;
        self.rows.retain(|row| row.is_listed || favourites.contains(&row.server.id));
        self.by_id = self.rows.iter().enumerate().map(|(at, row)| (row.server.id.clone(), at)).collect();
        // The indices of the rows have changed.
        self.arrange();
    }

    /// Handles the end of a join command.
    pub fn handle_joined(&mut self, result: Result<(), String>) {
        self.mode = Mode::Table;
        self.message = result.err().map(Message::error);
    }

    /// The rows that pass the filter, sorted.
    pub fn shown(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.shown.iter().map(|&at| &self.rows[at])
    }

    /// All rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The selected row, and its position among those shown.
    pub fn selected(&self) -> Option<(usize, &Row)> {
        let id = self.selected.as_deref()?;
        self.shown().enumerate().find(|(_, row)| row.server.id == id)
    }

    /// Scrolls the selected row into view; returns the position of the first row on the screen. `page` is the number of rows on
    /// the screen.
    pub fn scroll_to_selection(&mut self, page: usize) -> usize {
        self.page = page.max(1);
        let at = self.selected().map_or(0, |(at, _)| at);
        let last = self.shown.len().saturating_sub(self.page);
        self.offset = self.offset.clamp((at + 1).saturating_sub(self.page), at).min(last);
        self.offset
    }

    /// Filters and sorts the rows if necessary. To be called before drawing.
    pub fn prepare_frame(&mut self) {
        self.arrange_if_dirty();
        self.frame += usize::from(self.is_scanning);
    }

    fn arrange_if_dirty(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            self.arrange();
        }
    }

    /// The address to join a server at.
    pub fn join_address(&self, record: &ScannedServer) -> Option<SocketAddr> {
        let reachable = record.endpoints.iter().copied().find(|addr| (self.can_reach)(*addr));
        reachable.or(record.endpoints.first().copied()).or(record.address)
    }

    /// The command that joins a server. Rooms of this program need no configuration.
    pub fn join_command(&self, record: &ScannedServer) -> Option<JoinCommand> {
        let of_game = record.game().and_then(|game| self.joins.by_game.get(&game.to_lowercase()));
        of_game.or(self.joins.any.as_ref()).cloned().or_else(|| room_key(record).map(JoinCommand::of_room))
    }

    fn set_list_state(&mut self, index: usize, state: ListState) {
        if let Some(list) = self.lists.get_mut(index) {
            list.state = state;
        }
    }
}

/// The key of a room of `rallypoint host`, as it is in the list.
fn room_key(record: &ScannedServer) -> Option<PublicKey> {
    let is_room = record.game().is_some_and(|game| [GAME, GAME_NAME].contains(&game));
    let key = record.info.lobby.as_ref().filter(|_| is_room)?.entry(b"x-session-key")?;
    std::str::from_utf8(key).ok()?.parse().ok()
}

impl Message {
    pub fn info(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}
