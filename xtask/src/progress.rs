//! Runs a command, and prints a line from time to time, so that a long step does not look as if it hangs.

use std::{
    io::{self, BufRead, BufReader},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Interval between two lines.
const INTERVAL: Duration = Duration::from_secs(30);

/// Number of tests that are named after a run, because they took longest.
const SLOWEST: usize = 10;

/// Runs a command whose output is shown as it is.
pub fn run(mut command: Command, name: &str) -> io::Result<ExitStatus> {
    let _ticker = Ticker::start(name, Arc::default());
    command.status()
}

/// Runs `cargo nextest`, and shows how many tests have run instead of the names of those that pass, and at the end those that
/// took longest.
pub fn run_nextest(mut command: Command, name: &str) -> io::Result<ExitStatus> {
    let count = Arc::<Mutex<String>>::default();
    let _ticker = Ticker::start(name, count.clone());
    let mut tests = Vec::new();
    let mut child = command.args(["--status-level", "pass"]).stderr(Stdio::piped()).spawn()?;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            match passed(&line) {
                Some(test) => {
                    test.progress.clone_into(&mut count.lock().unwrap_or_else(PoisonError::into_inner));
                    tests.push((test.time.to_owned(), test.name.to_owned()));
                }
                None => eprintln!("{line}"),
            }
        }
    }
    let status = child.wait();
    slowest(tests).iter().for_each(|(time, name)| eprintln!("{time:>8} {name}"));
    status
}

/// A test that has passed in time.
#[derive(Debug, PartialEq, Eq)]
struct Passed<'a> {
    /// In seconds: `0.005s`.
    time: &'a str,
    /// `335/416`.
    progress: &'a str,
    name: &'a str,
}

/// Parses a line such as `PASS [   0.005s] (335/416) package::binary test`; none if it reports anything else.
fn passed(line: &str) -> Option<Passed<'_>> {
    let (time, rest) = line.trim_start().strip_prefix("PASS [")?.split_once(']')?;
    let (progress, name) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
    Some(Passed { time: time.trim(), progress: progress.trim(), name: name.trim() })
}

/// The tests that took longest, those first.
fn slowest(mut tests: Vec<(String, String)>) -> Vec<(String, String)> {
    let seconds = |(time, _): &(String, String)| time.trim_end_matches('s').parse::<f64>().unwrap_or_default();
    tests.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    tests.truncate(SLOWEST);
    tests
}

/// Prints the elapsed time of a step every [`INTERVAL`], until it is dropped.
struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(name: &str, count: Arc<Mutex<String>>) -> Self {
        let (stop, stopped) = channel();
        let name = name.to_owned();
        let start = Instant::now();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let count = count.lock().unwrap_or_else(PoisonError::into_inner).clone();
                eprintln!("{}", line(&name, start.elapsed(), &count));
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn line(name: &str, elapsed: Duration, count: &str) -> String {
    let minutes = elapsed.as_secs() / 60;
    let seconds = elapsed.as_secs() % 60;
    let count = if count.is_empty() { String::new() } else { format!(", {count} tests") };
    format!("... {name}: {minutes} min {seconds:02} s{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_is_read_from_a_passed_test() {
        let line = "        PASS [   0.005s] (335/416) rallypoint::serve_starts the_default_port";
        let name = "rallypoint::serve_starts the_default_port";
        assert_eq!(passed(line), Some(Passed { time: "0.005s", progress: "335/416", name }));
        let line = "        PASS [   0.005s] ( 35/416) rallypoint::serve_starts a";
        assert_eq!(passed(line).map(|test| test.progress), Some("35/416"));
    }

    #[test]
    fn the_slowest_tests_come_first() {
        let tests = [("9.500s", "b"), ("0.100s", "c"), ("10.000s", "a")];
        let tests = tests.map(|(time, name)| (time.to_owned(), name.to_owned())).to_vec();
        assert_eq!(slowest(tests).iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn other_lines_are_not_hidden() {
        for line in [
            "        FAIL [   0.005s] (335/416) rallypoint::serve_starts the_default_port",
            "        SLOW [> 60.000s] (───────) rallypoint::serve_starts the_default_port",
            "    Starting 416 tests across 64 binaries",
            "",
        ] {
            assert_eq!(passed(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_has_the_step_the_time_and_the_tests() {
        assert_eq!(line("tests", Duration::from_secs(95), "312/1480"), "... tests: 1 min 35 s, 312/1480 tests");
        assert_eq!(line("clippy", Duration::from_secs(30), ""), "... clippy: 0 min 30 s");
    }
}
