//! Cores and CPU time. Linux only, like the published figures.

use std::{
    ffi::OsStr,
    fs, io,
    process::{Command, Stdio},
    time::Duration,
};

/// The cores that this process may use. With two or more, a server and its load do not share one.
#[must_use]
pub fn cores() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| parse_cores(line.strip_prefix("Cpus_allowed_list:")?)).unwrap_or_default()
}

/// Keeps the calling thread, and the threads that it starts from now on, on one core.
///
/// # Errors
///
/// If there is no such core, or no `taskset` (of util-linux).
pub fn pin_this_thread(core: usize) -> io::Result<()> {
    on_this_thread(Command::new("taskset").args(["--cpu-list", "--pid", &core.to_string()]))
        .map_err(|error| io::Error::new(error.kind(), format!("cannot be pinned to core {core}: {error}")))
}

/// Gives the calling thread the idle scheduling policy: it runs only when no other thread needs its core.
pub(crate) fn set_idle_priority() -> io::Result<()> {
    on_this_thread(Command::new("chrt").args(["--idle", "--pid", "0"]))
}

/// Runs a tool of util-linux with the ID of the calling thread as its last argument.
fn on_this_thread(tool: &mut Command) -> io::Result<()> {
    // "PID/task/TID"
    let link = fs::read_link("/proc/thread-self")?;
    let thread = link.file_name().unwrap_or_default();
    let status = tool.arg(thread).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{tool:?}: {status}"))) }
}

/// A command that runs on one core only, to be completed and started by the caller.
#[must_use]
pub fn pinned(core: usize, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string()]).arg(program);
    command
}

/// CPU time, user and kernel, that the current threads of a process have used so far. Exact while the process sleeps, and a
/// few milliseconds old while it runs.
///
/// # Errors
///
/// If there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end in the meantime.
        let Ok(schedstat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        total += parse_schedstat(&schedstat).ok_or(io::ErrorKind::InvalidData)?;
    }
    Ok(total)
}

/// The processor, the number of cores and the compiler.
#[must_use]
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    // Not `available_parallelism`, which counts only the cores that this thread may use.
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let rustc = rustc.split(" (").next().unwrap_or_default();
    format!("{cores} cores of {model}, {rustc}")
}

/// Parses a list such as `0-3,8`.
fn parse_cores(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cores)
}

/// Parses the time on a core. The fields are nanoseconds on a core, nanoseconds waiting for one, and the number of slices.
fn parse_schedstat(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_time_is_the_first_number() {
        assert_eq!(parse_schedstat("1237495 20 1\n"), Some(Duration::from_nanos(1_237_495)));
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn a_list_of_cores_is_parsed() {
        assert_eq!(parse_cores("\t0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_cores("5"), Some(vec![5]));
        assert_eq!(parse_cores(""), None);
    }

    #[test]
    fn this_process_has_a_time() {
        assert!(cpu_time(std::process::id()).is_ok());
        assert!(cpu_time(u32::MAX).is_err());
    }

    #[test]
    fn a_pinned_process_and_thread_see_one_core() {
        let core = cores()[0];
        let output = pinned(core, "nproc").output().unwrap();
        assert_eq!(output.stdout.trim_ascii(), b"1");
        pin_this_thread(core).unwrap();
        assert_eq!(thread::available_parallelism().unwrap().get(), 1);
        assert!(pin_this_thread(100_000).is_err());
    }
}
