//! Styles and symbols: in sixteen colours or none, in Unicode or ASCII.

use crate::output::terminal;
use ratatui::style::{Color, Modifier, Style};
use std::env;

/// Styles and symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used.
    pub colors: bool,
    /// Whether the terminal shows UTF-8.
    pub unicode: bool,
}

impl Theme {
    /// The theme for this terminal, from the environment.
    pub fn of_terminal() -> Self {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = variable("LC_ALL").or_else(|| variable("LC_CTYPE")).or_else(|| variable("LANG"));
        let locale = locale.unwrap_or_default().to_lowercase();
        Self { colors: terminal::wants_colors(), unicode: locale.contains("utf-8") || locale.contains("utf8") }
    }

    pub const fn star(self) -> &'static str {
        if self.unicode { "★" } else { "*" }
    }

    pub const fn arrow(self, down: bool) -> &'static str {
        match (self.unicode, down) {
            (true, true) => "▼",
            (true, false) => "▲",
            (false, true) => "v",
            (false, false) => "^",
        }
    }

    pub const fn line(self) -> &'static str {
        if self.unicode { "─" } else { "-" }
    }

    pub const fn bar(self) -> &'static str {
        if self.unicode { "│" } else { "|" }
    }

    /// A spinner, for a scan that is under way.
    pub const fn spinner(self, frame: usize) -> &'static str {
        const UNICODE: [&str; 8] = ["⣾", "⣽", "⣻", "⢿", "⡿", "⣟", "⣯", "⣷"];
        const ASCII: [&str; 4] = ["|", "/", "-", "\\"];
        if self.unicode { UNICODE[frame % 8] } else { ASCII[frame % 4] }
    }

    pub fn title(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn dim(self) -> Style {
        // Not "dark gray": that is invisible on some consoles.
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub fn good(self) -> Style {
        self.color(Color::Green)
    }

    pub fn fair(self) -> Style {
        self.color(Color::Yellow)
    }

    pub fn bad(self) -> Style {
        self.color(Color::Red)
    }

    /// A cell that has just changed.
    pub fn changed(self) -> Style {
        self.color(Color::Yellow).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub fn key(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The style that the other commands use, too.
    pub fn style(self, style: terminal::Style) -> Style {
        match style {
            terminal::Style::Plain => Style::new(),
            terminal::Style::Bold => self.heading(),
            terminal::Style::Dim => self.dim(),
            terminal::Style::Good => self.good(),
            terminal::Style::Fair => self.fair(),
            terminal::Style::Bad => self.bad(),
        }
    }

    /// The style of a round-trip time.
    pub fn ping(self, milliseconds: f64) -> Style {
        self.style(terminal::Style::of_ping(milliseconds))
    }

    /// The colour of a team, in the nearest of sixteen colours.
    pub fn team(self, [red, green, blue]: [u8; 3]) -> Style {
        let most = red.max(green).max(blue);
        let has = |part: u8| u16::from(part) * 3 >= u16::from(most) * 2;
        self.color(match (has(red), has(green), has(blue)) {
            _ if most < 64 => return Style::new(),
            (true, false, false) => Color::LightRed,
            (false, true, false) => Color::LightGreen,
            (false, false, true) => Color::LightBlue,
            (true, true, false) => Color::Yellow,
            (true, false, true) => Color::Magenta,
            (false, true, true) => Color::Cyan,
            _ => return Style::new(),
        })
    }

    fn color(self, color: Color) -> Style {
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }
}
