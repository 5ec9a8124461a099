//! Access to the table for other tasks: the latest snapshot, subscriptions, and the way in for probe results.

use super::{TableSnapshot, TableUpdate};
use crate::{NodeLatency, ProbeReport, verify::VerificationResult};
use arc_swap::{ArcSwap, Guard};
use rallypoint_lobby_proto::PublicId;
use std::sync::{
    Arc, Mutex, OnceLock, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{Notify, broadcast, mpsc, watch};

/// Number of updates that a subscriber may be behind before it misses some and has to compare snapshots. Each of them keeps a
/// version of every server that has changed since in memory.
const BACKLOG: usize = 2;

/// Number of probe results that may wait for the table. A reply can take tens of kilobytes.
const RESULTS: usize = 64;

/// Number of reports that may wait for the other nodes of a cluster.
const MAX_WAITING_REPORTS: usize = 4_096;

/// The latest snapshot of the [`ServerTable`](super::ServerTable), and updates as they happen.
///
/// ```
/// use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let any_port = vec!["127.0.0.1:0".parse()?];
/// let options = LobbyOptions { doors: DoorAddrs::lobby(any_port), ..LobbyOptions::default() };
/// let lobby = LobbyService::start(options, &tokio::runtime::Handle::current())?;
///
/// let feed = lobby.servers();
/// feed.until_current().await;
/// for server in feed.snapshot().records() {
///     println!("{}: {} of {} players", server.name, server.players, server.slots);
/// }
/// assert_eq!(feed.subscribe().snapshot.len(), 0, "no server has registered");
/// lobby.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ServerFeed {
    snapshot: ArcSwap<TableSnapshot>,
    updates: broadcast::Sender<Arc<TableUpdate>>,
    results: mpsc::Sender<TableInput>,
    /// For the other nodes of a cluster.
    reports: OnceLock<mpsc::Sender<ProbeReport>>,
    is_current: watch::Sender<bool>,
    /// For each subscriber the version of the last update that it has handled.
    handled: Mutex<Vec<Weak<AtomicU64>>>,
    /// Notified when a subscriber has handled an update.
    progress: Arc<Notify>,
}

/// Inputs of the table besides the events of the lobby.
#[derive(Debug)]
pub(crate) enum TableInput {
    /// The result of a probe.
    Verification(VerificationResult),
    /// Latencies that nodes of a cluster have measured.
    Latencies(Vec<(PublicId, NodeLatency)>),
}

/// Updates from a certain snapshot on.
#[derive(Debug)]
pub struct Subscription {
    /// The snapshot to begin with.
    pub snapshot: Arc<TableSnapshot>,
    updates: broadcast::Receiver<Arc<TableUpdate>>,
    handled: HandledVersion,
}

/// The version of the last update that a subscriber has handled.
#[derive(Debug)]
struct HandledVersion {
    version: Arc<AtomicU64>,
    progress: Arc<Notify>,
}

impl ServerFeed {
    pub(crate) fn new(snapshot: Arc<TableSnapshot>) -> (Self, mpsc::Receiver<TableInput>) {
        let (results, received) = mpsc::channel(RESULTS);
        let feed = Self {
            snapshot: ArcSwap::new(snapshot),
            updates: broadcast::Sender::new(BACKLOG),
            results,
            reports: OnceLock::new(),
            is_current: watch::Sender::new(false),
            handled: Mutex::default(),
            progress: Arc::default(),
        };
        (feed, received)
    }

    /// All servers as of now.
    pub fn snapshot(&self) -> Guard<Arc<TableSnapshot>> {
        self.snapshot.load()
    }

