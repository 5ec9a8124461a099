//! Addresses on loopback, and waiting for what has to happen.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Longer than anything takes on a busy machine: a test that waits for it has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

pub fn any_v4() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn any_v6() -> SocketAddr {
    "[::1]:0".parse().unwrap()
}

/// Polls until the condition holds; fails the test after [`LIMIT`].
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
