//! Runs a command, and prints a line from time to time, so that a long step does not look as if it hangs.

use std::{
    env,
    io::{self, BufRead, BufReader},
    num::NonZero,
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

/// Number of tests that nextest runs at the same time.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

/// Runs a command whose output is shown as it is.
pub fn run(mut command: Command, name: &str) -> io::Result<ExitStatus> {
    let _ticker = Ticker::start(name, Arc::default());
    command.status()
}

/// Runs `cargo nextest`, and shows how many tests have run instead of the names of those that pass.
pub fn run_nextest(mut command: Command, name: &str) -> io::Result<ExitStatus> {
    let count = Arc::<Mutex<String>>::default();
    let _ticker = Ticker::start(name, count.clone());
    if env::var_os(TEST_THREADS).is_none() {
        // Most tests with sockets, processes and browsers wait most of the time.
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        command.env(TEST_THREADS, (2 * cores).to_string());
    }
    let mut child = command.args(["--status-level", "pass"]).stderr(Stdio::piped()).spawn()?;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            match passed(&line) {
                Some(progress) => progress.clone_into(&mut count.lock().unwrap_or_else(PoisonError::into_inner)),
                None => eprintln!("{line}"),
            }
        }
    }
    child.wait()
}

/// The progress in a line such as `PASS [   0.005s] (335/416) package::binary test`, unless it reports anything else than a
/// test that passed in time.
fn passed(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_prefix("PASS [")?;
    let (_, rest) = line.split_once('(')?;
    Some(rest.split_once(')')?.0.trim())
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
        assert_eq!(passed(line), Some("335/416"));
        assert_eq!(passed("        PASS [   0.005s] ( 35/416) rallypoint::serve_starts a"), Some("35/416"));
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
