//! The lobby as a service: registry, sockets, list service, checks, probes and the saved list.

mod bind;
mod datagram_doors;
mod descriptors;
mod error;
mod event_batches;
mod event_log;
mod handle;
mod loss_meter;
mod options;
mod probing;
mod refusal_log;
mod save;
mod start;
mod thread;

pub use error::LobbyStartError;
pub use event_batches::LobbyEvents;
pub(crate) use handle::RegistryHandle;
pub use options::LobbyOptions;
pub use save::SaveStats;
pub(crate) use thread::LobbyThread;

use crate::{
    AdminStore, AllOutcomes, ClusterLink, ClusterStatus, DoorAddrs, ListStats, NodeOutcome,
    announcement::AnnouncementError, list::ListService, table::ServerFeed, watch::WatchTarget,
};
use descriptors::Descriptors;
use probing::Probing;
use rallypoint_lobby_proto::doors::{Door, DoorStats};
use rallypoint_lobby_proto::{Config, ListSnapshot, PublishedLists, RecentOutcome, RegistryConfigError, RegistryStats};
use rallypoint_query_proto::ProberStats;
use rallypoint_udp::{EventLoopThread, UdpSocket};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use thread::SharedDoorStats;
use tokio::{runtime::Handle, sync::broadcast, task::AbortHandle};

/// Time that list replies have to complete during a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A running lobby. Clones refer to the same lobby; it ends with [`shutdown`](Self::shutdown), or abruptly when the last clone
/// is dropped.
///
/// ```
/// use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
/// use rallypoint_lobby_proto::doors::LOBBY;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let any_port = vec!["127.0.0.1:0".parse()?];
/// let options = LobbyOptions { doors: DoorAddrs::lobby(any_port), ..LobbyOptions::default() };
/// let lobby = LobbyService::start(options, &tokio::runtime::Handle::current())?;
/// println!("serving at {}, UDP and TCP", lobby.local_addrs()[&LOBBY][0]);
/// lobby.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LobbyService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addrs: DoorAddrs,
    door_stats: SharedDoorStats,
    sockets: Vec<Arc<UdpSocket>>,
    lists: Arc<PublishedLists>,
    registry: RegistryHandle,
    list: ListService,
    saves: save::SharedSaveStats,
    /// The memory cap.
    memory: AtomicUsize,
    check_bytes: Arc<AtomicU64>,
    descriptors: Descriptors,
    /// `None` without a data directory.
    admin: Option<AdminStore>,
    feed: Arc<ServerFeed>,
    table_task: AbortHandle,
    /// `None` if the lobby does not probe servers.
    probing: Option<Probing>,
    /// `None` if the lobby is not a node of a cluster.
    cluster: Option<ClusterLink>,
    /// `None` if the lobby is not a node of a cluster.
    node_name: Option<Arc<str>>,
    /// `None` after a shutdown.
    thread: Mutex<Option<EventLoopThread<LobbyThread>>>,
}

/// Counters of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketStats {
    /// Local address.
    pub addr: SocketAddr,
    /// Size of the system's receive buffer, in bytes.
    pub receive_buffer: usize,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that the system dropped because the receive buffer was full.
    pub dropped: u64,
}

impl LobbyService {
    /// Starts a lobby. It is serving when this returns; if it fails, nothing is left behind.
    ///
    /// The runtime serves the lists and makes checks and probes; it needs its I/O and time drivers. The registry has a thread
    /// of its own.
    pub fn start(options: LobbyOptions, runtime: &Handle) -> Result<Self, LobbyStartError> {
        start::start(options, runtime)
    }

    /// The addresses that the doors listen on: the actual ports, also where port 0 was configured.
    #[must_use]
    pub fn local_addrs(&self) -> &DoorAddrs {
        &self.0.addrs
    }

    /// Number of file descriptors that other parts of the program may use: at most
    /// [`LobbyOptions::other_descriptors`], less if the system's limit is low.
    #[must_use]
    pub fn other_descriptors(&self) -> usize {
        self.0.descriptors.others
    }

    /// The published lists.
    #[must_use]
    pub fn lists(&self) -> Arc<PublishedLists> {
        self.0.lists.clone()
    }

    /// The table of listed servers with the results of probes, for displays.
    #[must_use]
    pub fn servers(&self) -> &Arc<ServerFeed> {
        &self.0.feed
    }

