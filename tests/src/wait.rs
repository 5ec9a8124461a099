//! Waiting for what has to happen.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Longer than anything takes on a busy machine: a test that waits for it has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Looks again and again until it is so.
///
/// # Panics
/// If it does not become so.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "still not so: {what}");
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
