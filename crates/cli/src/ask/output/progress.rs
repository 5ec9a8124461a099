//! A bar on standard error, for what takes longer than a second.

use super::terminal::stderr_is_lively;
use std::{
    io::{Write, stderr},
    time::{Duration, Instant},
};

/// How far a sweep is. Nothing is shown unless standard error is a terminal.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    is_lively: bool,
    is_shown: bool,
    last: Option<Instant>,
}

/// Before this, nobody wonders.
const PATIENCE: Duration = Duration::from_secs(1);

/// Nobody reads faster.
const PAUSE: Duration = Duration::from_millis(100);

const BAR: usize = 20;

impl Progress {
    pub fn new() -> Self {
        Self { began: Instant::now(), is_lively: stderr_is_lively(), is_shown: false, last: None }
    }

    /// Whether it needs to be told how far things are.
    pub fn is_lively(&self) -> bool {
        self.is_lively
    }

    /// So many of so many are done, and so many of these answered.
    pub fn show(&mut self, done: usize, total: usize, answered: usize) {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= PAUSE);
        if self.is_lively && is_due && self.began.elapsed() >= PATIENCE {
            self.last = Some(Instant::now());
            let _ = write!(stderr(), "\r{}\x1b[K", line(done, total, answered));
            let _ = stderr().flush();
            self.is_shown = true;
        }
    }

    /// Makes room for something else.
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
