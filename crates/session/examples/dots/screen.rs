//! The terminal of a player: map and dots, chat, a line for input, and a line of statistics.

use super::protocol::Dot;
use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{Event, KeyCode, KeyModifiers, poll, read},
    execute, queue,
    style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor},
    terminal::{
        BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
        disable_raw_mode, enable_raw_mode,
    },
};
use std::{
    io::{self, Write, stdout},
    time::Duration,
};

const CHAT_LINES: usize = 4;
const WALL: Color = Color::AnsiValue(238);
const GREY: Color = Color::AnsiValue(245);
const COLORS: [u8; 12] = [203, 209, 215, 221, 191, 120, 86, 80, 75, 105, 141, 212];

/// A key that matters to the game.
pub enum Key {
    Direction([i8; 2]),
    Line(String),
    Quit,
}

#[derive(Default)]
pub struct Screen {
    pub map: Vec<String>,
    pub chat: Vec<String>,
    input: String,
}

impl Screen {
    pub fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(Self::default())
    }

    /// The next key, if one was pressed.
    pub fn key(&mut self) -> io::Result<Option<Key>> {
        while poll(Duration::ZERO)? {
            let Event::Key(key) = read()? else { continue };
            match key.code {
                KeyCode::Esc => return Ok(Some(Key::Quit)),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(Some(Key::Quit)),
                KeyCode::Left => return Ok(Some(Key::Direction([-1, 0]))),
                KeyCode::Right => return Ok(Some(Key::Direction([1, 0]))),
                KeyCode::Up => return Ok(Some(Key::Direction([0, -1]))),
                KeyCode::Down => return Ok(Some(Key::Direction([0, 1]))),
                KeyCode::Enter if !self.input.is_empty() => {
                    return Ok(Some(Key::Line(std::mem::take(&mut self.input))));
                }
                KeyCode::Backspace => drop(self.input.pop()),
                KeyCode::Char(c) if self.input.len() < 70 => self.input.push(c),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Draws a frame.
    pub fn draw(&self, dots: &[Dot], status: &str) -> io::Result<()> {
        let mut out = stdout().lock();
        queue!(out, BeginSynchronizedUpdate, MoveTo(0, 0), SetForegroundColor(WALL))?;
        for line in &self.map {
            queue!(out, Print(line.replace('#', "█")), Clear(ClearType::UntilNewLine), Print("\r\n"))?;
        }
        for (n, dot) in dots.iter().enumerate() {
            let color = Color::AnsiValue(COLORS[n % COLORS.len()]);
            let is_player = dot.player != 255;
            let (glyph, weight) =
                if is_player { ("◉", Attribute::Bold) } else { ("●", Attribute::NormalIntensity) };
            let color = if is_player { Color::White } else { color };
            queue!(
                out,
                MoveTo(dot.x as u16, dot.y as u16),
                SetForegroundColor(color),
                SetAttribute(weight),
                Print(glyph)
            )?;
        }
        queue!(out, SetAttribute(Attribute::Reset), ResetColor)?;
        let bottom = self.map.len() as u16;
        let first = self.chat.len().saturating_sub(CHAT_LINES);
        for row in 0..CHAT_LINES as u16 {
            let line = self.chat.get(first + usize::from(row)).map_or("", String::as_str);
            let color = if line.starts_with("--") { GREY } else { Color::Reset };
            queue!(
                out,
                MoveTo(0, bottom + row),
                SetForegroundColor(color),
                Print(line),
                Clear(ClearType::UntilNewLine)
            )?;
        }
        let row = bottom + CHAT_LINES as u16;
        queue!(
            out,
            MoveTo(0, row),
            ResetColor,
            Print("> "),
            Print(&self.input),
            Print("▏"),
            Clear(ClearType::UntilNewLine)
        )?;
        queue!(out, MoveTo(0, row + 1), SetForegroundColor(GREY), Print(status), Clear(ClearType::UntilNewLine))?;
        queue!(out, ResetColor, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}
