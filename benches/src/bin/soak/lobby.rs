//! The lobby: its process, restarts, and what it uses.

use rallypoint_bench::Failure;
use std::{
    env, fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    ops::RangeInclusive,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Ports that the system gives to no other program on its own: the lobby has to find its ports free after a restart.
const PORTS: RangeInclusive<u16> = 20_000..=30_000;

/// The log of the lobby, in its directory.
const LOG: &str = "soak.log";

/// Time limit for starting and stopping.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A running `rallypoint serve`, which keeps its addresses across restarts.
pub struct Lobby {
    child: Child,
    addrs: Addrs,
    dir: TempDir,
}

/// The addresses of a lobby.
#[derive(Clone, Copy)]
pub struct Addrs {
    /// UDP and TCP.
    pub lobby: SocketAddr,
    pub web: SocketAddr,
}

/// Resources of the process at one moment.
pub struct Sample {
    /// Resident memory in bytes.
    pub memory: u64,
    /// The part of it that is not mapped from files: the program itself, and the shared memory of list replies, are.
    pub anonymous: u64,
    /// Number of open descriptors.
    pub descriptors: u64,
}

impl Lobby {
    pub fn start() -> Result<Self, Failure> {
        let mut free = PORTS.filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()?.local_addr().ok());
        let (Some(lobby), Some(web)) = (free.next(), free.next()) else {
            return Err(Failure("there are no free ports".into()));
        };
        let addrs = Addrs { lobby, web };
        let dir = TempDir::new()?;
        fs::write(dir.path().join("rallypoint.toml"), "")?;
        let child = spawn(&dir, addrs)?;
        let lobby = Self { child, addrs, dir };
        lobby.wait_until_ready()?;
        Ok(lobby)
    }

    pub fn addrs(&self) -> Addrs {
        self.addrs
    }

    /// Stops the lobby as a service manager does, and starts it again.
    pub fn restart(&mut self) -> Result<(), Failure> {
        self.signal("TERM")?;
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > TIME_LIMIT {
                return Err(Failure("the lobby does not stop".into()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.child = spawn(&self.dir, self.addrs)?;
        self.wait_until_ready()
    }

    /// Changes the configuration, and makes the lobby read it again.
    pub fn reload(&self) -> Result<(), Failure> {
        let path = self.dir.path().join("rallypoint.toml");
        let is_changed = fs::read_to_string(&path)?.is_empty();
        let config = "[[ban]]\nnetwork = \"127.66.0.0/16\"\nreason = \"soak\"\n";
        fs::write(path, if is_changed { config } else { "" })?;
        self.signal("HUP")
    }

    pub fn sample(&self) -> Result<Sample, Failure> {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(process.join("status"))?;
        let bytes = |field: &str| {
            let kilobytes = status.lines().find_map(|line| line.strip_prefix(field)?.trim().split(' ').next());
            1_024 * kilobytes.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir(process.join("fd"))?.count() as u64;
        Ok(Sample { memory: bytes("VmRSS:"), anonymous: bytes("RssAnon:"), descriptors })
    }

    /// Number of servers in the list.
    pub fn listed(&self) -> Result<u64, Failure> {
        let metrics = get(self.addrs.web, "/metrics")?;
        let listed = metrics
            .lines()
            .find_map(|line| line.strip_prefix("rallypoint_servers_listed ")?.trim().parse::<f64>().ok());
        Ok(listed.unwrap_or(0.0) as u64)
    }

    fn wait_until_ready(&self) -> Result<(), Failure> {
        let start = Instant::now();
        while get(self.addrs.web, "/readyz").is_err() {
            if start.elapsed() > TIME_LIMIT {
                let log = fs::read_to_string(self.dir.path().join(LOG))?;
                let last = log.lines().last().unwrap_or_default();
                return Err(Failure(format!("the lobby does not start: {last}")));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn signal(&self, name: &str) -> Result<(), Failure> {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure(format!("the lobby has ended: it cannot be sent SIG{name}")))
        }
    }
}

impl Drop for Lobby {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &TempDir, addrs: Addrs) -> Result<Child, Failure> {
    // Built into the same directory as this program.
    let mut command = Command::new(env::current_exe()?.with_file_name("rallypoint"));
    command.args(["serve", "--legacy", "off", "--lobby", &addrs.lobby.to_string(), "--http", &addrs.web.to_string()]);
    command.arg("--config").arg(dir.path().join("rallypoint.toml")).arg("--data-dir").arg(dir.path());
    command.args(["--set", "log.level=warn"]);
    let log = fs::File::create(dir.path().join(LOG))?;
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?)
}

/// The body of a page.
pub fn get(web: SocketAddr, path: &str) -> Result<String, Failure> {
    let mut tcp = TcpStream::connect(web)?;
    tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(tcp, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    tcp.read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    match response.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.into()),
        Some((head, _)) => Err(Failure(format!("{path}: {}", head.lines().next().unwrap_or_default()))),
        None => Err(Failure(format!("{path}: no response"))),
    }
}
