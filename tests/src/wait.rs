//! Polling for expected changes.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Longest time that a test waits for an expected change. Generous, because a wait ends as soon as the change happens.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Polls `condition` until it holds.
///
/// # Panics
/// If it does not hold within [`TIMEOUT`].
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Polls `poll` until it returns a value.
///
/// # Panics
/// If it returns none within [`TIMEOUT`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < TIMEOUT, "timed out waiting for: {what}");
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
