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
    // "PID/task/TID"
    let link = fs::read_link("/proc/thread-self")?;
    let thread = link.file_name().unwrap_or_default();
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", "--pid", &core.to_string()]).arg(thread);
    let status = taskset.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("cannot be pinned to core {core}"))) }
}

/// A command that runs on one core only, to be completed and started by the caller.
#[must_use]
pub fn pinned(core: usize, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string()]).arg(program);
    command
}

/// The processor time that a process has used so far, with all its threads, by itself and in the kernel. In steps of 10 ms.
///
/// # Errors
///
/// If there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_stat(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
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

fn parse_stat(stat: &str) -> Option<Duration> {
    /// The kernel's unit in this file (`USER_HZ`) is fixed for programs, whatever its own clock does.
    const TICK: Duration = Duration::from_millis(10);
    // The name before the last bracket may hold anything, brackets and blanks too.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    TICK.checked_mul(user.checked_add(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_time_is_read_whatever_the_process_is_called() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 7 7 20 0 1 0 100 1000 10\n";
        assert_eq!(parse_stat(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_stat("42 (a) S 1"), None);
        assert_eq!(parse_stat(""), None);
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
