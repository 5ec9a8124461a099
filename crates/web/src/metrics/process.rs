//! Metrics of the process, as the system reports them.

use super::{Exposition, MetricKind};
use std::{
    fs,
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// The start of the process, set by [`set_process_start`].
static START: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

/// Sets the start of the process to now, unless it is set already. All counters start here.
pub fn set_process_start() {
    LazyLock::force(&START);
}

/// Adds the version of the program, and what the system reports about its process. What it does not report is left out.
pub fn export_process(out: &mut Exposition, version: &str) {
    let help = "The version of Rallypoint; the value is always 1.";
    out.family("rallypoint_build_info", MetricKind::Gauge, help).sample(&[("version", version)], 1);
    let start = START.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    out.gauge("rallypoint_process_start_time_seconds", "Start of the process, in seconds since 1970.", start);
    if let Some(bytes) = rallypoint_udp::resident_memory() {
        out.gauge("rallypoint_process_resident_memory_bytes", "Resident memory of the process.", bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory that is being read.
        out.gauge("rallypoint_process_open_fds", "Open file descriptors.", open.count().saturating_sub(1));
    }
    if let Some(max) = max_fds() {
        out.gauge("rallypoint_process_max_fds", "Maximum number of open file descriptors.", max);
    }
}

fn max_fds() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
