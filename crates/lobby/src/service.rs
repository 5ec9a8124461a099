//! The lobby as a service: registry, sockets, list service, checks and what is on disk.

mod bind;
mod error;
mod files;
mod keeper;
mod log;
mod options;
mod refusals;
mod saves;

pub use error::StartError;
pub use options::LobbyOptions;
pub use saves::SaveStats;

use crate::{ListStats, list::ListService, seldom::Seldom, store::Store};
use arc_swap::ArcSwap;
use files::Files;
use keeper::Keeper;
use log::EventLog;
use rallypoint_lobby_proto::{
    BanList, Config, ConfigError, Event, HashKeys, ListSnapshot, ProbedOutcome, ProbedServer, PublishedLists,
    RecentOutcome, RegistrationOutcome, Registry, RegistryStats,
};
use rallypoint_machine::SocketIndex;
use rallypoint_udp::{EventLoop, EventLoopHandle, EventLoopThread, UdpSocket, clock, entropy};
use refusals::RefusalLog;
use saves::Saves;
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{broadcast, watch},
};

/// Events that a slow subscriber can be behind before it misses some.
const EVENTS: usize = 16_384;

/// How long replies may take when the lobby ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// A lobby that runs. Clones are the same lobby; it ends with [`shutdown`](Self::shutdown), or abruptly with the last of
/// them.
///
/// ```
/// use rallypoint_lobby::{LobbyOptions, LobbyService};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let any_port = vec!["127.0.0.1:0".parse()?];
/// let options = LobbyOptions { listen: any_port, legacy: Vec::new(), ..LobbyOptions::default() };
/// let lobby = LobbyService::start(options, &tokio::runtime::Handle::current())?;
/// println!("serving at {}, UDP and TCP", lobby.local_addrs().lobby[0]);
/// lobby.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LobbyService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addrs: LocalAddrs,
    sockets: Vec<Arc<UdpSocket>>,
    lists: Arc<PublishedLists>,
    stats: Arc<ArcSwap<RegistryStats>>,
    events: broadcast::Sender<Event>,
    list: ListService,
    saves: saves::SharedStats,
    check_bytes: Arc<AtomicU64>,
    commands: EventLoopHandle<Keeper>,
    files: Files,
    /// Gone after a shutdown.
    driver: Mutex<Option<EventLoopThread<Keeper>>>,
    /// Its other end is gone when the registry's thread is.
    alive: watch::Receiver<()>,
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
    /// Starts a lobby. When this returns it serves; if it fails, nothing of it is left.
    ///
    /// The runtime serves the lists and makes the checks; it needs its I/O and time drivers. The registry has a thread of
    /// its own.
    pub fn start(options: LobbyOptions, runtime: &Handle) -> Result<Self, StartError> {
        let now = clock::now();
        let files = Files::claim(&options.list, &options.registry, options.other_files);
        // What arrives while the list is read back waits in the sockets.
        let bound = bind::bind(&options)?;
        let store = options.data_dir.as_deref().map(Store::open).transpose()?;
        let public_ids = store.as_ref().map_or_else(|| Ok(entropy::bytes()?), Store::public_id_key)?;
        let seed = HashKeys { tables: entropy::u64()?, public_ids };
        let mut registry = Registry::new(files.config(options.registry), seed, now)?;
        registry.set_admin_bans(now, options.more_bans);
        if let Some(store) = &store {
            restore(&mut registry, store)?;
        }
        let lists = registry.lists();
        let stats = Arc::new(ArcSwap::from_pointee(registry.stats()));
        let events = broadcast::Sender::new(EVENTS);
        let limits = files.limits(&options.list);
        let list = ListService::start(bound.tcp, lists.clone(), limits, runtime).map_err(StartError::Thread)?;
        let legacy_from = SocketIndex(bound.addrs.lobby.len());
        let (is_alive, alive) = watch::channel(());
        let (check_bytes, save_stats) = (Arc::new(AtomicU64::new(0)), saves::SharedStats::default());
        let event_loop = EventLoop::new(bound.udp.clone()).map_err(StartError::Thread)?;
        let keeper = Keeper {
            registry,
            legacy_from,
            events: events.clone(),
            stats: stats.clone(),
            saves: None,
            runtime: runtime.clone(),
            commands: event_loop.handle().clone(),
            log: EventLog::new(now),
            check_trouble: Seldom::default(),
            check_bytes: check_bytes.clone(),
            refusals: RefusalLog::default(),
            stats_at: None,
            stats_published: now,
            has_more_events: true,
            _is_alive: is_alive,
        };
        let driver = event_loop.spawn("lobby", keeper, drop).map_err(StartError::Thread)?;
        let commands = driver.handle().clone();
        if let Some(store) = store {
            let written = commands.clone();
            let written = move || written.run(Keeper::handle_written);
            let saves = Saves::start(store, options.save_every, now, save_stats.clone(), written)
                .map_err(StartError::Thread)?;
            commands.run(move |keeper, _| keeper.saves = Some(saves));
        }
        let (addrs, sockets, driver) = (bound.addrs, bound.udp, Mutex::new(Some(driver)));
        for socket in &sockets {
            tracing::info!(addr = %socket.local_addr(), receive_buffer = socket.recv_buffer_size(), "listening");
        }
        Ok(Self(Arc::new(Inner {
            addrs,
            sockets,
            lists,
            stats,
            events,
            list,
            saves: save_stats,
            check_bytes,
            commands,
            files,
            driver,
            alive,
        })))
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addrs(&self) -> &LocalAddrs {
        &self.0.addrs
    }

    /// How many of the descriptors that other parts wanted they can have.
    #[must_use]
    pub fn other_files(&self) -> usize {
        self.0.files.others
    }

    /// The published lists.
    #[must_use]
    pub fn lists(&self) -> Arc<PublishedLists> {
        self.0.lists.clone()
    }

    /// The registry's numbers, at most a quarter of a second old.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        **self.0.stats.load()
    }

    /// The list service's numbers.
    #[must_use]
    pub fn list_stats(&self) -> ListStats {
        self.0.list.stats()
    }

    /// How saving goes.
    #[must_use]
    pub fn save_stats(&self) -> SaveStats {
        *self.0.saves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of queries that checks have sent. They go to addresses that have not shown that they want them: whoever can
    /// forge an address can have them sent there.
    #[must_use]
    pub fn check_bytes(&self) -> u64 {
        self.0.check_bytes.load(Relaxed)
    }

    /// The UDP sockets' numbers, those of the legacy lobby last.
    #[must_use]
    pub fn socket_stats(&self) -> Vec<SocketStats> {
        let stats = |socket: &Arc<UdpSocket>| SocketStats {
            addr: socket.local_addr(),
            receive_buffer: socket.recv_buffer_size(),
            received: socket.received(),
            dropped: socket.dropped(),
        };
        self.0.sockets.iter().map(stats).collect()
    }

    /// What became of the last datagrams of an address, other than refreshes; the latest last.
    pub async fn recent_outcomes(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        self.0.commands.call(move |keeper, _| keeper.registry.recent_outcomes(ip)).await.unwrap_or_default()
    }

    /// Changes the configuration without forgetting anything. Nothing happens after a shutdown.
    pub async fn set_config(&self, config: Config) -> Result<(), ConfigError> {
        let config = self.0.files.config(config);
        self.0.commands.call(move |keeper, now| keeper.registry.set_config(now, config)).await.unwrap_or(Ok(()))
    }

    /// Lists a server that does not register, and that somebody has asked. `None` after a shutdown.
    pub async fn put_watched(&self, watched: ProbedServer) -> Option<ProbedOutcome> {
        self.0.commands.call(move |keeper, now| keeper.registry.handle_probed(now, &watched)).await
    }

    /// Takes such a server off the list.
    pub async fn forget_watched(&self, label: String) {
        self.0.commands.call(move |keeper, now| keeper.registry.remove_probed(now, &label)).await;
    }

    /// Whether a server that announces itself is refused whatever it would answer: then nobody has to ask it. Its owner can
    /// read why.
    pub async fn refuse_announced(&self, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        self.0.commands.call(move |keeper, now| keeper.registry.precheck_announced(now, ip, port)).await.flatten()
    }

    /// Notes for its owner what became of a server that announced itself.
    pub fn note_announced(&self, ip: IpAddr, port: NonZeroU16, outcome: RegistrationOutcome) {
        self.0.commands.run(move |keeper, now| keeper.registry.record_announced(now, ip, port, outcome));
    }

    /// Bans beside those of the configuration: they stay when that is changed. Nothing happens after a shutdown.
    pub async fn set_more_bans(&self, bans: BanList) {
        self.0.commands.call(move |keeper, now| keeper.registry.set_admin_bans(now, bans)).await;
    }

    /// What happens from now on: servers that are listed, changed and unlisted.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// The lists as they are now, and everything that happens after that: nothing is missed in between, though the first
    /// events may be in the lists already. `None` after a shutdown.
    pub async fn follow(&self) -> Option<(Arc<ListSnapshot>, broadcast::Receiver<Event>)> {
        let follow = |keeper: &mut Keeper, now| {
            keeper.registry.publish(now);
            (keeper.registry.lists().snapshot(), keeper.events.subscribe())
        };
        self.0.commands.call(follow).await
    }

    /// Whether the registry is there. It is until a [`shutdown`](Self::shutdown), unless there is a fault in this program.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.alive.has_changed().is_ok()
    }

    /// Waits until the registry is gone: after a [`shutdown`](Self::shutdown), or because of a fault in this program. Then
    /// the list stays as it is, and it is better to start again.
    pub async fn ended(&self) {
        while self.0.alive.clone().changed().await.is_ok() {}
    }

    /// Stops taking, finishes replies (for at most 5 s), saves, and ends all threads. Calling it twice is harmless. Says
    /// whether all that was to be saved is saved: if not, a restart goes back to the save before.
    pub async fn shutdown(&self) -> bool {
        self.0.list.stop_listening();
        self.0.list.finish(PATIENCE).await;
        let driver = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(driver) = driver else { return true };
        let save = tokio::task::spawn_blocking(move || {
            let keeper = driver.stop()?;
            Some(keeper.saves.is_none_or(|saves| saves.finish(&keeper.registry)))
        });
        let is_saved = matches!(save.await, Ok(Some(true)));
        if !is_saved {
            tracing::error!("the list could not be saved at the end: the next start goes back to the last save");
        }
        is_saved
    }
}

/// Reads back what was saved. What cannot be read is set aside, and the lobby starts empty.
fn restore(registry: &mut Registry, store: &Store) -> Result<(), StartError> {
    let Some(save) = store.servers()? else { return Ok(()) };
    match registry.restore(clock::now(), &save) {
        Ok(servers) => tracing::info!(servers, "the list was read back"),
        Err(error) => store.set_servers_aside(&error),
    }
    Ok(())
}
