//! How a command ends if it does not end well.

use crate::config::Mistakes;
use rallypoint_udp::BindError;
use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

/// Why a command failed, in a sentence that says what to do.
#[derive(Debug)]
pub enum Failure {
    /// It was asked for something that makes no sense.
    Usage(String),
    /// It could not do what it was asked for.
    Failed(String),
    /// It did all but keep what should outlive it.
    NotSaved(String),
}

/// Tells a person what is wrong. If nobody listens any more, that is no reason to stop.
pub fn complain(what: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// What is wrong with the usage, without the hints.
pub fn in_one_line(error: &str) -> String {
    let first = error.lines().take_while(|line| !line.trim().is_empty());
    let words = first.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    words.strip_prefix("error: ").unwrap_or(&words).to_owned()
}

/// Prints what was asked for.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has read enough: `| head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Failure::failed),
    }
}

impl Failure {
    /// A failure from whatever explains itself.
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

    /// The code that scripts see.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Failed(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::NotSaved(_) => ExitCode::from(5),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(why) | Self::Failed(why) | Self::NotSaved(why)) = self;
        write!(f, "rallypoint: {why}")
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Self::Usage(format!("the configuration cannot be used\n{mistakes}"))
    }
}
