//! What the system says about this process.

use super::{Exposition, Kind};
use std::{
    fs,
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// When somebody first asked, which is at the start: see [`started`].
static START: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

/// Notes the time. What is counted begins now.
pub fn started() {
    LazyLock::force(&START);
}

/// Which version of the program this is, and what the system says about its process. What it does not say is left out.
pub fn process(out: &mut Exposition, version: &str) {
    let help = "Which version of Rallypoint this is; the number is always 1.";
    out.family("rallypoint_build_info", Kind::Gauge, help).sample(&[("version", version)], 1);
    let start = START.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    out.gauge("rallypoint_process_start_time_seconds", "When it started, in seconds since 1970.", start);
    if let Some(bytes) = resident_bytes() {
        out.gauge("rallypoint_process_resident_memory_bytes", "Memory that it takes.", bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // The folder itself is open while it is read.
        out.gauge("rallypoint_process_open_fds", "Open files and connections.", open.count().saturating_sub(1));
    }
    if let Some(most) = max_fds() {
        out.gauge("rallypoint_process_max_fds", "How many files and connections it can have open.", most);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

fn max_fds() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
