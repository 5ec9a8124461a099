//! The exit codes of commands that ask.

use crate::{error::CommandError, stdio::print_stderr};
use std::process::ExitCode;

/// How it went, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All answered.
    Answered = 0,
    /// Some did not answer; or some did not for one reason and some for another.
    Silent = 1,
    /// Wrong usage.
    Usage = 2,
    /// An answer made no sense.
    Malformed = 3,
    /// Nothing listens there.
    Refused = 4,
    /// This machine could not do it.
    Local = 5,
}

/// For the help of every command that asks.
pub const HELP: &str = "\
Exit codes:
  0  all answered
  1  some did not answer, or cannot be found, or failed for different reasons
  2  wrong usage
  3  an answer made no sense
  4  refused: the machine is there, but nothing listens at that port; also if
     others answered
  5  this machine could not do it: no network, no permission, no such file";

impl Exit {
    /// How it went with both: the same trouble stays what it is, different ones are only that some did not answer.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Answered, other) => other,
            (same, Self::Answered) => same,
            (one, other) if one == other => one,
            _ => Self::Silent,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Ends a command: tells what went wrong.
pub fn finish(result: Result<Exit, CommandError>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            print_stderr(&failure);
            match failure {
                CommandError::Usage(_) => Exit::Usage.into(),
                CommandError::Failed(_) | CommandError::NotSaved(_) => Exit::Local.into(),
            }
        }
    }
}
