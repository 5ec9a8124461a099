//! The signals of Unix.

use super::SignalAction;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub type Interrupt = Signal;
pub type Terminate = Signal;
pub type Hangup = Signal;

/// The action that SIGHUP requests from a service.
pub const ON_SERVICE_HANGUP: SignalAction = SignalAction::Reload;

pub fn interrupt() -> io::Result<Interrupt> {
    signal(SignalKind::interrupt())
}

pub fn terminate() -> io::Result<Terminate> {
    signal(SignalKind::terminate())
}

pub fn hangup() -> io::Result<Hangup> {
    signal(SignalKind::hangup())
}

/// Whether the parent process made this one ignore SIGHUP, as nohup(1) does. Installing a handler would undo that.
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // One bit per signal, the lowest for SIGHUP. Without this information SIGHUP is left ignored, in favour of nohup(1).
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}
