//! A progress bar on standard error, for scans that take longer than a second.

use super::terminal::can_animate_stderr;
use std::{
    io::{Write, stderr},
    time::{Duration, Instant},
};

/// The progress of a scan. Shown only if standard error is a terminal.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    is_enabled: bool,
    is_shown: bool,
    last_shown: Option<Instant>,
}

/// Time after which the bar appears.
const DELAY: Duration = Duration::from_secs(1);

/// Minimum time between updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Width of the bar, in columns.
const BAR: usize = 20;

impl Progress {
    pub fn new() -> Self {
        Self { start: Instant::now(), is_enabled: can_animate_stderr(), is_shown: false, last_shown: None }
    }

    /// Whether the bar can be shown at all.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Shows how many servers are done, how many there are, and how many of them answered.
    pub fn show(&mut self, done: usize, total: usize, answered: usize) {
        let is_due = self.last_shown.is_none_or(|last| last.elapsed() >= UPDATE_INTERVAL);
        if self.is_enabled && is_due && self.start.elapsed() >= DELAY {
            self.last_shown = Some(Instant::now());
            let _ = write!(stderr(), "\r{}\x1b[K", line(done, total, answered));
            let _ = stderr().flush();
            self.is_shown = true;
        }
    }

    /// Removes the bar, before something else is printed.
    pub fn clear(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
            let _ = stderr().flush();
            self.is_shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(done: usize, total: usize, answered: usize) -> String {
    let full = (BAR * done.min(total)).checked_div(total).unwrap_or(0);
    format!("[{}{}] {done}/{total}, {answered} answered", "#".repeat(full), ".".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_never_longer_than_full() {
        assert_eq!(line(5, 10, 4), "[##########..........] 5/10, 4 answered");
        assert_eq!(line(0, 0, 0), "[....................] 0/0, 0 answered");
        assert_eq!(line(3, 2, 1), "[####################] 3/2, 1 answered");
    }
}
