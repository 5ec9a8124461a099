//! Signals that stop or reload a running command.
//!
//! On Windows, Ctrl-C is SIGINT, Ctrl-Break and a shutdown are SIGTERM, and the closing of the console is SIGHUP for a command
//! in a terminal. Nothing reloads a service there.

#[cfg_attr(windows, path = "signals/windows.rs")]
#[cfg_attr(not(windows), path = "signals/unix.rs")]
pub mod system;

use std::{
    io,
    time::{Duration, Instant},
};
use system::{Hangup, Interrupt, Terminate};

/// Time within which a repeated signal is ignored: timeout(1) and other wrappers signal both the process and its group. A
/// second Ctrl-C by hand comes later than this.
const REPEAT_WINDOW: Duration = Duration::from_millis(300);

/// The signals a command handles.
pub struct Signals {
    hangup: Option<Hangup>,
    /// Action on SIGHUP.
    on_hangup: SignalAction,
    interrupt: Interrupt,
    terminate: Terminate,
}

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalAction {
    /// SIGHUP for a service: reload the configuration.
    Reload,
    /// SIGTERM or SIGINT (Ctrl-C): stop. For a command in a terminal also SIGHUP: the terminal was closed.
    Stop,
}

impl Signals {
    /// Handles SIGHUP as reload, SIGINT and SIGTERM as stop.
    pub fn new() -> io::Result<Self> {
        Ok(Self { hangup: Some(system::hangup()?), on_hangup: system::ON_SERVICE_HANGUP, ..Self::to_stop()? })
    }

    /// Handles SIGINT and SIGTERM only, so that nohup(1) works.
    pub fn to_stop() -> io::Result<Self> {
        let interrupt = system::interrupt()?;
        let terminate = system::terminate()?;
        Ok(Self { hangup: None, on_hangup: SignalAction::Reload, interrupt, terminate })
    }

    /// Handles SIGINT, SIGTERM and SIGHUP as stop, except SIGHUP under nohup(1).
    pub fn to_end() -> io::Result<Self> {
        let hangup = if system::ignores_hangup() { None } else { Some(system::hangup()?) };
        Ok(Self { hangup, on_hangup: SignalAction::Stop, ..Self::to_stop()? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalAction {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.terminate.recv() => SignalAction::Stop,
            _ = hangup => self.on_hangup,
        }
    }

    /// Waits for a signal to stop.
    pub async fn stop(&mut self) {
        while self.next().await != SignalAction::Stop {}
    }

    /// Waits for another signal to stop that is not a repetition of the first.
    pub async fn stop_again(&mut self) {
        let first = Instant::now();
        loop {
            self.stop().await;
            if first.elapsed() >= REPEAT_WINDOW {
                return;
            }
        }
    }
}
