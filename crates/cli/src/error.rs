//! The error of a command, with its exit code.

use crate::toml_file::ConfigErrors;
use rallypoint_udp::BindError;
use std::{fmt, io, process::ExitCode};

/// Why a command failed: one sentence that states what happened and what to do.
#[derive(Debug)]
pub enum CommandError {
    /// The arguments or the configuration are wrong.
    Usage(String),
    /// The command could not do its work.
    Failed(String),
    /// The command did its work, but could not write its state to disk.
    NotSaved(String),
}

/// The message of a usage error in one line, without the hints that follow it.
pub fn usage_summary(error: &str) -> String {
    let first = error.lines().take_while(|line| !line.trim().is_empty());
    let words = first.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    words.strip_prefix("error: ").unwrap_or(&words).to_owned()
}

/// Why a file cannot be read or written, without the number of the system's error.
pub fn describe_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        _ => error.to_string(),
    }
}

/// A message followed by a hint, which begins with a lower-case letter: as a sentence of its own after a question.
pub fn with_hint(message: &str, hint: Option<String>) -> String {
    let Some(hint) = hint else { return message.to_owned() };
    if !message.ends_with('?') {
        return format!("{message}; {hint}");
    }
    let mut chars = hint.chars();
    let first: String = chars.next().map_or_else(String::new, |first| first.to_uppercase().collect());
    format!("{message} {first}{}", chars.as_str())
}

impl CommandError {
    /// An error with the text of another one.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }

    /// A socket that cannot be bound: the error's own sentence, and the flag that sets its address.
    pub fn bind(error: &BindError, flag: &str) -> Self {
        match error {
            BindError::Other { .. } => Self::failed(error),
            // These end with what to choose.
            _ => Self::failed(format_args!("{error} with {flag}")),
        }
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Failed(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::NotSaved(_) => ExitCode::from(5),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(why) | Self::Failed(why) | Self::NotSaved(why)) = self;
        write!(f, "rallypoint: {why}")
    }
}

impl From<ConfigErrors> for CommandError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Usage(format!("the configuration is not valid\n{errors}"))
    }
}
