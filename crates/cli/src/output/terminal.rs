//! Width and colours of the terminal, and text that fits into columns.

use std::{
    borrow::Cow,
    env,
    io::{IsTerminal, stderr, stdout},
};
use textwrap::{Options, WordSplitter};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Properties of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Maximum width of a line; `None` if it is not a terminal: lines may have any width.
    pub width: Option<usize>,
    pub colors: bool,
}

impl Terminal {
    /// The terminal of standard output. `COLUMNS` and `NO_COLOR` are honoured.
    pub fn of_stdout() -> Self {
        let is_terminal = stdout().is_terminal();
        let given = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
        let real = || terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
        let width = given.or_else(|| is_terminal.then(|| real().unwrap_or(80)));
        Self { width: width.map(|width| width.max(20)), colors: is_terminal && wants_colors() }
    }

    /// Text in a style, if the terminal has colours.
    pub fn paint(self, style: Style, text: &str) -> String {
        match style {
            Style::Plain => text.to_owned(),
            _ if !self.colors => text.to_owned(),
            _ => format!("\x1b[{}m{text}\x1b[0m", style.code()),
        }
    }
}

/// Width of the terminal of standard error, if it is one.
pub fn stderr_width() -> Option<usize> {
    let width = terminal_size::terminal_size_of(stderr()).map(|(width, _)| usize::from(width.0));
    width.filter(|_| stderr().is_terminal()).map(|width| width.max(20))
}

/// Whether standard error is a terminal on which a line can be redrawn.
pub fn can_animate_stderr() -> bool {
    stderr().is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A text style.
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

    /// The style of a round-trip time: whether it is good for playing.
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
    let is_disabled = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_disabled && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Width of a text, in columns.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Truncates a text to a width, with an ellipsis.
pub fn clip(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
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

/// Truncates or pads a text to exactly this width.
pub fn fit(text: &str, wide: usize, is_right_aligned: bool) -> String {
    let text = clip(text, wide);
    let space = " ".repeat(wide.saturating_sub(columns(&text)));
    if is_right_aligned { space + &text } else { text + &space }
}

/// Breaks a text into lines of at most this width: between words where possible, otherwise within a word.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    // Runs of white space count as one space.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let options = Options::new(width.max(1)).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(&words, options).into_iter().map(Cow::into_owned).collect()
}

/// Breaks each line of a text that is wider than this between words, and indents what follows.
pub fn wrap_hanging(text: &str, width: usize) -> String {
    let wrap = |line: &str| {
        let indent = line.len() - line.trim_start().len() + 2;
        let indent = " ".repeat(indent.min(width / 2));
        let options = Options::new(width).word_splitter(WordSplitter::NoHyphenation).subsequent_indent(&indent);
        // Lines that fit stay as they are.
        if columns(line) <= width { line.to_owned() } else { textwrap::wrap(line, options).join("\n") }
    };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
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

    #[test]
    fn long_texts_are_wrapped_between_words_if_possible() {
        assert_eq!(wrap("the quick  brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("七人の侍", 5), ["七人", "の侍"]);
        assert_eq!(wrap("七", 1), ["七"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn messages_wrap_between_words_with_a_hanging_indent() {
        let text = "the server is not listed: is it running?\n\n  tip: open the port of the firewall";
        let expected = "the server is not\n  listed: is it\n  running?\n\n  tip: open the port\n    of the firewall";
        assert_eq!(wrap_hanging(text, 20), expected);
        assert_eq!(wrap_hanging("short  line", 20), "short  line");
    }
}
