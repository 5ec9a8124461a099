//! Output formats of the commands that scan.

pub mod csv;
pub mod details;
pub mod gamedig;
pub mod json;
pub mod printer;
pub mod progress;
pub mod server_cells;
pub mod table;
pub mod terminal;

pub use printer::{CopyNote, FailedTarget, ListNote, Printer, Shape};

use clap::ValueEnum;

/// Flags that choose the output format.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// One JSON document, errors included
    #[arg(long, group = "format")]
    json: bool,

    /// One JSON object per line as results arrive, errors included
    #[arg(long, group = "format")]
    jsonl: bool,

    /// Comma-separated values, one line per server, as results arrive
    #[arg(long, group = "format")]
    csv: bool,

    /// JSON with the keys of another program
    #[arg(long, value_name = "PROGRAM", value_enum, conflicts_with = "csv")]
    compat: Option<Compat>,
}

/// Another program whose JSON keys can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    Gamedig,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    Json,
    Jsonl,
    Csv,
    /// As gamedig: an object for one server, an array for several.
    Gamedig,
    /// One object with gamedig's keys per line.
    GamedigLines,
}

impl Format {
    /// The format that an invalid command line requests, as far as it can be recognised.
    pub fn from_invalid_arguments(words: impl Iterator<Item = String>) -> Self {
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
    /// Whether the format is for people.
    pub fn is_text(&self) -> bool {
        self.format() == Format::Text
    }

    /// The format.
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
