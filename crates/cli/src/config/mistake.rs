//! Mistakes in a configuration, each with its place.

use std::{fmt, ops::Range};
use toml::de::DeTable;

/// All mistakes that were found: a person should not have to find them one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(Vec<String>);

/// A text with a name, for finding the line of a mistake.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Mistakes {
    pub fn push(&mut self, place: impl fmt::Display, message: impl fmt::Display) {
        self.0.push(format!("{place}: {message}"));
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Nothing, if there are none.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// Why a text is not TOML: all mistakes, and where they are.
pub fn syntax(text: &str) -> Vec<(Range<usize>, String)> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let told = |error: &toml::de::Error| {
        let at = error.span().unwrap_or(0..0);
        let message = match error.message() {
            "duplicate key" => {
                let key = text.get(at.clone()).unwrap_or_default().trim();
                format!("{key} is there twice: take one away")
            }
            message => message.trim().replace('\n', ", "),
        };
        (at, message)
    };
    errors.iter().map(told).collect()
}

impl Document<'_> {
    /// The place of a part of the text: `rallypoint.toml:12`.
    pub fn place(&self, at: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}
