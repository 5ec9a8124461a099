//! Chat rooms: `rallypoint host` and `rallypoint join`.

use crate::{command::rallypoint, process::Process};
use std::{net::SocketAddr, path::Path};

/// A running `rallypoint host` on loopback.
#[derive(Debug)]
pub struct Room {
    /// The host process.
    pub host: Process,
    /// Address that guests join.
    pub addr: SocketAddr,
    /// Address of its metrics, if it was started with `--metrics`.
    pub metrics: Option<SocketAddr>,
    /// Its public key.
    pub key: String,
}

impl Room {
    /// Starts a room on a free port of 127.0.0.1.
    #[must_use]
    pub fn start(home: &Path, args: &[&str]) -> Self {
        Self::start_at(home, "127.0.0.1:0", args)
    }

    /// Starts a room on a given address.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_at(home: &Path, listen: &str, args: &[&str]) -> Self {
        let host = Process::spawn_interactive(rallypoint(home).args(["host", "--listen", listen]).args(args));
        let addr = |line: &str, name| line.strip_prefix(name).map(|addr| addr.parse().expect("an address"));
        let session = addr(&host.next_line(), "session udp ").expect("the address of the session");
        let mut line = host.next_line();
        let metrics = addr(&line, "metrics tcp ");
        if metrics.is_some() {
            line = host.next_line();
        }
        let key = line.strip_prefix("key ").expect("the key").to_owned();
        Self { host, addr: session, metrics, key }
    }

    /// Joins as a guest, and waits until the room has accepted it.
    #[must_use]
    pub fn join(&self, home: &Path, name: &str, args: &[&str]) -> Process {
        let guest = join(home, self.addr, name, args);
        guest.wait_for_line(&format!("-- you are {name}; /help"));
        guest
    }
}

/// Starts `rallypoint join`.
#[must_use]
pub fn join(home: &Path, addr: SocketAddr, name: &str, args: &[&str]) -> Process {
    Process::spawn_interactive(rallypoint(home).args(["join", &addr.to_string(), "--name", name]).args(args))
}
