//! What the terminal can do.

use std::{
    env,
    io::{IsTerminal, stderr, stdout},
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How wide lines may be, and whether they may have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// `None`: as wide as they want to be, because it is not a terminal.
    pub width: Option<usize>,
    pub colors: bool,
}

impl Terminal {
    /// That of standard output. `COLUMNS` and `NO_COLOR` have their say.
    pub fn of_stdout() -> Self {
        let is_terminal = stdout().is_terminal();
        let told = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
        let real = || terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
        let width = told.or_else(|| is_terminal.then(|| real().unwrap_or(80)));
        Self { width: width.map(|width| width.max(20)), colors: is_terminal && wants_colors() }
    }

    /// Text in a colour, if there are colours.
    pub fn paint(self, style: Style, text: &str) -> String {
        match style {
            Style::Plain => text.to_owned(),
            _ if !self.colors => text.to_owned(),
            _ => format!("\x1b[{}m{text}\x1b[0m", style.code()),
        }
    }
}

/// Whether something that moves can be shown on standard error.
pub fn stderr_is_lively() -> bool {
    stderr().is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Good,
    Fair,
    Bad,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Fair => "33",
            Self::Bad => "31",
        }
    }

    /// What a ping means for a player.
    pub fn of_ping(milliseconds: f64) -> Self {
        match milliseconds {
            ms if ms < 80.0 => Self::Good,
            ms if ms < 180.0 => Self::Fair,
            _ => Self::Bad,
        }
    }
}

/// Whether `NO_COLOR` and `TERM` allow colours.
pub fn wants_colors() -> bool {
    let no = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How many columns a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits into so many columns, with a mark where it is cut.
pub fn clip(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > most.saturating_sub(1) {
            break;
        }
        used += wide;
        kept.push(c);
    }
    if most > 0 {
        kept.push('…');
    }
    kept
}

/// A text in exactly so many columns.
pub fn fit(text: &str, wide: usize, to_the_right: bool) -> String {
    let text = clip(text, wide);
    let space = " ".repeat(wide.saturating_sub(columns(&text)));
    if to_the_right { space + &text } else { text + &space }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("七人"), 4);
        assert_eq!(clip("七人の侍", 8), "七人の侍");
        assert_eq!(clip("七人の侍", 7), "七人の…");
        assert_eq!(clip("七人の侍", 6), "七人…");
        assert_eq!(fit("七人の侍", 6, false), "七人… ");
        assert_eq!(fit("e\u{301}a", 3, true), " e\u{301}a");
        for most in 0..10 {
            assert!(columns(&clip("a七b人c", most)) <= most);
        }
    }
}
