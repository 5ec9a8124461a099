//! A real redis-server for tests of clusters, on loopback and without files.

use crate::{skip::skip, wait::eventually};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use socket2::{Domain, Socket, Type};
use std::{
    fs,
    io::{self, BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};
use tempfile::TempDir;

/// A running redis-server. It ends when this value is dropped.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: ReservedPort,
    arguments: Vec<String>,
    /// Its working directory: a replica writes what it receives to a file, which any server that is started there would load.
    directory: TempDir,
}

impl RedisServer {
    /// Starts a server with these additional arguments. If redis-server is not installed, the calling test is reported as skipped
    /// and has to return.
    ///
    /// # Panics
    /// If the server does not start.
    #[must_use]
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let is_installed = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !is_installed {
            skip("redis-server is not installed");
            return None;
        }
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let port = ReservedPort::new();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let process = spawn(port.number, directory.path(), &arguments).expect("redis-server starts");
        Some(Self { process, port, arguments, directory })
    }

    /// Starts Sentinel for a master, under the service name `main`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_sentinel(master: &Self) -> Self {
        Self::start_sentinel_with(master, "")
    }

    /// Starts a Sentinel with further lines of configuration.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_sentinel_with(master: &Self, settings: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let port = ReservedPort::new();
        let number = port.number;
        let file = directory.path().join("sentinel.conf");
        let monitor = format!("sentinel monitor main 127.0.0.1 {} 1", master.port());
        let text = format!(
            "bind 127.0.0.1\nport {number}\n{monitor}\nsentinel down-after-milliseconds main 1000\n\
             sentinel failover-timeout main 5000\n{settings}\n"
        );
        fs::write(&file, text).expect("a writable directory");
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel");
        let process = wait(command, "Sentinel ID is").expect("redis-sentinel starts");
        Self { process, port, arguments: Vec::new(), directory }
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Kills the server.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Sends the server a signal: `STOP` makes it hang, `CONT` lets it go on.
    ///
    /// # Panics
    /// If the server has ended.
    #[cfg(unix)]
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).expect("a process ID");
        kill_process(id, signal).expect("the server runs");
    }

    /// Starts the server again at the same port, empty.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.stop();
        self.directory = tempfile::tempdir().expect("a temporary directory");
        self.process = spawn(self.port(), self.directory.path(), &self.arguments).expect("redis-server starts again");
    }

    /// Runs a command with redis-cli, and returns its output.
    ///
    /// # Panics
    /// If redis-cli cannot be run.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli").arg("-p").arg(self.port().to_string()).args(arguments).output();
        String::from_utf8_lossy(&output.expect("redis-cli").stdout).trim().to_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A port of 127.0.0.1, and the one 10,000 above it for the bus of a Redis Cluster. As long as this value exists, the system gives them to no
/// program that asks for any free port; a server that is told to use them can. Without it, a store that a test stops, or has not started
/// yet, could turn out to be that of another test, whose nodes would join the cluster.
#[derive(Debug)]
struct ReservedPort {
    number: u16,
    _sockets: [Socket; 2],
}

impl ReservedPort {
    fn new() -> Self {
        loop {
            let Ok(first) = bind(0) else { continue };
            let addr = first.local_addr().ok().and_then(|addr| addr.as_socket());
            let number = addr.expect("an IPv4 address").port();
            if number < 55_000
                && let Ok(second) = bind(number + 10_000)
            {
                return Self { number, _sockets: [first, second] };
            }
        }
    }
}

/// A socket that is bound and does not listen: connections to it are refused. Servers can bind the same port, because they, too, allow
/// it to be shared until one of them listens.
fn bind(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}

fn spawn(port: u16, directory: &Path, arguments: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.current_dir(directory);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    // With TLS, the same port.
    let is_tls = arguments.iter().any(|argument| argument == "--tls-cert-file");
    let (plain, tls) = if is_tls { (0, port) } else { (port, 0) };
    command.arg("--port").arg(plain.to_string()).arg("--tls-port").arg(tls.to_string()).args(arguments);
    wait(command, "Ready to accept connections")
}

