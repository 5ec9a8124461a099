//! The line that a guest is typing. No I/O.

use crate::output::terminal::columns;
use rallypoint_room::MAX_LINE;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Number of lines that can be recalled.
const MAX_HISTORY: usize = 100;

/// A line with a cursor, and the lines before it.
#[derive(Debug, Default)]
pub struct LineEditor {
    line: Vec<char>,
    cursor: usize,
    /// Oldest first.
    history: Vec<String>,
    /// Position in the history while lines are recalled.
    recalled: Option<usize>,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum EditAction {
    /// The line has changed, or the cursor.
    Edited,
    /// The line is complete.
    Submit(String),
    /// The user leaves.
    Leave,
    /// The key has no meaning.
    Ignored,
}

impl LineEditor {
    /// Whether the line is a message in the making, and not a command.
    pub fn is_message(&self) -> bool {
        self.line.first().is_some_and(|first| *first != '/')
    }

    /// Handles a key with its usual meaning in shells.
    pub fn handle_key(&mut self, key: KeyEvent) -> EditAction {
        if key.kind == KeyEventKind::Release {
            return EditAction::Ignored;
        }
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('c'), true) => return EditAction::Leave,
            (KeyCode::Char('d'), true) if self.line.is_empty() => return EditAction::Leave,
            (KeyCode::Enter, _) => return self.submit(),
            (KeyCode::Char('d'), true) | (KeyCode::Delete, _) => self.delete(self.cursor, self.cursor + 1),
            (KeyCode::Char('h'), true) | (KeyCode::Backspace, _) => {
                self.delete(self.cursor.saturating_sub(1), self.cursor);
            }
            (KeyCode::Char('a'), true) | (KeyCode::Home, _) => self.cursor = 0,
            (KeyCode::Char('e'), true) | (KeyCode::End, _) => self.cursor = self.line.len(),
            (KeyCode::Char('b'), true) | (KeyCode::Left, _) => self.cursor = self.cursor.saturating_sub(1),
            (KeyCode::Char('f'), true) | (KeyCode::Right, _) => self.cursor = (self.cursor + 1).min(self.line.len()),
            (KeyCode::Char('u'), true) => self.delete(0, self.cursor),
            (KeyCode::Char('k'), true) => self.delete(self.cursor, self.line.len()),
            (KeyCode::Char('w'), true) => self.delete(self.start_of_word(), self.cursor),
            (KeyCode::Char('p'), true) | (KeyCode::Up, _) => self.recall(-1),
            (KeyCode::Char('n'), true) | (KeyCode::Down, _) => self.recall(1),
            (KeyCode::Char(c), false) if !c.is_control() => self.insert(c),
            _ => return EditAction::Ignored,
        }
        EditAction::Edited
    }

    /// Inserts text that was pasted. Its line ends become spaces: nothing is sent before the user has seen it.
    pub fn paste(&mut self, text: &str) {
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).for_each(|c| self.insert(c));
    }

    /// The part of the line that fits into this width, with the cursor in it, and the column of the cursor.
    pub fn visible(&self, width: usize) -> (String, usize) {
        let text = |chars: &[char]| chars.iter().collect::<String>();
        let mut first = 0;
        while columns(&text(&self.line[first..self.cursor])) >= width.max(1) {
            first += 1;
        }
        let column = columns(&text(&self.line[first..self.cursor]));
        let mut last = self.line.len();
        while last > self.cursor && columns(&text(&self.line[first..last])) > width {
            last -= 1;
        }
        (text(&self.line[first..last]), column)
    }

    fn insert(&mut self, c: char) {
        if self.line.len() < MAX_LINE {
            self.line.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.line.drain(from..to.min(self.line.len()));
        self.cursor = from;
    }

    fn start_of_word(&self) -> usize {
        let before = &self.line[..self.cursor];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |at| at + 1);
        before[..end].iter().rposition(|c| *c == ' ').map_or(0, |at| at + 1)
    }

    fn submit(&mut self) -> EditAction {
        let line: String = std::mem::take(&mut self.line).into_iter().collect();
        self.cursor = 0;
        self.recalled = None;
        if !line.trim().is_empty() && self.history.last() != Some(&line) {
            self.history.push(line.clone());
            let excess = self.history.len().saturating_sub(MAX_HISTORY);
            self.history.drain(..excess);
        }
        EditAction::Submit(line)
    }

    fn recall(&mut self, step: isize) {
        let at = self.recalled.unwrap_or(self.history.len());
        let Some(at) = at.checked_add_signed(step) else { return };
        match self.history.get(at) {
            Some(line) => {
                self.line = line.chars().collect();
                self.recalled = Some(at);
            }
            None if self.recalled.is_some() => {
                self.line.clear();
                self.recalled = None;
            }
            None => return,
        }
        self.cursor = self.line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut LineEditor, keys: &str) -> EditAction {
        let mut last = EditAction::Ignored;
        for c in keys.chars() {
            let (code, modifiers) = match c {
                '\n' => (KeyCode::Enter, KeyModifiers::NONE),
                '⌫' => (KeyCode::Backspace, KeyModifiers::NONE),
                '←' => (KeyCode::Left, KeyModifiers::NONE),
                '↑' => (KeyCode::Up, KeyModifiers::NONE),
                '↓' => (KeyCode::Down, KeyModifiers::NONE),
                c @ '\x01'..='\x1a' => (KeyCode::Char((c as u8 + b'a' - 1) as char), KeyModifiers::CONTROL),
                c => (KeyCode::Char(c), KeyModifiers::NONE),
            };
            last = editor.handle_key(KeyEvent::new(code, modifiers));
        }
        last
    }

    fn submitted(keys: &str) -> String {
        let mut editor = LineEditor::default();
        match press(&mut editor, &format!("{keys}\n")) {
            EditAction::Submit(line) => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_edited_with_the_usual_keys() {
        assert_eq!(submitted("helo←l"), "hello");
        assert_eq!(submitted("hellö⌫o"), "hello");
        assert_eq!(submitted("one two  \x17three"), "one three");
        assert_eq!(submitted("two\x01one "), "one two");
        assert_eq!(submitted("abc\x02\x02\x0b"), "a");
        assert_eq!(submitted("abc\x15d"), "d");
        assert_eq!(submitted("⌫⌫←x\x04"), "x");
    }

    #[test]
    fn earlier_lines_can_be_recalled() {
        let mut editor = LineEditor::default();
        press(&mut editor, "one\ntwo\n");
        press(&mut editor, "↑↑↑");
        assert_eq!(editor.visible(80).0, "one");
        press(&mut editor, "↓");
        assert_eq!(press(&mut editor, "!\n"), EditAction::Submit("two!".into()));
        press(&mut editor, "↑↓↓");
        assert_eq!(editor.visible(80).0, "");
    }

    #[test]
    fn ctrl_d_leaves_only_if_the_line_is_empty() {
        let mut editor = LineEditor::default();
        assert_eq!(press(&mut editor, "x\x04"), EditAction::Edited);
        assert_eq!(press(&mut editor, "⌫\x04"), EditAction::Leave);
        assert_eq!(press(&mut editor, "x\x03"), EditAction::Leave);
    }

    #[test]
    fn the_cursor_stays_visible_in_a_long_line() {
        let mut editor = LineEditor::default();
        editor.paste("0123456789\n七人");
        assert_eq!(editor.visible(8), ("89 七人".into(), 7));
        press(&mut editor, "\x01");
        assert_eq!(editor.visible(8), ("01234567".into(), 0));
        editor.paste(&"x".repeat(2 * MAX_LINE));
        assert_eq!(editor.line.len(), MAX_LINE);
    }
}
