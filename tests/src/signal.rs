//! Signals to a program. Windows has none: a program can only be ended there.

#[cfg(unix)]
pub use rustix::process::Signal;

use std::{io, process::Child};

/// Sends a signal to a child process.
#[cfg(unix)]
pub fn send(child: &mut Child, signal: Signal) -> io::Result<()> {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let id = id.ok_or(io::ErrorKind::InvalidInput)?;
    rustix::process::kill_process(id, signal).map_err(Into::into)
}

/// A signal.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(&'static str);

#[cfg(not(unix))]
#[allow(missing_docs, reason = "the names are those of Unix")]
impl Signal {
    pub const HUP: Self = Self("HUP");
    pub const INT: Self = Self("INT");
    pub const TERM: Self = Self("TERM");
    pub const KILL: Self = Self("KILL");
    pub const STOP: Self = Self("STOP");
    pub const CONT: Self = Self("CONT");
}

/// Ends a child process, whatever the signal.
#[cfg(not(unix))]
pub fn send(child: &mut Child, _signal: Signal) -> io::Result<()> {
    child.kill()
}
