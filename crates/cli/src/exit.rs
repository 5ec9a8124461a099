//! The exit codes of commands that scan.

use crate::{error::CommandError, stdio::print_stderr};
use rallypoint_query::ProbeError;
use std::process::ExitCode;

/// Exit code of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All targets answered.
    Answered = 0,
    /// Some targets did not answer, or failed for different reasons.
    Silent = 1,
    /// Wrong usage.
    Usage = 2,
    /// A reply was invalid.
    Malformed = 3,
    /// Nothing listens at the port.
    Refused = 4,
    /// This machine could not send the query.
    Local = 5,
}

/// Section of the long help of every command that scans.
pub const HELP: &str = "\
Exit codes:
  0  all answered
  1  some did not answer, could not be resolved, or failed for different reasons
  2  wrong usage, or a file of targets that cannot be read, or has lines that
     are not targets
  3  a reply was invalid
  4  refused: the machine answers, but nothing listens at that port; also if
     other targets answered
  5  this machine could not send the query: no network, no permission";

impl Exit {
    /// The exit code of both together: the same failure stays what it is, different failures become [`Exit::Silent`].
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

/// The exit code of an error.
impl From<&ProbeError> for Exit {
    fn from(error: &ProbeError) -> Self {
        match error {
            ProbeError::NotFound | ProbeError::NoAddress(_) | ProbeError::TimedOut(_) => Self::Silent,
            ProbeError::Malformed(_) | ProbeError::StaticCopy | ProbeError::Tls(_) => Self::Malformed,
            ProbeError::Refused => Self::Refused,
            _ => Self::Local,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Ends a command: prints the error, if there is one.
pub fn finish(result: Result<Exit, CommandError>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            print_stderr(&error);
            match error {
                CommandError::Usage(_) => Exit::Usage.into(),
                CommandError::Failed(_) | CommandError::NotSaved(_) => Exit::Local.into(),
            }
        }
    }
}