/// Starts a server and waits until it logs that it is ready: a port that can be reached could be another program's. `None` if it ends.
fn wait(mut command: Command, ready: &str) -> Option<Child> {
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut log = BufReader::new(process.stdout.take()?);
    let mut line = Vec::new();
    while log.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        if String::from_utf8_lossy(&line).contains(ready) {
            // The rest of the log is read, so that the server never waits for that.
            thread::spawn(move || io::copy(&mut log, &mut io::sink()));
            return Some(process);
        }
        line.clear();
    }
    let _ = process.wait();
    None
}

/// A Redis Cluster of three masters with a replica each. It ends when this value is dropped.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<RedisServer>,
    _directory: TempDir,
}

impl RedisCluster {
    /// Starts a cluster that replaces a master after three seconds. If redis-server is not installed, the calling test is
    /// reported as skipped and has to return.
    ///
    /// # Panics
    /// If the cluster does not start.
    #[must_use]
    #[track_caller]
    pub fn start() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut servers = Vec::new();
        for number in 0..6 {
            let dir = directory.path().join(number.to_string());
            fs::create_dir(&dir).expect("a directory");
            let dir = dir.display().to_string();
            let arguments = [
                "--dir",
                &dir,
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                "3000",
                "--cluster-replica-validity-factor",
                "0",
            ];
            servers.push(RedisServer::start(&arguments)?);
        }
        let addrs: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(&addrs).args(["--cluster-replicas", "1", "--cluster-yes"]);
        let output = create.output().expect("redis-cli");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let cluster = Self { servers, _directory: directory };
        eventually("all servers know the cluster", || {
            let is_ok = |server: &RedisServer| server.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            let has_replicas =
                |server: &RedisServer| server.command(&["CLUSTER", "NODES"]).matches("slave").count() == 3;
            cluster.servers.iter().all(|server| is_ok(server) && has_replicas(server))
        });
        Some(cluster)
    }

    /// The address of the cluster: some of its servers.
    #[must_use]
    pub fn url(&self) -> String {
        let addrs: Vec<_> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis://{}", addrs.join(","))
    }

    /// All servers, masters and replicas.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The master that has a key, if it can be reached.
    #[must_use]
    pub fn master_of(&self, key: &str) -> Option<&RedisServer> {
        self.servers.iter().find(|server| is_master_of(server, key))
    }

    /// Whether a server that can be reached is the master of a key.
    #[must_use]
    pub fn has_master_of(&self, key: &str) -> bool {
        self.master_of(key).is_some()
    }

    /// Kills the master that has a key.
    ///
    /// # Panics
    /// If there is none.
    pub fn kill_master_of(&mut self, key: &str) {
        let master = self.servers.iter().position(|server| is_master_of(server, key)).expect("a master with that key");
        self.servers[master].stop();
    }
}

fn is_master_of(server: &RedisServer, key: &str) -> bool {
    server.command(&["EXISTS", key]) == "1" && server.command(&["ROLE"]).starts_with("master")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_at_the_port_of_another_is_not_taken_for_it() {
        let Some(mut server) = RedisServer::start(&[]) else { return };
        assert!(spawn(server.port(), server.directory.path(), &[]).is_none());
        server.stop();
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err(), "connections are refused");
        server.restart();
        assert_eq!(server.command(&["PING"]), "PONG");
    }
    /// Another server would begin with the data of the replica.
    #[test]
    fn a_replica_leaves_no_data_behind() {
        let Some(master) = RedisServer::start(&[]) else { return };
        assert_eq!(master.command(&["SET", "key", "value"]), "OK");
        let port = master.port().to_string();
        let Some(mut replica) = RedisServer::start(&["--replicaof", "127.0.0.1", &port]) else { return };
        eventually("the replica has the data", || replica.command(&["GET", "key"]) == "value");
        assert!(!Path::new("dump.rdb").exists(), "a file in the working directory of the tests");
        let Some(other) = RedisServer::start(&[]) else { return };
        assert_eq!(other.command(&["DBSIZE"]), "0");
        replica.arguments.clear();
        replica.restart();
        assert_eq!(replica.command(&["DBSIZE"]), "0");
    }
}
