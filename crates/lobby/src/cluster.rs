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
    pub(crate) duties: Duties,
}

/// Which of the tasks that one node does for all are this node's: probing watched servers. The nodes agree without talking to each
/// other, because each task belongs to the live node with the highest hash of both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Duties(Arc<ArcSwapOption<(u64, Vec<u64>)>>);

impl Duties {
    fn set(&self, own: u64, nodes: Vec<u64>) {
        self.0.store(Some(Arc::new((own, nodes))));
    }

    /// Whether a task is this node's. Without a cluster every task is.
    pub fn is_own(&self, task: &str) -> bool {
        let nodes = self.0.load();
        let Some((own, nodes)) = nodes.as_deref() else { return true };
        let rank = |node: &u64| (crc32(*node, task), *node);
        nodes.iter().filter(|node| *node != own).all(|node| rank(node) < rank(own))
    }
}

/// A hash that is the same at all nodes.
fn crc32(node: u64, task: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&node.to_be_bytes());
    hasher.update(task.as_bytes());
    hasher.finalize()
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
    /// Until when servers of other nodes stay listed without contact with the store.
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

    /// Shares tasks out among these nodes, of which `own` is this one.
    pub fn set_live_nodes(&self, own: u64, nodes: Vec<u64>) {
        self.duties.set(own, nodes);
    }

    /// Lets the coordinator decide which node makes a reachability check.
    pub async fn set_check_coordinator(&self, coordinator: Arc<dyn CheckCoordinator>) {
        self.registry.set_check_coordinator(coordinator).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_belongs_to_exactly_one_node_and_is_taken_over() {
        let tasks: Vec<_> = (0..300).map(|number| format!("bloodmasters://server{number}:6969")).collect();
        let owners = |live: &[u64], task: &str| -> Vec<u64> {
            let is_owner = |own: &u64| {
                let duties = Duties::default();
                assert!(duties.is_own(task), "without a cluster");
                duties.set(*own, live.to_vec());
                duties.is_own(task)
            };
            live.iter().copied().filter(|own| is_owner(own)).collect()
        };
        let mut counts = [0; 3];
        for task in &tasks {
            let before = owners(&[0, 1, 2], task);
            assert_eq!(before.len(), 1, "{task}");
            counts[before[0] as usize] += 1;
            let after = owners(&[0, 2], task);
            assert!(after.len() == 1 && (before[0] == 1 || after == before), "only tasks of the dead node move");
        }
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    }
}
