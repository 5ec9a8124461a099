//! A running program.

use crate::{
    signal::{self, Signal},
    wait::{TIMEOUT, eventually},
};
use std::{
    fs::File,
    io::{self, PipeReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

/// A running program and its output. It is killed when this value is dropped, also if the test fails.
#[derive(Debug)]
pub struct Process {
    child: Mutex<Child>,
    stdin: Mutex<Option<ChildStdin>>,
    stdout: Capture,
    stderr: Capture,
}

impl Process {
    /// Starts a command.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn spawn(command: &mut Command) -> Self {
        Self::start(command.stderr(Stdio::piped()))
    }

    /// Starts a command that the test writes input for.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn spawn_interactive(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::piped()))
    }

    /// Starts a command whose standard error is appended to a file.
    ///
    /// # Panics
    /// If it cannot be started, or the file cannot be opened.
    pub fn spawn_logging_to(file: &Path, command: &mut Command) -> Self {
        let file = File::options().append(true).open(file).expect("a writable file");
        Self::start(command.stderr(file))
    }

    /// Starts a command whose standard error is a pipe. Nothing is read from it unless the test does so.
    ///
    /// # Panics
    /// If it cannot be started, or there is no pipe.
    pub fn spawn_logging_to_pipe(command: &mut Command) -> (Self, PipeReader) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let process = Self::start(command.stderr(writer));
        // The command keeps the writing end, which would keep the pipe open after the process has ended.
        command.stderr(Stdio::null());
        (process, reader)
    }

    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdin = Mutex::new(child.stdin.take());
        let stdout = Capture::start(child.stdout.take());
        let stderr = Capture::start(child.stderr.take());
        Self { child: Mutex::new(child), stdin, stdout, stderr }
    }

    /// The most memory that it has used so far, and that of its files in memory, in bytes.
    ///
    /// # Panics
    /// If the program has ended.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn peak_memory(&self) -> usize {
        use std::{fs, os::unix::fs::MetadataExt};
        let process = format!("/proc/{}", self.id());
        let status = fs::read_to_string(format!("{process}/status")).expect("a running process");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let kilobytes: usize = peak.and_then(|number| number.parse().ok()).expect("a number of kilobytes");
        let files = fs::read_dir(format!("{process}/fd")).into_iter().flatten().flatten().map(|file| file.path());
        let in_memory = files.filter(|path| fs::read_link(path).is_ok_and(|to| to.starts_with("/memfd:")));
        let file_bytes: u64 =
            in_memory.filter_map(|path| fs::metadata(path).ok()).map(|file| 512 * file.blocks()).sum();
        1_024 * kilobytes + file_bytes as usize
    }

    /// The ID of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// Everything written to standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Everything written to standard error so far: the log.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// The next line of standard output; empty when the output has ended.
    ///
    /// # Panics
    /// If there is none within [`TIMEOUT`].
    #[track_caller]
    pub fn next_line(&self) -> String {
        self.stdout.next_line().expect("a line of standard output in time").unwrap_or_default()
    }

    /// Reads lines of standard output up to one that contains `part`, and returns that line.
    ///
    /// # Panics
    /// If there is none within [`TIMEOUT`].
    #[track_caller]
    pub fn wait_for_line(&self, part: &str) -> String {
        self.stdout.wait_for(part)
    }

    /// Reads lines of standard error up to one that contains `part`, and returns that line.
    ///
    /// # Panics
    /// If there is none within [`TIMEOUT`].
    #[track_caller]
    pub fn wait_for_log(&self, part: &str) -> String {
        self.stderr.wait_for(part)
    }

    /// Writes a line to standard input.
    ///
    /// # Panics
    /// If the process is not interactive, or has closed its input.
    pub fn write_line(&self, line: &str) {
        let mut stdin = lock(&self.stdin);
        let stdin = stdin.as_mut().expect("an interactive process");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("the program reads its input");
    }

    /// Closes standard input.
    pub fn close_stdin(&self) {
        *lock(&self.stdin) = None;
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn signal(&self, signal: Signal) {
        signal::send(&mut lock(&self.child), signal).expect("the program runs");
    }

    /// Sends a signal twice in a row, as timeout(1) does. The process may end before the second one.
    pub fn signal_twice(&self, signal: Signal) {
        self.signal(signal);
        let _ = signal::send(&mut lock(&self.child), signal);
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        matches!(lock(&self.child).try_wait(), Ok(Some(_)))
    }

    /// Waits until the process ends; returns its status and its complete output.
    ///
    /// # Panics
    /// If it does not end within [`TIMEOUT`].
    #[track_caller]
    pub fn wait(&self) -> Output {
        eventually("the program ends", || self.has_exited());
        let status = lock(&self.child).wait().expect("the status of an ended child process");
        Output { status, stdout: self.stdout.finish(), stderr: self.stderr.finish() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
        if thread::panicking() {
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            let (stdout, stderr) = (text(self.stdout.finish()), text(self.stderr.finish()));
            eprintln!("--- standard output of the program:\n{stdout}--- standard error:\n{stderr}---");
        }
    }
}

/// One output stream of a process, read in the background.
#[derive(Debug)]
struct Capture(Arc<(Mutex<Captured>, Condvar)>);

#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    /// End of the lines that the test has already read, as an index into `bytes`.
    read: usize,
    has_ended: bool,
}

impl Capture {
    fn start(pipe: Option<impl Read + Send + 'static>) -> Self {
        let shared = Arc::<(Mutex<Captured>, Condvar)>::default();
        let Some(mut pipe) = pipe else {
            lock(&shared.0).has_ended = true;
            return Self(shared);
        };
        let writer = shared.clone();
        thread::spawn(move || {
            let mut buffer = [0; 8_192];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                lock(&writer.0).bytes.extend_from_slice(&buffer[..length]);
                writer.1.notify_all();
            }
            lock(&writer.0).has_ended = true;
            writer.1.notify_all();
        });
        Self(shared)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.0.0).bytes).into_owned()
    }

    /// The next unread line; the inner value is none at the end of the stream, the outer one after [`TIMEOUT`].
    fn next_line(&self) -> Option<Option<String>> {
        let deadline = Instant::now() + TIMEOUT;
        let mut captured = lock(&self.0.0);
        loop {
            let unread = &captured.bytes[captured.read..];
            let length = unread.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
            let length = length.or_else(|| (captured.has_ended && !unread.is_empty()).then_some(unread.len()));
            if let Some(length) = length {
                let line = String::from_utf8_lossy(&unread[..length]).trim_end().to_owned();
                captured.read += length;
                return Some(Some(line));
            }
            if captured.has_ended {
                return Some(None);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            captured = self.0.1.wait_timeout(captured, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    #[track_caller]
    fn wait_for(&self, part: &str) -> String {
        loop {
            match self.next_line() {
                Some(Some(line)) if line.contains(part) => return line,
                Some(Some(_)) => {}
                Some(None) => panic!("the output ended without a line that contains {part:?}"),
                None => panic!("timed out waiting for a line that contains {part:?}"),
            }
        }
    }

    /// The complete stream, after the process has ended. A grandchild that still holds the pipe ends the wait by timeout.
    fn finish(&self) -> Vec<u8> {
        let is_open = |captured: &mut Captured| !captured.has_ended;
        let captured = self.0.1.wait_timeout_while(lock(&self.0.0), TIMEOUT, is_open);
        captured.unwrap_or_else(PoisonError::into_inner).0.bytes.clone()
    }
}

/// A lock that a failed test may have poisoned: the output is still worth printing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
