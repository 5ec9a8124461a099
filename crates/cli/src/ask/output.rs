//! What is told, and in which form.

pub mod csv;
pub mod details;
pub mod gamedig;
pub mod progress;
pub mod record;
pub mod sink;
pub mod table;
pub mod terminal;

pub use record::{Missed, Record};
pub use sink::{Shape, Sink};

use clap::ValueEnum;
use std::time::Duration;

/// In which form results are told.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// One JSON document; errors are in it, too
    #[arg(long, group = "format")]
    json: bool,

    /// A JSON object on each line, as results come; errors are among them
    #[arg(long, group = "format")]
    jsonl: bool,

    /// Comma-separated values, a line for each server, as results come
    #[arg(long, group = "format")]
    csv: bool,

    /// JSON with the keys of another program
    #[arg(long, value_name = "PROGRAM", value_enum, conflicts_with = "csv")]
    compat: Option<Compat>,
}

/// Milliseconds, to thousandths: that is what a clock can tell.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Another program whose keys can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    Gamedig,
}

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    Json,
    Jsonl,
    Csv,
    /// As gamedig does: an object for one server, a list for several.
    Gamedig,
    /// An object with gamedig's keys on each line.
    GamedigLines,
}

impl Format {
    /// What a command line that makes no sense asks for, as far as one can tell.
    pub fn of_words(words: impl Iterator<Item = String>) -> Self {
        let words: Vec<_> = words.collect();
        let has = |word: &str| words.iter().any(|it| it == word);
        let compat = has("--compat") || has("--compat=gamedig");
        match (compat, has("--jsonl"), has("--json")) {
            (true, true, _) => Self::GamedigLines,
            (true, ..) => Self::Gamedig,
            (_, true, _) => Self::Jsonl,
            (.., true) => Self::Json,
            _ => Self::Text,
        }
    }
}

impl OutputArgs {
    /// Whether it is for people.
    pub fn is_text(&self) -> bool {
        self.format() == Format::Text
    }

    /// The form that was asked for.
    pub fn format(&self) -> Format {
        match self {
            Self { compat: Some(Compat::Gamedig), jsonl: true, .. } => Format::GamedigLines,
            Self { compat: Some(Compat::Gamedig), .. } => Format::Gamedig,
            Self { json: true, .. } => Format::Json,
            Self { jsonl: true, .. } => Format::Jsonl,
            Self { csv: true, .. } => Format::Csv,
            _ => Format::Text,
        }
    }
}
