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
    /// Listens for all of them from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::to_stop()? })
    }

    /// Listens only for those to come to an end: nohup(1) goes on working.
    pub fn to_stop() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { hangup: None, interrupt, terminate })
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
            _ = hangup => Told::Reload,
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