    /// Subscribes to updates.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        // In this order, so that no update is missed in between.
        let updates = self.updates.subscribe();
        let snapshot = self.snapshot.load_full();
        let version = Arc::new(AtomicU64::new(snapshot.version()));
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        handled.retain(|subscriber| subscriber.strong_count() > 0);
        handled.push(Arc::downgrade(&version));
        drop(handled);
        let handled = HandledVersion { version, progress: Arc::clone(&self.progress) };
        Subscription { snapshot, updates, handled }
    }

    /// Waits until all subscribers have handled the latest update. The table changes nothing meanwhile: a subscriber holds the
    /// version of every server from before the update, and any number of further versions would exist otherwise.
    pub(super) async fn until_handled(&self) {
        loop {
            let progress = self.progress.notified();
            if self.is_handled() {
                return;
            }
            progress.await;
        }
    }

    fn is_handled(&self) -> bool {
        let latest = self.snapshot.load().version();
        let handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        let mut versions = handled.iter().filter_map(Weak::upgrade).map(|version| version.load(Ordering::Relaxed));
        versions.all(|version| version >= latest)
    }

    /// Whether the snapshot is the list of the lobby, at most a moment old: not before the list was read for the first time,
    /// nor after the lobby has ended.
    #[must_use]
    pub fn is_current(&self) -> bool {
        *self.is_current.borrow()
    }

    /// Waits until the list was read for the first time.
    pub async fn until_current(&self) {
        // The sender is part of this feed, so the channel cannot be closed.
        let _ = self.is_current.subscribe().wait_for(|is_current| *is_current).await;
    }

    /// Reports the result of a probe by this lobby. It is dropped after the lobby has ended.
    pub async fn report(&self, result: VerificationResult) {
        self.share(ProbeReport::Verification(result.clone()));
        self.report_shared(result).await;
    }

    /// Reports the result of a probe by another node of a cluster.
    pub(crate) async fn report_shared(&self, result: VerificationResult) {
        let _ = self.results.send(TableInput::Verification(result)).await;
    }

    /// Reports latencies that nodes of a cluster have measured.
    pub(crate) async fn report_latencies(&self, latencies: Vec<(PublicId, NodeLatency)>) {
        let _ = self.results.send(TableInput::Latencies(latencies)).await;
    }

    /// The reports of this lobby from now on, for the other nodes of a cluster. Intended to be called once.
    pub(crate) fn share_probe_reports(&self) -> mpsc::Receiver<ProbeReport> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_REPORTS);
        let _ = self.reports.set(sender);
        receiver
    }

    /// Hands something to the other nodes of a cluster, if there is room: it is repeated otherwise.
    pub(crate) fn share(&self, report: ProbeReport) {
        if let Some(reports) = self.reports.get() {
            let _ = reports.try_send(report);
        }
    }

    pub(super) fn set_current(&self, is_current: bool) {
        self.is_current.send_if_modified(|value| std::mem::replace(value, is_current) != is_current);
    }

    pub(super) fn publish(&self, update: TableUpdate) {
        self.snapshot.store(Arc::clone(&update.snapshot));
        // It fails if there are no subscribers at present, which is fine.
        let _ = self.updates.send(Arc::new(update));
    }
}

impl Subscription {
    /// Waits for the next update. If this subscriber was too slow and missed some, the changes are computed from the
    /// snapshots.
    pub async fn next(&mut self, feed: &ServerFeed) -> Arc<TableUpdate> {
        self.handled.set(self.snapshot.version());
        loop {
            let update = match self.updates.recv().await {
                Ok(update) => update,
                Err(_lagged_or_closed) => {
                    let snapshot = feed.snapshot.load_full();
                    let changes = snapshot.changes_since(&self.snapshot);
                    Arc::new(TableUpdate { snapshot, changes })
                }
            };
            // An update may be part of the first snapshot already, or of the one that followed a gap.
            if update.snapshot.version() > self.snapshot.version() {
                self.snapshot = Arc::clone(&update.snapshot);
                return update;
            }
        }
    }
}

impl HandledVersion {
    fn set(&self, version: u64) {
        if self.version.swap(version, Ordering::Relaxed) != version {
            self.progress.notify_one();
        }
    }
}

/// The table does not wait for a subscriber that has ended.
impl Drop for HandledVersion {
    fn drop(&mut self) {
        self.set(u64::MAX);
    }
}
