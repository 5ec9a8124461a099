//! The lobby as a node of a cluster: what the crate that connects it to the other nodes needs.

use crate::service::RegistryHandle;
use arc_swap::ArcSwapOption;
use rallypoint_lobby_proto::{Ban, BanSubject, CheckRequest, CheckResult, Registry};
use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// Options of a lobby that is a node of a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClusterOptions {
    /// The key of the public IDs, which all nodes share.
    pub public_id_key: [u8; 16],
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterOptions(secret)")
    }
}

/// The connection of a lobby to the other nodes of its cluster. Clones refer to the same lobby.
#[derive(Clone, Debug)]
pub struct ClusterLink {
    pub(crate) registry: RegistryHandle,
    /// Notified when the registry has changes to report.
    pub(crate) changes: Arc<Notify>,
    pub(crate) status: Arc<ArcSwapOption<ClusterStatus>>,
}

/// The state of a node and of the cluster as it knows it, for displays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterStatus {
    /// Name of this node.
    pub name: String,
    /// Whether the node has everything and is in contact with the store.
    pub is_connected: bool,
    /// What is wrong, if the node is not connected: one sentence.
    pub problem: Option<String>,
    /// When the store last answered.
    pub last_contact: Option<Instant>,
    /// Until when servers of other nodes stay listed without contact to the store.
    pub outage_limit: Duration,
    /// Round-trip time to the store.
    pub round_trip: Option<Duration>,
    /// All nodes that reported in the last hour, this one included.
    pub nodes: Vec<ClusterNodeStatus>,
    /// Counters by name, for metrics.
    pub counters: Vec<(&'static str, u64)>,
}

/// A node of the cluster as it reported itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterNodeStatus {
    /// Its name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Time since it last reported.
    pub age: Duration,
    /// Number of the last change that it had applied.
    pub seq: u64,
    /// Number of listed servers.
    pub listed: u64,
}

impl ClusterStatus {
    /// Time after which a node that does not report counts as gone.
    pub const NODE_TIMEOUT: Duration = Duration::from_secs(10);

    /// Number of nodes that reported recently.
    #[must_use]
    pub fn live_nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.age < Self::NODE_TIMEOUT).count()
    }
}

/// A ban that an operator added, changed or lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanChange {
    /// It was added, or replaces the one with the same subject.
    Put(Ban),
    /// It was lifted.
    Lifted(BanSubject),
}

/// A future on the heap.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Decides which node makes a reachability check.
pub trait CheckCoordinator: fmt::Debug + Send + Sync {
    /// The result of a check: by this node, which runs `check`, or by another one.
    fn coordinate(
        &self,
        request: CheckRequest,
        check: BoxFuture<io::Result<CheckResult>>,
    ) -> BoxFuture<io::Result<CheckResult>>;
}

impl ClusterLink {
    /// Waits until the registry has changes to report.
    pub async fn changed(&self) {
        self.changes.notified().await;
    }

    /// Runs a function on the lobby thread; `None` after a shutdown.
    pub async fn run<T: Send + 'static>(
        &self,
        function: impl FnOnce(&mut Registry, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        self.registry.run(function).await
    }

    /// Publishes the state of the cluster for displays.
    pub fn set_status(&self, status: ClusterStatus) {
        self.status.store(Some(Arc::new(status)));
    }

    /// Lets the coordinator decide which node makes a reachability check.
    pub async fn set_check_coordinator(&self, coordinator: Arc<dyn CheckCoordinator>) {
        self.registry.set_check_coordinator(coordinator).await;
    }
}
