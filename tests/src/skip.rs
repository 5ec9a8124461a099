//! Tests that cannot run on this machine.

use std::{
    env,
    fs::File,
    io::Write,
    net::{Ipv6Addr, UdpSocket},
    panic::Location,
    thread,
};

/// Reports that the calling test is skipped, and why. The test has to return right after this call.
///
/// The report goes to standard error and, as one line `NAME: REASON`, to the file named by the environment variable
/// `RALLYPOINT_SKIPPED`. `cargo xtask test` sets that variable and prints the list in its summary.
///
/// # Panics
/// If the file cannot be written.
#[track_caller]
pub fn skip(reason: &str) {
    let line = format!("{}: {reason}\n", test_name(Location::caller()));
    eprint!("skipped: {line}");
    if let Some(path) = env::var_os("RALLYPOINT_SKIPPED") {
        let file = File::options().append(true).create(true).open(path);
        // One write per line: tests of several processes append at the same time.
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of skipped tests is writable");
    }
}

/// Whether this machine has IPv6 on loopback.
#[must_use]
pub fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// The test runner names the thread after the test, unless it runs a single test on the main thread.
fn test_name(caller: &Location<'_>) -> String {
    let thread = thread::current();
    match (thread.name(), env::var("NEXTEST_TEST_NAME")) {
        (Some(name), _) if name != "main" => name.to_owned(),
        (_, Ok(name)) => name,
        _ => caller.to_string(),
    }
}
