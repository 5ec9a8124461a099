//! Files in TOML that people write: all errors are reported at once, each with its line and the expected value.
//!
//! serde is used for single values only. Its derived readers stop at the first error, and know no position of a key, so tables
//! are read key by key with [`TableReader`].

mod table_reader;

pub use table_reader::{TableReader, plain};

use crate::error::describe_io;
use std::{cell::RefCell, fmt, fs, ops::Range, path::Path};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value with its position in the file.
pub type Value<'a> = Spanned<DeValue<'a>>;

/// All errors of a file, or of all sources of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors(Vec<String>);

/// A named text, for finding the line of an error.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// Errors in a document with their positions, in the order in which they were found.
#[derive(Debug, Default)]
pub struct FoundErrors(RefCell<Vec<(Range<usize>, String)>>);

impl ConfigErrors {
    /// Adds an error: where it is (a file and line, a variable or a flag), and what is expected there.
    pub fn push(&mut self, location: impl fmt::Display, message: impl fmt::Display) {
        self.0.push(format!("{location}: {message}"));
    }

    /// Adds the errors of another file.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
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

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl FoundErrors {
    pub fn push(&self, at: Range<usize>, message: String) {
        self.0.borrow_mut().push((at, message));
    }

    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub fn into_inner(self) -> Vec<(Range<usize>, String)> {
        self.0.into_inner()
    }
}

/// Reads a file. `read` gets the table of a file without syntax errors.
pub fn read_file(file: &Path, read: impl FnOnce(Document<'_>, &DeTable<'_>, &FoundErrors)) -> ConfigErrors {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => Document { name: &name, text: &text }.read(read),
        Err(error) => {
            let mut errors = ConfigErrors::default();
            errors.push(name, describe_io(&error));
            errors
        }
    }
}

impl<'a> Document<'a> {
    /// Parses the text and reads its table. Returns the errors in the order of their lines.
    pub fn read(self, read: impl FnOnce(Self, &DeTable<'a>, &FoundErrors)) -> ConfigErrors {
        let found = FoundErrors::default();
        match DeTable::parse(self.text) {
            Ok(table) => read(self, table.get_ref(), &found),
            Err(_) => syntax_errors(self.text, &found),
        }
        let mut found = found.into_inner();
        // The tables of a file are not in the order of their lines.
        found.sort_by_key(|(at, _)| at.start);
        let mut errors = ConfigErrors::default();
        found.iter().for_each(|(at, message)| errors.push(self.location(at), message));
        errors
    }

    /// File and line of a part of the text: `rallypoint.toml:12`.
    pub fn location(&self, at: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }
}

/// The syntax errors of a text that is not valid TOML.
fn syntax_errors(text: &str, found: &FoundErrors) {
    let (_, errors) = DeTable::parse_recoverable(text);
    for error in errors {
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
        found.push(at, message);
    }
}

/// Text as a TOML string.
pub fn quoted(text: impl fmt::Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// "not ...": the actual value, for the end of a sentence that begins with "expected".
pub fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("not {}", quoted(text)),
        DeValue::Integer(number) => format!("not {number}"),
        DeValue::Float(number) => format!("not {number}"),
        DeValue::Boolean(value) => format!("not {value}"),
        DeValue::Datetime(date) => format!("not the date {date}"),
        DeValue::Array(_) => "not a list".into(),
        DeValue::Table(_) => "not a table".into(),
    }
}

/// The end of a message about an unknown word: the most similar known word, or the list of known words.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    match known.iter().min_by_key(|known| distance(known)) {
        Some(best) if distance(best) <= (best.len() / 3).clamp(1, 3) => format!("; did you mean \"{best}\"?"),
        _ => format!("; known keys: {}", known.join(", ")),
    }
}
