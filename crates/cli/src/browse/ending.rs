//! Noticing that it is over: a signal, or a terminal that is gone.

use ratatui::crossterm::terminal::disable_raw_mode;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// How long the screen has to end by itself after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// Whether the program is to end. It has a thread of its own, so that signals work whatever the others wait for.
#[derive(Clone, Default)]
pub struct Ending {
    is_told: Arc<AtomicBool>,
    is_aside: Arc<AtomicBool>,
}

/// What a terminal has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing in time.
    Nothing,
    /// There may be keys.
    Keys,
    /// There will never be anything: the terminal is gone.
    Gone,
}

impl Ending {
    /// Listens for signals from now on.
    pub fn listen() -> io::Result<Self> {
        let ending = Self::default();
        let told = ending.clone();
        thread::Builder::new().name("signals".into()).spawn(move || told.wait())?;
        Ok(ending)
    }

    /// Whether a signal has said so.
    pub fn is_told(&self) -> bool {
        self.is_told.load(Relaxed)
    }

    /// Another program has the terminal, or no longer: as long as it has, the end waits for it.
    pub fn set_aside(&self, is_aside: bool) {
        self.is_aside.store(is_aside, Relaxed);
    }

    fn wait(&self) {
        // Where this cannot be had, signals end the program as they always do.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let all = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
            let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = all else { return };
            loop {
                tokio::select! {
                    // Ctrl-C is for whoever has the terminal.
                    _ = interrupt.recv() => if self.is_aside.load(Relaxed) { continue },
                    _ = terminate.recv() => {}
                    // The terminal is gone.
                    _ = hangup.recv() => {}
                }
                self.is_told.store(true, Relaxed);
                tokio::time::sleep(GRACE).await;
                if !self.is_aside.load(Relaxed) {
                    // The screen hangs, such as in a write to a terminal that takes nothing: no more is written.
                    let _ = disable_raw_mode();
                    std::process::exit(0);
                }
            }
        });
    }
}

/// Waits for keys. What reads them would never come back from a terminal that is gone, so that is found out before.
pub fn wait_for_input(wait: Duration) -> io::Result<Input> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&wait)) {
        // A signal, such as that the terminal has another size.
        Ok(0) | Err(Errno::INTR) => Ok(Input::Nothing),
        Ok(_) if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Ok(Input::Gone),
        Ok(_) => Ok(Input::Keys),
        Err(error) => Err(error.into()),
    }
}
