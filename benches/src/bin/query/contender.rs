//! Those that ask, each as a process on its own core.

use crate::sys;
use rallypoint_bench::{Failure, address, pinned};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The hidden verbs of this program.
pub const BARE: &str = "bare";
pub const CRATE: &str = "gamedig-crate";

/// The same for all: asked again three times, and given up after two seconds.
pub const RETRIES: u32 = 3;
pub const TIMEOUT: Duration = Duration::from_secs(2);
pub const PAUSE: Duration = Duration::from_millis(500);

/// How fast we and the bare loop send.
pub const RATE: u32 = 100_000;

/// How often most are measured, and the median counts.
pub const ROUNDS: usize = 5;

/// The version of npm's package that is compared.
const NPM: &str = "gamedig@5.3.3";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    Rallypoint,
    /// By document 003, with seven datagrams to an answer.
    Session,
    Bare,
    Crate,
    /// With so many questions at a time.
    Npm(u32),
    Quakestat,
}

/// How one run went.
#[derive(Clone, Debug)]
pub struct Run {
    pub time: Duration,
    /// From the start of the process.
    pub first: Duration,
    pub cpu: Duration,
    /// The most memory it had, in bytes.
    pub memory: u64,
    /// How many servers it found.
    pub found: usize,
}

/// The files that contenders need.
pub struct Files {
    dir: tempfile::TempDir,
    /// Where npm's packages are.
    npm: PathBuf,
}

impl Files {
    pub fn new() -> Result<Self, Failure> {
        // Beside this program, so that it is fetched only once.
        Ok(Self { dir: tempfile::TempDir::new()?, npm: env::current_exe()?.with_file_name("bench-query-npm") })
    }

    /// Fetches npm's package; false if it can't be had.
    pub fn fetch_npm(&self) -> bool {
        let is_there = || self.npm.join("node_modules/gamedig/package.json").exists();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !is_there() {
            let npm = self.npm.display().to_string();
            run("npm", &["install", "--no-audit", "--no-fund", "--no-save", "--prefix", &npm, NPM]);
        }
        let script = self.npm.join("ask.mjs");
        is_there() && run("node", &["--version"]) && fs::write(script, include_str!("ask.mjs")).is_ok()
    }

    fn list(&self, count: u32, line: impl Fn(u32) -> String) -> Result<PathBuf, Failure> {
        let path = self.dir.path().join("targets");
        fs::write(&path, (0..count).map(line).collect::<String>())?;
        Ok(path)
    }
}

impl Contender {
    pub fn name(self) -> String {
        match self {
            Self::Rallypoint => "rallypoint query --jsonl".into(),
            Self::Session => "the same, by document 003".into(),
            Self::Bare => "bare sendmmsg/recvmmsg loop".into(),
            Self::Crate => "gamedig (crate), 700 threads".into(),
            Self::Npm(at_a_time) => format!("gamedig (npm), {at_a_time} at a time"),
            Self::Quakestat => "quakestat".into(),
        }
    }

