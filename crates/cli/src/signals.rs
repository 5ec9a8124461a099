//! What the system tells a running program.

use std::{
    io,
    time::{Duration, Instant},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// timeout(1) and other wrappers send a signal twice, to the program and to its group. A person is slower than this.
const ECHO: Duration = Duration::from_millis(300);

/// The signals that the program understands.
pub struct Signals {
    hangup: Option<Signal>,
    /// What SIGHUP means.
    on_hangup: Told,
    interrupt: Signal,
    terminate: Signal,
}

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// SIGHUP, for what runs in the background: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT (Ctrl-C): come to an end. For what runs in a terminal also SIGHUP: the terminal is gone.
    Stop,
}

impl Signals {
    /// Listens for all of them from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::to_stop()? })
    }

    /// Listens only for those to come to an end: nohup(1) goes on working.
    pub fn to_stop() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { hangup: None, on_hangup: Told::Reload, interrupt, terminate })
    }

    /// Listens for those to come to an end, and for the end of the terminal; but nohup(1) goes on working.
    pub fn to_end() -> io::Result<Self> {
        let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { hangup, on_hangup: Told::Stop, ..Self::to_stop()? })
    }

    /// The next signal.
    pub async fn next(&mut self) -> Told {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.terminate.recv() => Told::Stop,
            _ = hangup => self.on_hangup,
        }
    }

    /// The next signal to come to an end.
    pub async fn stop(&mut self) {
        while self.next().await != Told::Stop {}
    }

    /// The next signal to come to an end that is not an echo of one just before.
    pub async fn stop_again(&mut self) {
        let before = Instant::now();
        loop {
            self.stop().await;
            if before.elapsed() >= ECHO {
                return;
            }
        }
    }
}

/// Whether whoever started the program wants it to live on without its terminal. To listen for a signal would end that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // A bit for each signal, the first one for SIGHUP. A system that does not tell is taken at its word for nohup(1).
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}
