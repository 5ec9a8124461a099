//! Access to the table for other tasks: the latest snapshot, subscriptions, and the way in for probe results.

use super::{TableSnapshot, TableUpdate};
use crate::{Finding, NodeLatency, verify::VerificationResult};
use arc_swap::{ArcSwap, Guard};
use rallypoint_lobby_proto::PublicId;
use std::sync::{Arc, OnceLock};
use tokio::sync::{broadcast, mpsc, watch};

/// Number of updates that a subscriber may be behind before it misses some and has to compare snapshots.
const BACKLOG: usize = 64;

/// Number of probe results that may wait for the table. A reply can take tens of kilobytes.
const RESULTS: usize = 64;

/// Number of findings that may wait for the other nodes of a cluster.
const FINDINGS: usize = 4_096;

/// The latest snapshot of the [`ServerTable`](super::ServerTable), and updates as they happen.
///
/// ```
/// use rallypoint_lobby::{LobbyOptions, LobbyService};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let any_port = vec!["127.0.0.1:0".parse()?];
/// let options = LobbyOptions { listen: any_port, legacy: Vec::new(), ..LobbyOptions::default() };
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
    findings: OnceLock<mpsc::Sender<Finding>>,
    is_current: watch::Sender<bool>,
}

/// What the table is told besides the events of the lobby.
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
}

impl ServerFeed {
    pub(crate) fn new(snapshot: Arc<TableSnapshot>) -> (Self, mpsc::Receiver<TableInput>) {
        let (results, received) = mpsc::channel(RESULTS);
        let feed = Self {
            snapshot: ArcSwap::new(snapshot),
            updates: broadcast::Sender::new(BACKLOG),
            results,
            findings: OnceLock::new(),
            is_current: watch::Sender::new(false),
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
        Subscription { snapshot: self.snapshot.load_full(), updates }
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
        self.share(Finding::Verification(result.clone()));
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

    /// What this lobby finds out from now on, for the other nodes of a cluster. Intended to be called once.
    pub(crate) fn share_findings(&self) -> mpsc::Receiver<Finding> {
        let (sender, receiver) = mpsc::channel(FINDINGS);
        let _ = self.findings.set(sender);
        receiver
    }

    /// Hands something to the other nodes of a cluster, if there is room: it is repeated otherwise.
    pub(crate) fn share(&self, finding: Finding) {
        if let Some(findings) = self.findings.get() {
            let _ = findings.try_send(finding);
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
