//! The measured programs: each runs on the core for servers, in its own process, which ends with its owner.

use crate::{sys, sys::Signal};
use rallypoint_bench::{Failure, cpu_time, pinned};
use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Size of the receive buffer in bytes: the same as the lobby's, so that both lose the same datagrams.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Hidden commands of this program.
pub const MINIMAL_UDP: &str = "minimal-udp";
pub const MINIMAL_TCP: &str = "minimal-tcp";

/// Time limit for starting a program, and for processing what was sent to it.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A running server program.
pub struct Program {
    child: Child,
    pub addr: SocketAddr,
    /// Its files.
    _dir: TempDir,
}

impl Program {
    /// The lobby with its default configuration, apart from these settings.
    pub fn lobby(core: usize, settings: &[&str]) -> Result<Self, Failure> {
        let dir = TempDir::new()?;
        let config = dir.path().join("rallypoint.toml");
        fs::write(&config, "")?;
        // Built into the same directory as this program.
        let mut command = pinned(core, env::current_exe()?.with_file_name("rallypoint"));
        command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--config"]).arg(config);
        command.arg("--data-dir").arg(dir.path());
        for setting in settings {
            command.args(["--set", setting]);
        }
        Self::start(command, dir)
    }

    /// Receives datagrams and counts them.
    pub fn minimal_udp(core: usize) -> Result<Self, Failure> {
        let mut command = pinned(core, env::current_exe()?);
        command.arg(MINIMAL_UDP);
        Self::start(command, TempDir::new()?)
    }

    /// Reads a request from each connection, writes a constant reply, and closes.
    pub fn minimal_tcp(core: usize, reply: &[u8]) -> Result<Self, Failure> {
        let dir = TempDir::new()?;
        let file = dir.path().join("reply");
        fs::write(&file, reply)?;
        let mut command = pinned(core, env::current_exe()?);
        command.arg(MINIMAL_TCP).arg(file);
        Self::start(command, dir)
    }

    /// nginx with the reply as a file, or `None` if it is not installed. One process, tuned for speed.
    pub fn nginx(core: usize, reply: &[u8]) -> Result<Option<Self>, Failure> {
        if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
            return Ok(None);
        }
        let dir = TempDir::new()?;
        fs::write(dir.path().join("reply"), reply)?;
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let path = dir.path().display();
        fs::write(
            dir.path().join("nginx.conf"),
            format!(
                "daemon off; master_process off; pid {path}/pid; error_log {path}/errors;\n\
                 events {{ worker_connections 1024; }}\n\
                 http {{\n\
                 access_log off; sendfile on; tcp_nopush on; keepalive_timeout 0; open_file_cache max=16;\n\
                 client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;\n\
                 uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
                 server {{ listen {addr}; root {path}; }}\n\
                 }}\n"
            ),
        )?;
        let mut command = pinned(core, "nginx");
        command.args(["-e", "stderr", "-p"]).arg(dir.path()).args(["-c", "nginx.conf"]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let program = Self { child, addr, _dir: dir };
        wait_until("nginx answers", || Ok(TcpStream::connect(addr).is_ok()))?;
        Ok(Some(program))
    }

    /// Starts a program that prints its address as the last word of its first line.
    fn start(mut command: Command, dir: TempDir) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let addr = line.split_whitespace().last().and_then(|addr| addr.parse().ok());
        let mut program = Self { child, addr: (Ipv4Addr::UNSPECIFIED, 0).into(), _dir: dir };
        program.addr = addr.ok_or_else(|| Failure(format!("{command:?} did not start")))?;
        Ok(program)
    }

    /// CPU time used so far.
    pub fn cpu(&self) -> Result<Duration, Failure> {
        Ok(cpu_time(self.child.id())?)
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().split(' ').next());
        let kilobytes: Option<u64> = kilobytes.and_then(|number| number.parse().ok());
        Ok(1024 * kilobytes.ok_or_else(|| Failure("the memory of the process is unknown".into()))?)
    }

    /// Stops the process (SIGSTOP), and returns when all its threads have stopped.
    pub fn halt(&self) -> Result<(), Failure> {
        sys::signal(self.child.id(), Signal::Stop)?;
        wait_until("a program halts", || {
            let mut threads = fs::read_dir(format!("/proc/{}/task", self.child.id()))?;
            Ok(threads.all(|thread| thread.is_ok_and(|thread| has_stopped(&thread))))
        })
    }

    /// Continues the process.
    pub fn resume(&self) -> Result<(), Failure> {
        Ok(sys::signal(self.child.id(), Signal::Continue)?)
    }

    /// Waits until it has received all datagrams from its UDP socket.
    pub fn drained(&self) -> Result<(), Failure> {
        wait_until("a program receives its datagrams", || Ok(self.queue()?.bytes == 0))?;
        // It may still be processing the last ones.
        thread::sleep(Duration::from_millis(1));
        Ok(())
    }

    /// Waits until it is idle.
    pub fn idle(&self) -> Result<(), Failure> {
        const INTERVAL: Duration = Duration::from_millis(300);
        wait_until("a program is idle", || {
            let before = self.cpu()?;
            thread::sleep(INTERVAL);
            Ok(self.cpu()? - before < INTERVAL / 50)
        })
    }

    /// The state of its UDP socket.
    pub fn queue(&self) -> Result<Queue, Failure> {
        /// The system skips some sockets of the list if others are opened or closed while it is read.
        const ATTEMPTS: u32 = 20;
        for _ in 0..ATTEMPTS {
            let sockets = fs::read_to_string("/proc/net/udp")?;
            if let Some(queue) = Queue::find(&sockets, self.addr.port()) {
                return Ok(queue);
            }
        }
        Err(Failure(format!("no socket listens at {}", self.addr)))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = sys::signal(self.child.id(), Signal::Kill);
        let _ = self.child.wait();
    }
}

