//! Key bindings.

use super::{Action, Message, Mode, Model};
use crate::browse::filter::Column;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// All keys and their effects, for the help.
pub const HELP: [(&str, &str); 18] = [
    ("↑ ↓  j k", "select a server"),
    ("PgUp PgDn", "page up, page down"),
    ("Home End  g G", "first, last server"),
    ("Enter", "join: shows the address, runs the join command"),
    ("/", "filter as you type: name, map, game, player, address"),
    ("Esc", "clear the filter"),
    ("s S", "sort by the next, by the previous column"),
    ("o", "reverse the order"),
    ("f", "add to or remove from favourites"),
    ("F", "show only favourites"),
    ("l L", "show the next, the previous lobby or list alone"),
    ("e u p", "hide empty, full, password-protected servers"),
    ("r", "refresh"),
    ("Space", "query only this server again"),
    ("d", "show or hide the details"),
    ("Tab", "details on the whole screen"),
    ("J K", "scroll the details"),
    ("q  Ctrl-C", "quit"),
];

/// Maximum length of the filter, in characters.
const MAX_FILTER: usize = 100;

impl Model {
    /// Handles a key.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Action::Quit),
                KeyCode::Char('z') => return Some(Action::Suspend),
                KeyCode::Char('u') if self.mode == Mode::Filter => self.set_words(String::new()),
                _ => {}
            }
            return None;
        }
        self.message = None;
        self.arrange_if_dirty();
        match self.mode {
            Mode::Filter => self.filter_key(key.code),
            Mode::Help => {
                match key.code {
                    KeyCode::Up | KeyCode::Char('k') => self.help_scroll = self.help_scroll.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => self.help_scroll = self.help_scroll.saturating_add(1),
                    _ => self.mode = Mode::Table,
                }
                None
            }
            Mode::Join => self.join_key(key.code),
            Mode::Table | Mode::Details => self.table_key(key.code),
        }
    }

    fn filter_key(&mut self, key: KeyCode) -> Option<Action> {
        let mut words = self.filter.words.clone();
        match key {
            KeyCode::Enter => self.mode = Mode::Table,
            KeyCode::Esc => {
                self.mode = Mode::Table;
                self.set_words(String::new());
            }
            KeyCode::Backspace if words.is_empty() => self.mode = Mode::Table,
            KeyCode::Backspace => {
                words.pop();
                self.set_words(words);
            }
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => return self.table_key(key),
            KeyCode::Char(c) if words.chars().count() < MAX_FILTER && !c.is_control() => {
                words.push(c);
                self.set_words(words);
            }
            _ => {}
        }
        None
    }

    fn join_key(&mut self, key: KeyCode) -> Option<Action> {
        self.mode = Mode::Table;
        if key != KeyCode::Enter {
            return None;
        }
        let (_, row) = self.selected()?;
        let address = self.join_address(&row.server)?;
        self.join_command(&row.server).map(|command| Action::Join(command, address))
    }

    fn table_key(&mut self, key: KeyCode) -> Option<Action> {
        let last = self.shown.len().saturating_sub(1);
        let at = self.selected().map_or(0, |(position, _)| position);
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.select(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select((at + 1).min(last)),
            KeyCode::PageUp => self.select(at.saturating_sub(self.page)),
            KeyCode::PageDown => self.select((at + self.page).min(last)),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(last),
            KeyCode::Enter if self.selected().is_some() => self.mode = Mode::Join,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc if self.mode == Mode::Details => self.mode = Mode::Table,
            KeyCode::Esc => {
                self.filter = Default::default();
                self.is_dirty = true;
            }
            KeyCode::Char('s') | KeyCode::Right => self.sort_by(self.column.step(true)),
            KeyCode::Char('S') | KeyCode::Left => self.sort_by(self.column.step(false)),
            KeyCode::Char('o') => {
                self.most_first = !self.most_first;
                self.is_dirty = true;
            }
            KeyCode::Char('l') => self.switch_scope(true),
            KeyCode::Char('L') => self.switch_scope(false),
            KeyCode::Char('f') => self.toggle_favourite(),
            KeyCode::Char('F') => self.toggle(|model| &mut model.filter.favourites),
            KeyCode::Char('e') => self.toggle(|model| &mut model.filter.not_empty),
            KeyCode::Char('u') => self.toggle(|model| &mut model.filter.not_full),
            KeyCode::Char('p') => self.toggle(|model| &mut model.filter.no_password),
            KeyCode::Char('d') => self.show_details = !self.show_details,
            KeyCode::Tab if self.mode == Mode::Details => self.mode = Mode::Table,
            KeyCode::Tab if self.selected().is_some() => self.mode = Mode::Details,
            KeyCode::Char('J') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Char('K') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => {
                self.mode = Mode::Help;
                self.help_scroll = 0;
            }
            KeyCode::Char('r') | KeyCode::F(5) if !self.is_scanning => return Some(self.start_scan()),
            KeyCode::Char(' ') => {
                return self.selected().map(|(_, row)| Action::ProbeAgain(Box::new(row.server.clone())));
            }
            KeyCode::Char('q') => return Some(Action::Quit),
            _ => {}
        }
        None
    }

    fn set_words(&mut self, words: String) {
        self.filter.words = words;
        self.is_dirty = true;
    }

    fn toggle(&mut self, which: impl Fn(&mut Self) -> &mut bool) {
        let flag = which(self);
        *flag = !*flag;
        self.is_dirty = true;
    }

    fn sort_by(&mut self, column: Column) {
        self.column = column;
        self.most_first = column.starts_with_most();
        self.is_dirty = true;
    }

    fn toggle_favourite(&mut self) {
        let Some((_, row)) = self.selected() else { return };
        let id = row.server.id.clone();
        let name = row.server.name().to_owned();
        self.message = Some(match self.favourites.toggle(&id, &name) {
            Ok(true) => Message::info(format!("{name} was added to the favourites")),
            Ok(false) => Message::info(format!("{name} was removed from the favourites")),
            Err(error) => Message::error(error),
        });
        self.is_dirty = true;
    }
}
