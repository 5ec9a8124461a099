//! What the system tells a running program.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the program understands.
pub struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT (Ctrl-C): come to an end.
    Stop,
}

impl Signals {
    /// Listens for signals from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next signal.
    pub async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.terminate.recv() => Told::Stop,
            _ = self.hangup.recv() => Told::Reload,
        }
    }

    /// The next signal to come to an end.
    pub async fn stop(&mut self) {
        while self.next().await != Told::Stop {}
    }
}
