//! What every key does.

use super::{Message, Mode, Model, Wish};
use crate::browse::filter::Column;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// All keys and what they do, for the help.
pub const HELP: [(&str, &str); 17] = [
    ("↑ ↓  j k", "choose a server"),
    ("PgUp PgDn", "a page up, a page down"),
    ("Home End  g G", "the first, the last"),
    ("Enter", "join: tells the address, runs the join command"),
    ("/", "filter as you type: name, map, game, player, address"),
    ("Esc", "take the filter off"),
    ("s S", "sort by the next column, by the one before"),
    ("o", "turn the order round"),
    ("f", "make it a favourite, or no longer one"),
    ("F", "only favourites"),
    ("e u p", "hide empty, full, password protected servers"),
    ("r", "look again"),
    ("Space", "ask only this server again"),
    ("d", "show or hide the details"),
    ("Tab", "details over the whole screen"),
    ("J K", "scroll the details"),
    ("q  Ctrl-C", "end"),
];

/// Nobody types a longer filter.
const LONGEST_FILTER: usize = 100;

impl Model {
    /// A key was pressed.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Wish::Quit),
                KeyCode::Char('z') => return Some(Wish::Suspend),
                KeyCode::Char('u') if self.mode == Mode::Filter => self.set_words(String::new()),
                _ => {}
            }
            return None;
        }
        self.message = None;
        self.tidy();
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

    fn filter_key(&mut self, key: KeyCode) -> Option<Wish> {
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
            KeyCode::Char(c) if words.chars().count() < LONGEST_FILTER && !c.is_control() => {
                words.push(c);
                self.set_words(words);
            }
            _ => {}
        }
        None
    }

    fn join_key(&mut self, key: KeyCode) -> Option<Wish> {
        self.mode = Mode::Table;
        if key != KeyCode::Enter {
            return None;
        }
        let (_, row) = self.selected()?;
        let (record, address) = (row.record(), self.join_address(row.record())?);
        self.join_command(record).map(|command| Wish::Join(command, address))
    }

    fn table_key(&mut self, key: KeyCode) -> Option<Wish> {
        let last = self.shown.len().saturating_sub(1);
        let at = self.selected().map_or(0, |(at, _)| at);
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
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => (self.mode, self.help_scroll) = (Mode::Help, 0),
            KeyCode::Char('r') | KeyCode::F(5) if !self.is_looking => return Some(self.start_look()),
            KeyCode::Char(' ') => return self.selected().map(|(_, row)| Wish::Ask(Box::new(row.seen.clone()))),
            KeyCode::Char('q') => return Some(Wish::Quit),
            _ => {}
        }
        None
    }

    fn set_words(&mut self, words: String) {
        self.filter.words = words;
        self.is_dirty = true;
    }

    fn toggle(&mut self, which: impl Fn(&mut Self) -> &mut bool) {
        let it = which(self);
        *it = !*it;
        self.is_dirty = true;
    }

    fn sort_by(&mut self, column: Column) {
        (self.column, self.most_first) = (column, column.starts_with_most());
        self.is_dirty = true;
    }

    fn toggle_favourite(&mut self) {
        let Some((_, row)) = self.selected() else { return };
        let (id, name) = (row.seen.id.clone(), row.record().name().to_owned());
        self.message = Some(match self.favourites.toggle(&id, &name) {
            Ok(true) => Message::good(format!("{name} is a favourite now")),
            Ok(false) => Message::good(format!("{name} is no favourite any more")),
            Err(why) => Message::bad(why),
        });
        self.is_dirty = true;
    }
}
