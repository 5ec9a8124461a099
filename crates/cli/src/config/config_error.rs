//! Errors in a configuration, each with its location.

use std::{fmt, ops::Range};
use toml::de::DeTable;

/// All errors of a configuration, so that they can be corrected at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors(Vec<String>);

/// A named text, for finding the line of an error.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl ConfigErrors {
    /// Adds an error: where it is (a file and line, a variable or a flag), and what is expected there.
    pub fn push(&mut self, location: impl fmt::Display, message: impl fmt::Display) {
        self.0.push(format!("{location}: {message}"));
    }

    /// The messages, one per error.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// `Ok` if there are no errors.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// The syntax errors of a text that is not valid TOML, each with its position.
pub fn syntax_errors(text: &str) -> Vec<(Range<usize>, String)> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let locate = |error: &toml::de::Error| {
        let at = error.span().unwrap_or(0..0);
        let message = match error.message() {
            "duplicate key" => {
                let key = text.get(at.clone()).unwrap_or_default().trim();
                let line = text[..at.start.min(text.len())].rsplit('\n').next().unwrap_or_default();
                match line.trim_start().starts_with('[') {
                    true => format!("the table [{key}] exists twice; move the keys of this one to the first one"),
                    false => format!("{key} is defined twice; remove one of them"),
                }
            }
            message => message.trim().replace('\n', ", "),
        };
        (at, message)
    };
    errors.iter().map(locate).collect()
}

impl Document<'_> {
    /// File and line of a part of the text: `rallypoint.toml:12`.
    pub fn location(&self, at: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}
