//! The error of a suite.

use std::{fmt, io, process::ExitCode};

/// Why a suite could not measure something, in one sentence.
#[derive(Debug)]
pub struct Failure(pub String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Failure {
    /// The exit code of a suite; prints the error.
    #[must_use]
    pub fn exit(result: Result<(), Self>) -> ExitCode {
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::FAILURE
            }
        }
    }
}
