//! Rooms and their guests: the real program, with somebody who types and reads.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub mod router;

use crate::common::{rallypoint, until};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A program that is typed to, and gone with the test.
pub struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Talk {
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                println!("out: {line}");
                let _ = sender.send(line);
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    pub fn types(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn closes_input(&mut self) {
        self.input = None;
    }

    /// The next line.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    /// Waits for a line with this in it.
    pub fn hears(&self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line has {part:?}: {error}"),
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end: the exit code, and what was complained about.
    pub fn ends(mut self) -> (Option<i32>, String) {
        let status = until("the program ends", || self.child.try_wait().unwrap());
        let mut complaint = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        (status.code(), complaint)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A room on loopback.
pub struct Room {
    pub host: Talk,
    pub addr: SocketAddr,
    /// Where its numbers are, if it was asked for them.
    pub metrics: Option<SocketAddr>,
    pub key: String,
}

impl Room {
    pub fn open(home: &Path, args: &[&str]) -> Self {
        Self::open_at(home, "127.0.0.1:0", args)
    }

    pub fn open_at(home: &Path, listen: &str, args: &[&str]) -> Self {
        let host = Talk::start(rallypoint(home).args(["host", "--listen", listen]).args(args));
        let addr = host.line().strip_prefix("session udp ").unwrap().parse().unwrap();
        let mut line = host.line();
        let metrics = line.strip_prefix("metrics tcp ").map(|addr| addr.parse().unwrap());
        if metrics.is_some() {
            line = host.line();
        }
        let key = line.strip_prefix("key ").unwrap().to_owned();
        Self { host, addr, metrics, key }
    }

    /// Somebody comes in.
    pub fn guest(&self, home: &Path, name: &str, args: &[&str]) -> Talk {
        let guest = join(home, self.addr, name, args);
        guest.hears(&format!("-- you are {name}; /help"));
        guest
    }
}

/// Somebody tries to come in.
pub fn join(home: &Path, addr: SocketAddr, name: &str, args: &[&str]) -> Talk {
    Talk::start(rallypoint(home).args(["join", &addr.to_string(), "--name", name]).args(args))
}
