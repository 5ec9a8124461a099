//! The program while it runs.

use crate::{binary, wait::eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::OsStr,
    fs::File,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

/// A program that was started, with all that it says. It ends with this value, also if the test fails.
#[derive(Debug)]
pub struct Process {
    child: Child,
    out: Output,
    err: Output,
}

/// How a program ended, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; none, if a signal ended it.
    pub code: Option<i32>,
    /// What it said on standard output.
    pub out: String,
    /// What it said on standard error.
    pub err: String,
}

impl Process {
    /// Starts `rallypoint` with these arguments. It knows nothing of this machine's settings but `variables`, and lives in
    /// `home`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start<A: AsRef<OsStr>>(home: &Path, args: impl IntoIterator<Item = A>, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(binary::path());
        command.args(args).env_clear().env("HOME", home).envs(variables.iter().copied()).current_dir(home);
        Self::spawn(command.stderr(Stdio::piped()))
    }

    /// Starts it with all that it says on standard error going to a file.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_logging_to(file: &str, home: &Path, args: &[&str]) -> Self {
        let file = File::options().append(true).open(file).expect("a file that can be written");
        let mut command = Command::new(binary::path());
        Self::spawn(command.args(args).env_clear().env("HOME", home).current_dir(home).stderr(file))
    }

    fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let (out, err) = (Output::of(child.stdout.take()), Output::of(child.stderr.take()));
        Self { child, out, err }
    }

    /// Runs it to its end.
    pub fn run<A: AsRef<OsStr>>(home: &Path, args: impl IntoIterator<Item = A>) -> Ended {
        Self::start(home, args, &[]).wait()
    }

    /// What it has said on standard output so far.
    #[must_use]
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// What it has said on standard error so far: its log.
    #[must_use]
    pub fn err(&self) -> String {
        self.err.text()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it is not there any more.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process ID"), signal).expect("the program is there");
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub fn wait(&mut self) -> Ended {
        eventually("the program has ended", || self.has_ended());
        let status = self.child.wait().expect("its status");
        Ended { code: status.code(), out: self.out.all(), err: self.err.all() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- what the program said:\n{}{}---", self.out.all(), self.err.all());
        }
    }
}

/// What a program writes, gathered in the background.
#[derive(Debug)]
struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let Some(mut pipe) = pipe else { return Self { text, reader: None } };
        let gathered = text.clone();
        let reader = thread::spawn(move || {
            let mut buffer = [0; 8_192];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                gathered.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..length]);
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Everything, when the program has ended.
    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.text()
    }
}