    pub fn protocol(self) -> &'static str {
        match self {
            Self::Rallypoint | Self::Bare => "Bloodmasters",
            Self::Session => "session",
            Self::Crate => "A2S",
            Self::Npm(_) | Self::Quakestat => "Quake 3",
        }
    }

    /// How often it is measured: who needs a minute, once.
    pub const fn rounds(self) -> usize {
        if matches!(self, Self::Quakestat) { 1 } else { ROUNDS }
    }

    /// Asks so many servers, with the same patience as everybody.
    pub fn ask(self, core: usize, files: &Files, port: u16, count: u32, rate: u32) -> Result<Run, Failure> {
        self.run(self.command(core, files, port, count, rate, true)?)
    }

    /// The same with our own retries and deadline.
    pub fn ask_with_defaults(self, core: usize, files: &Files, port: u16, count: u32) -> Result<Run, Failure> {
        self.run(self.command(core, files, port, count, RATE, false)?)
    }

    fn run(self, mut command: Command) -> Result<Run, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn()?;
        let (mut found, mut first) = (0, None);
        // Nothing is kept: what this process has at most counts for its children, too, as the system sees it.
        for line in BufReader::new(child.stdout.take().ok_or_else(|| Failure("it has no output".into()))?).split(b'\n')
        {
            let line = line?;
            first.get_or_insert_with(|| start.elapsed());
            found += usize::from(self.is_found(&String::from_utf8_lossy(&line)));
        }
        let (cpu, memory) = sys::end_of(&child)?;
        let time = start.elapsed();
        Ok(Run { time, first: first.unwrap_or(time), cpu, memory, found })
    }

    fn command(
        self,
        core: usize,
        files: &Files,
        port: u16,
        count: u32,
        rate: u32,
        as_others: bool,
    ) -> Result<Command, Failure> {
        let this = env::current_exe()?;
        let (port_text, count_text, rate_text) = (port.to_string(), count.to_string(), rate.to_string());
        Ok(match self {
            Self::Rallypoint | Self::Session => {
                let scheme = if self == Self::Session { "session" } else { "bloodmasters" };
                let list = files.list(count, |n| format!("{scheme}://{}:{port}\n", address(n)))?;
                // It was built into the same directory.
                let mut command = pinned(core, this.with_file_name("rallypoint"));
                command.args(["query", "--jsonl", "--rate", &rate_text, "--file"]).arg(list);
                if as_others {
                    let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
                    command.args(["--timeout", &milliseconds(TIMEOUT), "--retry-after", &milliseconds(PAUSE)]);
                    command.args(["--retries", &RETRIES.to_string()]);
                }
                command
            }
            Self::Bare => {
                let mut command = pinned(core, this);
                command.args([BARE, &port_text, &count_text, &rate_text]);
                command
            }
            Self::Crate => {
                let mut command = pinned(core, this);
                command.args([CRATE, &port_text, &count_text]);
                command
            }
            Self::Npm(at_a_time) => {
                let list = files.list(count, |n| format!("{}\n", address(n)))?;
                let mut command = pinned(core, "node");
                command.arg(files.npm.join("ask.mjs")).arg(list).args([
                    &port_text,
                    &at_a_time.to_string(),
                    &(RETRIES + 1).to_string(),
                    &PAUSE.as_millis().to_string(),
                ]);
                command
            }
            Self::Quakestat => {
                let list = files.list(count, |n| format!("q3s {}:{port}\n", address(n)))?;
                let mut command = pinned(core, "quakestat");
                command.args(["-nocfg", "-nh", "-u", "-raw", ",", "-sendinterval", "0"]);
                command.args(["-retry", &(RETRIES + 1).to_string(), "-interval", "0.5"]);
                command.args(["-maxsim", "1000", "-f"]).arg(list);
                command
            }
        })
    }

    fn is_found(self, line: &str) -> bool {
        match self {
            Self::Rallypoint | Self::Session | Self::Quakestat => line.contains("Bacon Town"),
            Self::Bare | Self::Crate | Self::Npm(_) => !line.is_empty(),
        }
    }
}

/// Whether a program is there.
pub fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file())
}

/// The program behind [`Contender::Crate`].
#[cfg(feature = "query-peers")]
pub fn ask_by_crate(port: u16, count: u32) -> std::io::Result<()> {
    use gamedig::protocols::{
        types::{GatherToggle, TimeoutSettings},
        valve::{Engine, GatheringSettings, query},
    };
    use std::{
        io::{Error, Write, stdout},
        net::SocketAddr,
        sync::atomic::{AtomicU32, Ordering::Relaxed},
    };
    let next = AtomicU32::new(0);
    let timeouts = TimeoutSettings::new(Some(PAUSE), Some(PAUSE), Some(PAUSE), RETRIES as usize);
    let timeouts = timeouts.map_err(|error| Error::other(error.to_string()))?;
    // One question and one answer, as for everybody else.
    let gather = GatheringSettings { players: GatherToggle::Skip, rules: GatherToggle::Skip, check_app_id: false };
    std::thread::scope(|scope| {
        for _ in 0..700 {
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, || {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= count {
                        return;
                    }
                    let to = SocketAddr::from((address(number), port));
                    if let Ok(answer) = query(&to, Engine::new(220), Some(gather), Some(timeouts)) {
                        let _ = writeln!(stdout(), "{to} {}", answer.info.name);
                    }
                }
            })?;
        }
        Ok(())
    })
}
