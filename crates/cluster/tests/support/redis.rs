//! A real redis-server for a test, on loopback and without files.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A running redis-server. It ends when this is dropped.
pub struct RedisServer {
    process: Child,
    pub port: u16,
    arguments: Vec<String>,
}

/// Starts a server with these additional arguments; `None` if redis-server is not installed, which is reported.
pub fn start(arguments: &[&str]) -> Option<RedisServer> {
    let has_program = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !has_program {
        assert!(std::env::var_os("CI").is_none(), "redis-server is not installed");
        eprintln!("skipped: redis-server is not installed");
        return None;
    }
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    // A port that is free now can be taken before the server binds it.
    for _ in 0..10 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if let Some(process) = spawn(port, &arguments) {
            return Some(RedisServer { process, port, arguments });
        }
    }
    panic!("redis-server does not start");
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
            std::thread::sleep(Duration::from_millis(50));
            return process.try_wait().ok()?.is_none().then_some(process);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = process.kill();
    None
}

impl RedisServer {
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts the server again at the same port, empty.
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

    /// Runs a command and returns its output.
    pub fn command(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli").arg("-p").arg(self.port.to_string()).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
        let mut rest = String::new();
        if let Some(output) = &mut self.process.stdout {
            let _ = output.read_to_string(&mut rest);
        }
    }
}
