//! The latency between this node of a cluster and all servers (W91). Players see that of the node that is nearest to them.
//!
//! Verification and reachability checks are made by one node for all; this is measured by each node, about every five minutes.

use crate::{
    NodeLatency,
    cluster::Duties,
    probe::{ProbePool, ProbeReason},
    probe_report::ProbeReport,
    table::{ServerFeed, ServerRecord, Subscription, TableChange, visit_servers},
    verify::{self, ProbeSchedule, Verification},
};
use rallypoint_lobby_proto::ListingOrigin;
use rallypoint_query_proto::{Probe, ProbeOutcome};
use rallypoint_wire::lobby::Transport;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Interval at which each server is measured.
const INTERVAL: Duration = Duration::from_secs(300);

/// How the latency of a server is measured.
#[derive(Clone, Copy, Debug)]
enum Method {
    Query(Probe),
    Connect(SocketAddr),
}

/// Measures the latency of servers that are new to this node soon, and of all servers periodically, until the lobby ends. The
/// seed has to be unpredictable.
pub(crate) async fn run(
    name: Arc<str>,
    feed: Arc<ServerFeed>,
    updates: Subscription,
    pool: ProbePool,
    duties: Duties,
    seed: u128,
) {
    let mut schedule = ProbeSchedule::new(seed);
    let measure = |record: &Arc<ServerRecord>| {
        // The result of this node's own probes, which are more frequent.
        let own = record.latency.filter(|_| is_probed_here(record, &duties));
        if let Some(latency) = own {
            let (feed, name, id) = (Arc::clone(&feed), Arc::clone(&name), record.id);
            tokio::spawn(async move { feed.report_own_latency(name, id, latency).await });
            return;
        }
        let Some(method) = Method::of(record) else { return };
        if let Some(permits) = schedule.begin(Instant::now(), record.id, [method.addr().ip()].into_iter()) {
            let (feed, name, pool, id) = (Arc::clone(&feed), Arc::clone(&name), pool.clone(), record.id);
            tokio::spawn(async move {
                if let Some(latency) = method.measure(&pool).await {
                    feed.report_own_latency(name, id, latency).await;
                }
                drop(permits);
            });
        }
    };
    let is_new = |change: &TableChange| match change {
        TableChange::Listed(record) | TableChange::Changed(record) => {
            !record.node_latencies().iter().any(|known| known.node == name)
        }
        TableChange::Unlisted(..) => false,
    };
    visit_servers(&feed, updates, INTERVAL, is_new, measure).await;
}

/// Whether this node is the one that probes the server, and did.
fn is_probed_here(record: &ServerRecord, duties: &Duties) -> bool {
    has_replied(record) && record.origin == ListingOrigin::Registered && duties.is_own(record.id.as_bytes())
}

/// Whether the server has replied to a node: otherwise its address may be forged.
fn has_replied(record: &ServerRecord) -> bool {
    matches!(record.verification, Verification::Verified | Verification::Differs)
}

impl Method {
    /// How to measure a server. One that states how to query it has to have replied to a query; one that uses TCP is listed
    /// after a check.
    fn of(record: &ServerRecord) -> Option<Self> {
        let query = verify::targets(record).next();
        match query.filter(|_| has_replied(record)) {
            Some((_, probe)) => Some(Self::Query(Probe::new(probe.address, probe.query.protocol.presence()))),
            None if record.transport == Transport::Tcp => {
                let listed = record.addresses().next()?;
                let addr = record.listing.as_ref().map_or(listed, |listing| listing.internal_addr(listed));
                Some(Self::Connect(addr))
            }
            None => None,
        }
    }

    fn addr(self) -> SocketAddr {
        match self {
            Self::Query(probe) => probe.address,
            Self::Connect(addr) => addr,
        }
    }

    async fn measure(self, pool: &ProbePool) -> Option<Duration> {
        match self {
            Self::Query(probe) => match pool.probe(probe, ProbeReason::Requested).await? {
                ProbeOutcome::Answered(reply) => Some(reply.round_trip.time),
                _ => None,
            },
            Self::Connect(addr) => pool.connect(addr).await,
        }
    }
}

impl ServerFeed {
    /// Reports a latency that this node measured, to its own table and to the other nodes.
    async fn report_own_latency(&self, name: Arc<str>, id: rallypoint_lobby_proto::PublicId, latency: Duration) {
        self.share(ProbeReport::Latency(id, latency));
        self.report_latencies(vec![(id, NodeLatency { node: name, latency })]).await;
    }
}
