//! The compared query tools, each as a process on the client's core.

use crate::sys;
use rallypoint_bench::{Failure, address, pinned, portable};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Hidden commands of this program.
pub const MINIMAL: &str = "minimal";
pub const CRATE: &str = "gamedig-crate";

/// Settings of all tools: number of retries, total timeout, and interval between attempts.
pub const RETRIES: u32 = 3;
pub const TIMEOUT: Duration = Duration::from_secs(2);
pub const PAUSE: Duration = Duration::from_millis(500);

/// Datagrams per second of `rallypoint query` and of the minimal loop.
pub const RATE: u32 = 100_000;

/// Number of runs of most tools, of which the median is reported.
pub const ROUNDS: usize = 5;

/// The compared version of the npm package.
const NPM: &str = "gamedig@5.3.3";

/// A query tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool {
    Rallypoint,
    /// `rallypoint query` with document 003, whose reply has seven datagrams.
    Session,
    /// `rallypoint query` with the sockets of other platforms.
    Portable,
    Minimal,
    Crate,
    /// With this number of concurrent queries.
    Npm(u32),
    Quakestat,
}

/// The figures of one run.
#[derive(Clone, Debug)]
pub struct Run {
    pub time: Duration,
    /// Time from the start of the process to its first output.
    pub first: Duration,
    pub cpu: Duration,
    /// Peak memory in bytes.
    pub memory: u64,
    /// Number of servers found.
    pub found: usize,
}

/// Files for the tools.
pub struct Files {
    dir: tempfile::TempDir,
    /// Directory of npm packages.
    npm: PathBuf,
}

impl Files {
    pub fn new() -> Result<Self, Failure> {
        // Beside this program, so that packages are downloaded only once.
        Ok(Self { dir: tempfile::TempDir::new()?, npm: env::current_exe()?.with_file_name("bench-query-npm") })
    }

    /// Installs the npm package; returns false if that fails.
    pub fn fetch_npm(&self) -> bool {
        let is_installed = || self.npm.join("node_modules/gamedig/package.json").exists();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !is_installed() {
            let npm = self.npm.display().to_string();
            run("npm", &["install", "--no-audit", "--no-fund", "--no-save", "--prefix", &npm, NPM]);
        }
        let script = self.npm.join("gamedig.mjs");
        is_installed() && run("node", &["--version"]) && fs::write(script, include_str!("gamedig.mjs")).is_ok()
    }

    fn list(&self, count: u32, line: impl Fn(u32) -> String) -> Result<PathBuf, Failure> {
        let path = self.dir.path().join("targets");
        fs::write(&path, (0..count).map(line).collect::<String>())?;
        Ok(path)
    }
}

impl Tool {
    pub fn name(self) -> String {
        match self {
            Self::Rallypoint => "rallypoint query --jsonl".into(),
            Self::Session => "the same, with document 003".into(),
            Self::Portable => "the same, with portable sockets".into(),
            Self::Minimal => "minimal sendmmsg/recvmmsg loop".into(),
            Self::Crate => "gamedig (crate), 700 threads".into(),
            Self::Npm(concurrency) => format!("gamedig (npm), {concurrency} concurrent"),
            Self::Quakestat => "quakestat".into(),
        }
    }

