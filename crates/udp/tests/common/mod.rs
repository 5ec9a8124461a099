//! Loopback addresses, and polling for a condition.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Longer than anything takes on a busy machine: a test that waits this long has failed.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub fn any_v4() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn any_v6() -> SocketAddr {
    "[::1]:0".parse().unwrap()
}

/// Polls until the condition holds; fails the test after [`TIMEOUT`].
pub fn eventually(condition: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < TIMEOUT, "timed out waiting until {condition}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
