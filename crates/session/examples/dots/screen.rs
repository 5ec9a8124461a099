//! The terminal of a player: keys in, frames out.

use super::canvas::Canvas;
use crossterm::{
    cursor::{Hide, Show},
    event::{Event, KeyCode, KeyModifiers, poll, read},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size},
};
use std::{
    io::{self, Write, stdout},
    time::Duration,
};

/// A key that matters to the game.
pub enum Key {
    Direction([i8; 2]),
    Line(String),
    Quit,
}

/// The terminal, which is as before when this is dropped.
pub struct Screen;

impl Screen {
    pub fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(Self)
    }

    /// The next key, if one was pressed. Letters are added to the input.
    pub fn key(&self, input: &mut String) -> io::Result<Option<Key>> {
        while poll(Duration::ZERO)? {
            let Event::Key(key) = read()? else { continue };
            match key.code {
                KeyCode::Esc => return Ok(Some(Key::Quit)),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(Some(Key::Quit)),
                KeyCode::Left => return Ok(Some(Key::Direction([-1, 0]))),
                KeyCode::Right => return Ok(Some(Key::Direction([1, 0]))),
                KeyCode::Up => return Ok(Some(Key::Direction([0, -1]))),
                KeyCode::Down => return Ok(Some(Key::Direction([0, 1]))),
                KeyCode::Enter if !input.is_empty() => return Ok(Some(Key::Line(std::mem::take(input)))),
                KeyCode::Backspace => drop(input.pop()),
                KeyCode::Char(c) if input.len() < 70 => input.push(c),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Shows a frame at once, between the sequences that begin and end a synchronized update.
    pub fn draw(&self, canvas: &Canvas, dots: &[super::protocol::Dot], status: &str) -> io::Result<()> {
        let (columns, rows) = size()?;
        let frame = canvas.frame(dots, status, columns.into(), rows.into());
        let mut out = stdout().lock();
        write!(out, "\x1b[?2026h{frame}\x1b[?2026l")?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}
