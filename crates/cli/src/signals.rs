//! Signals that stop or reload a running command.

use std::{
    io,
    time::{Duration, Instant},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time within which a repeated signal is ignored: timeout(1) and other wrappers signal both the process and its group. A
/// second Ctrl-C by hand comes later than this.
const REPEAT_WINDOW: Duration = Duration::from_millis(300);

/// The signals a command handles.
pub struct Signals {
    hangup: Option<Signal>,
    /// Action on SIGHUP.
    on_hangup: SignalAction,
    interrupt: Signal,
    terminate: Signal,
}

/// The action a signal asks for.
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
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::to_stop()? })
    }

    /// Handles SIGINT and SIGTERM only, so that nohup(1) works.
    pub fn to_stop() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { hangup: None, on_hangup: SignalAction::Reload, interrupt, terminate })
    }

    /// Handles SIGINT, SIGTERM and SIGHUP as stop, except SIGHUP under nohup(1).
    pub fn to_end() -> io::Result<Self> {
        let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
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

/// Whether the parent process made this one ignore SIGHUP, as nohup(1) does. Installing a handler would undo that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // One bit per signal, the lowest for SIGHUP. Without this information SIGHUP is left ignored, in favour of nohup(1).
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}
