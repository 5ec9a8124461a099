//! A real redis-server for tests of clusters, on loopback and without files.

use crate::skip::skip;
use std::{
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

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
            let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).ok()?.port();
            if let Some(process) = spawn(port, &arguments) {
                return Some(Self { process, port, arguments });
            }
        }
        panic!("redis-server does not start");
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

fn spawn(port: u16, arguments: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.arg("--port").arg(port.to_string()).args(arguments);
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
