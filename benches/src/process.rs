//! Cores, and the time that processes spend on them. Linux only, like the numbers we publish.

use std::{
    ffi::OsStr,
    fs, io,
    process::{Command, Stdio},
    time::Duration,
};

/// The cores that this process may use: with two or more, a server and its load need not share one.
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

/// Lets the calling thread run only when nobody else wants its core.
pub(crate) fn yield_to_all() -> io::Result<()> {
    on_this_thread(Command::new("chrt").args(["--idle", "--pid", "0"]))
}

/// Runs a tool of util-linux that takes the number of the calling thread as its last argument.
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

/// The processor time that a process has used so far, with the threads that it has now, by itself and in the kernel. Exact
/// while it waits, and a few milliseconds old while it works.
///
/// # Errors
///
/// If there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while we look.
        let Ok(schedstat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        total += parse_schedstat(&schedstat).ok_or(io::ErrorKind::InvalidData)?;
    }
    Ok(total)
}

/// The processor, the number of cores, the compiler: what a number in a table depends on.
#[must_use]
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    // Not `available_parallelism`, which counts only those that this thread may use.
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let rustc = rustc.split(" (").next().unwrap_or_default();
    format!("{cores} cores of {model}, {rustc}")
}

/// A list like `0-3,8`.
fn parse_cores(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cores)
}

/// Nanoseconds on a core, nanoseconds waiting for one, and how often it had one.
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
    fn a_list_of_cores_is_read() {
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
