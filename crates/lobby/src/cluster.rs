//! The lobby as a node of a cluster: what the crate that connects it to the other nodes needs.

use crate::{AllOutcomes, NodeLatency, ProbeReport, VerificationResult, service::RegistryHandle, table::ServerFeed};
use arc_swap::ArcSwapOption;
use rallypoint_lobby_proto::{Ban, BanSubject, CheckRequest, CheckResult, PublicId, Registry};
use serde::{Deserialize, Serialize};
use std::{
    fmt, io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{Notify, mpsc};

/// The identity of a lobby as a node of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Name of the node: where it is, for players and operators.
    pub name: String,
    /// The key of the public IDs, which all nodes share.
    pub public_id_key: [u8; 16],
}

impl fmt::Debug for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeIdentity").field("name", &self.name).finish_non_exhaustive()
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
    pub(crate) feed: Arc<ServerFeed>,
    pub(crate) peers: Arc<ArcSwapOption<PeersRef>>,
    pub(crate) is_probing: bool,
}

/// Queries to the other nodes.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Queries all other nodes for the outcomes of recent registrations from an address.
    fn outcomes(&self, ip: IpAddr) -> BoxFuture<AllOutcomes>;
}

/// [`Peers`] behind a pointer of fixed size.
#[derive(Debug)]
pub(crate) struct PeersRef(pub Arc<dyn Peers>);

/// Which of the tasks that one node does for all are this node's: verifying servers and probing watched ones. The nodes agree
/// without exchanging anything but the fact that they are alive: each task belongs to the live node with the highest hash of both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Duties(Arc<ArcSwapOption<(u64, Vec<u64>)>>);

impl Duties {
    fn set(&self, own: u64, nodes: Vec<u64>) {
        self.0.store(Some(Arc::new((own, nodes))));
    }

    /// Whether a task is this node's. Without a cluster every task is.
    pub fn is_own(&self, task: &[u8]) -> bool {
        let nodes = self.0.load();
        let Some((own, nodes)) = nodes.as_deref() else { return true };
        let rank = |node: &u64| (mixed(*node, task), *node);
        nodes.iter().filter(|node| *node != own).all(|node| rank(node) < rank(own))
    }
}

/// A hash of both that is the same at all nodes.
///
/// A checksum is linear: the ranks of two nodes would differ by the same bits for all tasks of one length, and some nodes would get
/// twice the share of others. The multiplications of SplitMix64 undo that.
fn mixed(node: u64, task: &[u8]) -> u64 {
    let mut hash = node ^ u64::from(crc32fast::hash(task)) << 17;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        hash = (hash ^ hash >> 30).wrapping_mul(factor);
        hash ^= hash >> 27;
    }
    hash ^ hash >> 31
}

/// The state of a node and of the cluster as it knows it, for displays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterStatus {
    /// Name of this node.
    pub name: String,
    /// Whether the node has everything and is in contact with the store.
    pub is_connected: bool,
    /// Whether the node was started a short time ago, and has not had the servers of the others yet.
    pub is_joining: bool,
    /// The problem, if the node is not connected, or if it cannot share something although it is.
    pub problem: Option<ClusterProblem>,
    /// When the store last answered.
    pub last_contact: Option<Instant>,
    /// Until when servers of other nodes stay listed without contact with the store.
    pub outage_limit: Duration,
    /// Round-trip time to the store.
    pub round_trip: Option<Duration>,
    /// All nodes that reported in the last hour, this one included.
    pub nodes: Vec<ClusterNodeStatus>,
    /// Names of the other nodes that reported recently when there was last contact with the store.
    pub peers: Vec<String>,
    /// Counters by name, for metrics.
    pub counters: Vec<(&'static str, u64)>,
}

/// Why a node is not connected, or what it cannot share, for everyone: it does not name the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterProblem {
    /// A short name, for programs. The log has the same, with the whole error.
    pub code: &'static str,
    /// One sentence.
    pub summary: &'static str,
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

impl ClusterNodeStatus {
    /// Whether it reported recently.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.age < ClusterStatus::NODE_TIMEOUT
    }
}

impl ClusterStatus {
    /// Time after which a node that does not report counts as gone.
    pub const NODE_TIMEOUT: Duration = Duration::from_secs(10);

    /// Number of nodes that reported recently.
    #[must_use]
    pub fn live_nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_live()).count()
    }
}

/// A decision of an operator about a ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorDecision {
    /// The decision.
    pub change: BanChange,
    /// When it was decided, in milliseconds since 1970.
    pub since: u64,
}

/// A ban that an operator added, changed or lifted. In JSON, as the nodes of a cluster share it, it is an object such as
/// `{"put":{"network":"203.0.113.0/24","reason":"spam","until":null}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BanChange {
    /// It was added, or replaces the one with the same subject.
    Put(Ban),
    /// It was lifted.
    Lifted(BanSubject),
}

impl BanChange {
    /// The subject of the ban.
    #[must_use]
    pub fn subject(&self) -> &BanSubject {
        match self {
            Self::Put(ban) => &ban.subject,
            Self::Lifted(subject) => subject,
        }
    }
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

    /// Whether this lobby probes servers, so that tasks can be given to it.
    #[must_use]
    pub fn is_probing(&self) -> bool {
        self.is_probing
    }

    /// The reports of this lobby about servers from now on, for the other nodes. Reports that are not taken in time are dropped:
    /// they are repeated.
    #[must_use]
    pub fn probe_reports(&self) -> mpsc::Receiver<ProbeReport> {
        self.feed.share_probe_reports()
    }

    /// Applies what another node has found out by probes. A reply to it proves a server whose registrations this node receives
    /// (W45).
    pub async fn apply_verification(&self, result: VerificationResult) {
        if let Some(listed) = result.replied_at {
            self.registry.report_reply(result.id, listed);
        }
        self.feed.report_shared(result).await;
    }

    /// Applies latencies that other nodes have measured.
    pub async fn apply_latencies(&self, latencies: Vec<(PublicId, NodeLatency)>) {
        self.feed.report_latencies(latencies).await;
    }

    /// Lets other parts of the program query all nodes.
    pub fn set_peers(&self, peers: Arc<dyn Peers>) {
        self.peers.store(Some(Arc::new(PeersRef(peers))));
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
                assert!(duties.is_own(task.as_bytes()), "without a cluster");
                duties.set(*own, live.to_vec());
                duties.is_own(task.as_bytes())
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

    #[test]
    fn nodes_get_equal_shares() {
        for nodes in [[11, 12, 13], [u64::MAX, 1 << 40, 77], [3 << 50, 5 << 50, 9 << 50]] {
            let mut counts = [0; 3];
            // As long as public IDs.
            for task in (0..3_000_u128).map(u128::to_be_bytes) {
                for (own, count) in nodes.iter().zip(&mut counts) {
                    let duties = Duties::default();
                    duties.set(*own, nodes.to_vec());
                    *count += u32::from(duties.is_own(&task));
                }
            }
            assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{nodes:?}: {counts:?}");
        }
    }
}
