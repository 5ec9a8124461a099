//! A real redis-server for tests of clusters, on loopback and without files.

use crate::{skip::skip, wait::eventually};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A running redis-server. It ends when this value is dropped.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: u16,
    arguments: Vec<String>,
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
        // A port that is free now can be taken before the server binds it.
        for _ in 0..10 {
            let port = free_port();
            if let Some(process) = spawn(port, &arguments) {
                return Some(Self { process, port, arguments });
            }
        }
        panic!("redis-server does not start");
    }

    /// Starts Sentinel for a master, under the service name `main`. `directory` is for its configuration file.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_sentinel(master: &Self, directory: &Path) -> Self {
        for _ in 0..10 {
            let port = free_port();
            let file = directory.join(format!("sentinel-{port}.conf"));
            let monitor = format!("sentinel monitor main 127.0.0.1 {} 1", master.port);
            let text = format!(
                "bind 127.0.0.1\nport {port}\n{monitor}\nsentinel down-after-milliseconds main 1000\n\
                 sentinel failover-timeout main 5000\n"
            );
            fs::write(&file, text).expect("a writable directory");
            let mut command = Command::new("redis-server");
            command.arg(&file).arg("--sentinel");
            if let Some(process) = wait(command, port) {
                return Self { process, port, arguments: Vec::new() };
            }
        }
        panic!("redis-sentinel does not start");
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
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
        for _ in 0..100 {
            if let Some(process) = spawn(self.port, &self.arguments) {
                self.process = process;
                return;
            }
        }
        panic!("redis-server does not start again");
    }

    /// Runs a command with redis-cli, and returns its output.
    ///
    /// # Panics
    /// If redis-cli cannot be run.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli").arg("-p").arg(self.port.to_string()).args(arguments).output();
        String::from_utf8_lossy(&output.expect("redis-cli").stdout).trim().to_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A port that is free now, and whose port for the bus of a Redis Cluster, 10,000 above it, exists and is free.
fn free_port() -> u16 {
    loop {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}

fn spawn(port: u16, arguments: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    // A replica receives its first copy of the data as a file.
    command.args(["--rdb-del-sync-files", "yes"]).current_dir(env::temp_dir());
    // With TLS, the same port.
    let is_tls = arguments.iter().any(|argument| argument == "--tls-cert-file");
    let (plain, tls) = if is_tls { (0, port) } else { (port, 0) };
    command.arg("--port").arg(plain.to_string()).arg("--tls-port").arg(tls.to_string()).args(arguments);
    wait(command, port)
}

/// Starts a server and waits until it listens. `None` if it ends.
fn wait(mut command: Command, port: u16) -> Option<Child> {
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if process.try_wait().ok()?.is_some() {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            // Another server may have taken the port: then this one ends.
            thread::sleep(Duration::from_millis(50));
            return process.try_wait().ok()?.is_none().then_some(process);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = process.kill();
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
        let addrs: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
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
        let addrs: Vec<_> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        format!("redis://{}", addrs.join(","))
    }

    /// Whether a server that can be reached is the master of a key.
    #[must_use]
    pub fn has_master_of(&self, key: &str) -> bool {
        self.servers.iter().any(|server| is_master_of(server, key))
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
