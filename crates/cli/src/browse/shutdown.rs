//! Signals that end the program, and the end of the terminal.

use crate::signals::system;
use ratatui::crossterm::terminal::disable_raw_mode;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// Time that the screen has to end by itself after a signal.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Whether the program has to end. Signals are handled on a thread of their own, so that they work whatever the others wait
/// for.
#[derive(Clone, Default)]
pub struct ShutdownSignal {
    is_requested: Arc<AtomicBool>,
    is_screen_suspended: Arc<AtomicBool>,
}

/// State of the terminal's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// No input in time.
    Nothing,
    /// There may be keys.
    Keys,
    /// The terminal is gone.
    #[cfg_attr(not(unix), allow(dead_code, reason = "a console that is closed ends the program"))]
    Gone,
}

impl ShutdownSignal {
    /// Starts to listen for signals.
    pub fn listen() -> io::Result<Self> {
        let shutdown = Self::default();
        let listener = shutdown.clone();
        thread::Builder::new().name("signals".into()).spawn(move || listener.wait())?;
        Ok(shutdown)
    }

    /// Whether a signal has requested the end.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Relaxed)
    }

    /// Notes whether another program uses the terminal: while it does, this one does not end.
    pub fn set_screen_suspended(&self, is_suspended: bool) {
        self.is_screen_suspended.store(is_suspended, Relaxed);
    }

    fn wait(&self) {
        // Without a runtime, signals have their default effect.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let all = (system::interrupt(), system::terminate(), system::hangup());
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = all else { return };
            loop {
                tokio::select! {
                    // Ctrl-C is meant for the program that uses the terminal.
                    _ = interrupt.recv() => if self.is_screen_suspended.load(Relaxed) { continue },
                    _ = terminate.recv() => {}
                    // The terminal is gone.
                    _ = hangup.recv() => {}
                }
                self.is_requested.store(true, Relaxed);
                tokio::time::sleep(GRACE_PERIOD).await;
                if !self.is_screen_suspended.load(Relaxed) {
                    // The screen hangs, for example in a write to a terminal that accepts nothing.
                    let _ = disable_raw_mode();
                    std::process::exit(0);
                }
            }
        });
    }
}

/// Waits for keys. Reading from a terminal that is gone would never return, so this is detected first.
#[cfg(unix)]
pub fn wait_for_input(wait: Duration) -> io::Result<Input> {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::Errno,
    };
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&wait)) {
        // A signal, for example that the size of the terminal changed.
        Ok(0) | Err(Errno::INTR) => Ok(Input::Nothing),
        Ok(_) if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Ok(Input::Gone),
        Ok(_) => Ok(Input::Keys),
        Err(error) => Err(error.into()),
    }
}

/// Waits for keys. A console that is closed ends the program by itself.
#[cfg(not(unix))]
pub fn wait_for_input(wait: Duration) -> io::Result<Input> {
    let has_keys = ratatui::crossterm::event::poll(wait)?;
    Ok(if has_keys { Input::Keys } else { Input::Nothing })
}