    /// Counters of the registry, at most a quarter of a second old.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        self.0.registry.stats()
    }

    /// Counters of the doors that answer over UDP, at most a quarter of a second old.
    #[must_use]
    pub fn door_stats(&self) -> Arc<Vec<(&'static Door, DoorStats)>> {
        self.0.door_stats.load_full()
    }

    /// Counters of the list service.
    #[must_use]
    pub fn list_stats(&self) -> ListStats {
        self.0.list.stats()
    }

    /// The memory cap of the registry, in bytes. Other parts of the program derive their own bounds from it.
    #[must_use]
    pub fn memory_cap(&self) -> usize {
        self.0.memory.load(Relaxed)
    }

    /// Counters of saves to the data directory.
    #[must_use]
    pub fn save_stats(&self) -> SaveStats {
        *self.0.saves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counters of probes; `None` if the lobby does not probe servers.
    #[must_use]
    pub fn probe_stats(&self) -> Option<ProberStats> {
        self.0.probing.as_ref().map(|probing| probing.pool.stats())
    }

    /// Bytes of queries that checks have sent. They go to addresses that have not confirmed that they expect them: a sender
    /// that forges its address can direct them there.
    #[must_use]
    pub fn check_bytes(&self) -> u64 {
        self.0.check_bytes.load(Relaxed)
    }

    /// Counters of the UDP sockets, in the order of the doors.
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

    /// Outcomes of the last datagrams of an address, other than refreshes; the latest last.
    pub async fn recent_outcomes(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        self.0.registry.recent_outcomes(ip).await
    }

    /// The outcomes of the last datagrams of an address at this node, other than refreshes; the latest last.
    pub async fn own_outcomes(&self, ip: IpAddr) -> Vec<NodeOutcome> {
        self.0.registry.node_outcomes(ip, self.0.node_name.clone()).await
    }

    /// The outcomes of the last datagrams of an address at all nodes of a cluster, other than refreshes; without a cluster,
    /// those of this lobby.
    pub async fn all_outcomes(&self, ip: IpAddr) -> AllOutcomes {
        let peers = self.0.cluster.as_ref().and_then(|link| link.peers.load_full());
        let others = async {
            match peers {
                Some(peers) => peers.0.outcomes(ip).await,
                None => AllOutcomes::default(),
            }
        };
        let (own, mut all) = tokio::join!(self.own_outcomes(ip), others);
        all.outcomes.extend(own);
        all.outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.age));
        all
    }

    /// Replaces the configuration of the registry; all servers stay listed unless the new one forbids it. Ignored after a
    /// shutdown.
    pub async fn set_config(&self, config: Config) -> Result<(), RegistryConfigError> {
        let memory = config.caps.memory;
        self.0.registry.set_config(self.0.descriptors.limit_config(config)).await?;
        self.0.memory.store(memory, Relaxed);
        Ok(())
    }

    /// Watches these servers and no others: they do not register themselves, and are listed while they reply to probes.
    /// Ignored if the lobby does not probe servers, and after a shutdown.
    pub async fn set_watched_servers(&self, targets: &[WatchTarget]) {
        if let Some(probing) = &self.0.probing
            && let Some(watcher) = &mut *probing.watcher.lock().await
        {
            watcher.set_targets(targets).await;
        }
    }

    /// Handles an announcement that arrived at a door over HTTP and says only "I am here" (L17): the server is probed at this
    /// address, and listed if it replies. Exempt servers are not rate limited.
    pub async fn handle_announcement(
        &self,
        door: &'static Door,
        ip: IpAddr,
        port: NonZeroU16,
        is_exempt: bool,
    ) -> Result<(), AnnouncementError> {
        let probing = self.0.probing.as_ref().ok_or(AnnouncementError::Disabled)?;
        probing.announcements.handle(door, ip, port, is_exempt).await
    }

    /// The bans and notes that the operator has added at run time; `None` if the lobby has no data directory.
    #[must_use]
    pub fn admin(&self) -> Option<&AdminStore> {
        self.0.admin.as_ref()
    }

    /// The connection to the other nodes of a cluster; `None` if the lobby is not a node of one.
    #[must_use]
    pub fn cluster(&self) -> Option<&ClusterLink> {
        self.0.cluster.as_ref()
    }

    /// The state of the cluster; `None` if the lobby is not a node of one.
    #[must_use]
    pub fn cluster_status(&self) -> Option<Arc<ClusterStatus>> {
        self.0.cluster.as_ref()?.status.load_full()
    }

    /// Subscribes to events: servers that are listed, changed and unlisted. They come in batches, at most every 20 ms.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<LobbyEvents> {
        self.0.registry.events.subscribe()
    }

    /// The current lists, and a subscription to all later events: nothing is missed in between, though the first events may be
    /// part of the lists already. `None` after a shutdown.
    pub async fn follow(&self) -> Option<(Arc<ListSnapshot>, broadcast::Receiver<LobbyEvents>)> {
        self.0.registry.follow().await
    }

    /// Whether the lobby thread is running. It runs until a [`shutdown`](Self::shutdown), unless it panics.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.registry.is_alive()
    }

    /// Waits until the lobby thread has ended: after a [`shutdown`](Self::shutdown), or because of a panic. In the latter case
    /// the list does not change any more, and the program should be restarted.
    pub async fn ended(&self) {
        self.0.registry.ended().await;
    }

    /// Stops listening and probing, completes list replies (for at most 5 s), saves the list, and ends all threads. Calling it
    /// twice is harmless. Returns whether the list was saved: if not, a restart restores the previous save.
    pub async fn shutdown(&self) -> bool {
        if let Some(probing) = &self.0.probing {
            probing.stop().await;
        }
        self.0.list.stop_listening();
        self.0.list.finish(SHUTDOWN_TIMEOUT).await;
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return true };
        let save = tokio::task::spawn_blocking(move || {
            let thread = thread.stop()?;
            Some(thread.saves.is_none_or(|saves| saves.finish(&thread.registry)))
        });
        let is_saved = matches!(save.await, Ok(Some(true)));
        if !is_saved {
            tracing::error!("cannot save the list at shutdown: the next start restores the previous save");
        }
        is_saved
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.table_task.abort();
    }
}