    pub fn protocol(self) -> &'static str {
        match self {
            Self::Rallypoint | Self::Portable | Self::Minimal => "Bloodmasters",
            Self::Session => "session",
            Self::Crate => "A2S",
            Self::Npm(_) | Self::Quakestat => "Quake 3",
        }
    }

    /// Number of runs; only one for the tool that takes a minute.
    pub const fn rounds(self) -> usize {
        if matches!(self, Self::Quakestat) { 1 } else { ROUNDS }
    }

    /// Queries `count` servers, with the same retries and timeout for all tools.
    pub fn query(self, core: usize, files: &Files, port: u16, count: u32, rate: u32) -> Result<Run, Failure> {
        self.run(self.command(core, files, port, count, rate, true)?, |_| {})
    }

    /// Runs `rallypoint query`; returns the ping that it shows for each server, by number, in milliseconds.
    pub fn pings(core: usize, files: &Files, port: u16, count: u32, rate: u32) -> Result<Vec<(u32, f64)>, Failure> {
        let mut pings = Vec::new();
        Self::Rallypoint.run(Self::Rallypoint.command(core, files, port, count, rate, true)?, |line| {
            let value = |name: &str| {
                let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
                rest.split([',', '}']).next().map(|value| value.trim_matches('"').to_owned())
            };
            let addr: Option<SocketAddrV4> = value("address").and_then(|addr| addr.parse().ok());
            let ping: Option<f64> = value("ping_ms").and_then(|ping| ping.parse().ok());
            let number = |addr: SocketAddrV4| addr.ip().to_bits().wrapping_sub(address(0).to_bits());
            pings.extend(addr.map(number).zip(ping));
        })?;
        Ok(pings)
    }

    /// Queries `count` servers with the default retries and timeout of `rallypoint query`.
    pub fn query_with_defaults(self, core: usize, files: &Files, port: u16, count: u32) -> Result<Run, Failure> {
        self.run(self.command(core, files, port, count, RATE, false)?, |_| {})
    }

    fn run(self, mut command: Command, mut on_line: impl FnMut(&str)) -> Result<Run, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn()?;
        let mut found = 0;
        let mut first = None;
        // The output is not kept: the peak memory that the system reports for a child includes that of this process.
        for line in
            BufReader::new(child.stdout.take().ok_or_else(|| Failure("the process has no standard output".into()))?)
                .split(b'\n')
        {
            let line = line?;
            first.get_or_insert_with(|| start.elapsed());
            let line = String::from_utf8_lossy(&line);
            found += usize::from(self.is_found(&line));
            on_line(&line);
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
        with_common_limits: bool,
    ) -> Result<Command, Failure> {
        let this = env::current_exe()?;
        let port_text = port.to_string();
        let count_text = count.to_string();
        let rate_text = rate.to_string();
        Ok(match self {
            Self::Rallypoint | Self::Session | Self::Portable => {
                let scheme = if self == Self::Session { "session" } else { "bloodmasters" };
                let list = files.list(count, |n| format!("{scheme}://{}:{port}\n", address(n)))?;
                // Built into the same directory as this program.
                let beside = this.with_file_name("rallypoint");
                let program = if self == Self::Portable { portable("rallypoint").unwrap_or(beside) } else { beside };
                let mut command = pinned(core, program);
                command.args(["query", "--jsonl", "--rate", &rate_text, "--file"]).arg(list);
                if with_common_limits {
                    let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
                    command.args(["--timeout", &milliseconds(TIMEOUT), "--retry-after", &milliseconds(PAUSE)]);
                    command.args(["--retries", &RETRIES.to_string()]);
                }
                command
            }
            Self::Minimal => {
                let mut command = pinned(core, this);
                command.args([MINIMAL, &port_text, &count_text, &rate_text]);
                command
            }
            Self::Crate => {
                let mut command = pinned(core, this);
                command.args([CRATE, &port_text, &count_text]);
                command
            }
            Self::Npm(concurrency) => {
                let list = files.list(count, |n| format!("{}\n", address(n)))?;
                let mut command = pinned(core, "node");
                command.arg(files.npm.join("gamedig.mjs")).arg(list).args([
                    &port_text,
                    &concurrency.to_string(),
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
            Self::Rallypoint | Self::Session | Self::Portable | Self::Quakestat => line.contains("Bacon Town"),
            Self::Minimal | Self::Crate | Self::Npm(_) => !line.is_empty(),
        }
    }
}

/// Whether a program is in the search path.
pub fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file())
}

/// The program behind [`Tool::Crate`].
#[cfg(feature = "query-peers")]
pub fn query_with_crate(port: u16, count: u32) -> std::io::Result<()> {
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
    // One query and one reply, as for the other tools.
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