fn has_stopped(thread: &fs::DirEntry) -> bool {
    let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('T'))
}

/// Polls a condition until it holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let start = Instant::now();
    while !condition()? {
        if start.elapsed() > TIME_LIMIT {
            return Err(Failure(format!("timed out waiting until {what}")));
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// The receive queue of a UDP socket.
#[derive(Debug, PartialEq)]
pub struct Queue {
    /// Number of bytes in the queue.
    pub bytes: u64,
    /// Number of datagrams dropped because it was full.
    pub drops: u64,
}

impl Queue {
    /// Finds a socket in /proc/net/udp, whose columns are:
    /// `sl  local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ref pointer drops`
    fn find(sockets: &str, port: u16) -> Option<Self> {
        let port = format!(":{port:04X}");
        let fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let fields = fields.into_iter().find(|fields| fields.get(1).is_some_and(|local| local.ends_with(&port)))?;
        let (_, bytes) = fields.get(4)?.split_once(':')?;
        Some(Self { bytes: u64::from_str_radix(bytes, 16).ok()?, drops: fields.last()?.parse().ok()? })
    }
}

/// The program behind [`Program::minimal_udp`].
pub fn minimal_udp() -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    sys::set_receive_buffer(&socket, RECEIVE_BUFFER)?;
    println!("{}", socket.local_addr()?);
    Err(sys::count_datagrams(&socket, |count| println!("{count}")))
}

/// The program behind [`Program::minimal_tcp`].
pub fn minimal_tcp(file: &str) -> io::Result<()> {
    let reply = fs::read(file)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let mut request = [0; 512];
    loop {
        let (mut client, _) = listener.accept()?;
        // A client that disconnects early is ignored.
        let _ = client.read(&mut request).and_then(|_| client.write_all(&reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_port() {
        let sockets = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
                       1783: 0100007F:C4B5 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 417372 2 0000000000000000 0\n \
                       3139: 0100007F:8A01 00000000:0000 07 00000000:0018FF00 00:00000000 00000000     0        0 425327 2 0000000000000000 17\n";
        assert_eq!(Queue::find(sockets, 0x8a01), Some(Queue { bytes: 0x18ff00, drops: 17 }));
        assert_eq!(Queue::find(sockets, 0x8a02), None);
    }
}
