//! The published state of a node: for displays and programs, for the other nodes, and in the log.

use super::{
    ClusterOptions, contact_log,
    defect_log::DefectLog,
    namesakes::Namesakes,
    outages::Outages,
    problem::{BANS_NOT_SHARED, MESSAGES_NOT_SHARED, problem},
};
use crate::{ClusterNode, ContactMonitor, FORMAT, NodeReport, NodeState, report::ReportedNode, reported_nodes};
use rallypoint_lobby::{ClusterLink, ClusterNodeStatus, ClusterProblem, ClusterStatus};
use std::time::{Duration, Instant};

/// Interval at which the state is published.
pub(super) const STATUS_INTERVAL: Duration = Duration::from_millis(500);

/// Time after its start for which a node without the servers of the others is not ready. After that it is useful with its own:
/// a store that fails just then must not keep it out.
const JOIN_TIME: Duration = Duration::from_secs(30);

/// Figures that other parts of the node contribute to its published state.
pub(super) struct OtherState {
    /// Number of listed servers.
    pub listed: u64,
    /// Whether another program's value is in place of the messages.
    pub has_foreign_messages: bool,
    /// Counters besides those of the node.
    pub counters: Vec<(&'static str, u64)>,
    /// Values that are not valid, besides those that the node has found.
    pub malformed: u64,
    /// Servers that were not applied, besides those that the node does not track.
    pub untracked: u64,
}

/// Follows the state of a node, publishes it, and logs its changes.
#[derive(Debug)]
pub(super) struct NodeStatus {
    /// Random number of this node.
    id: u64,
    name: String,
    outage_limit: Duration,
    started: Instant,
    contact: ContactMonitor,
    outages: Outages,
    namesakes: Namesakes,
    defects: DefectLog,
    /// Names of the other nodes that reported when there was last contact.
    peers: Vec<String>,
    next: Instant,
    /// Whether the last published state was connected.
    is_shown_connected: bool,
    /// Why there was no contact when there last was none. It counts until everything has succeeded again.
    last_problem: Option<ClusterProblem>,
}

impl NodeStatus {
    pub fn new(id: u64, options: &ClusterOptions, now: Instant) -> Self {
        Self {
            id,
            name: options.node_name.clone(),
            outage_limit: options.outage_limit,
            started: now,
            contact: ContactMonitor::default(),
            outages: Outages::default(),
            namesakes: Namesakes::default(),
            defects: DefectLog::default(),
            peers: Vec::new(),
            next: now,
            is_shown_connected: false,
            last_problem: None,
        }
    }

    /// Follows the node. What has changed is published at once, and logged afterwards; the rest is published at intervals.
    pub fn update(
        &mut self,
        now: Instant,
        node: &mut ClusterNode,
        link: &ClusterLink,
        other: impl FnOnce() -> OtherState,
    ) {
        // Also those that are too short to be shown: together they are a problem.
        match node.state() {
            NodeState::Following => self.outages.handle_contact(now, true),
            NodeState::Disconnected(_) | NodeState::Refused(_) => self.outages.handle_contact(now, false),
            NodeState::Loading => {}
        }
        let event = self.contact.poll_event(now, node);
        match node.state() {
            NodeState::Disconnected(_) | NodeState::Refused(_) => self.last_problem = Some(problem(node.state())),
            NodeState::Loading | NodeState::Following if self.contact.is_in_contact() => self.last_problem = None,
            NodeState::Loading | NodeState::Following => {}
        }
        let is_connected = self.contact.is_in_contact();
        if now >= self.next || is_connected != self.is_shown_connected {
            self.is_shown_connected = is_connected;
            self.publish(now, node, link, other());
        }
        if let Some(event) = event {
            contact_log::write(&event, node, &self.contact, self.outage_limit);
        }
        if let Some(defect) = node.take_defect() {
            self.defects.write(now, defect);
        }
    }

    fn publish(&mut self, now: Instant, node: &mut ClusterNode, link: &ClusterLink, other: OtherState) {
        self.next = now + STATUS_INTERVAL;
        let stats = node.stats();
        let round_trip = node.clock().round_trip();
        let is_connected = self.contact.is_in_contact();
        let reported = reported_nodes(node.nodes(), node.clock().store_time(now));
        if self.namesakes.find(self.id, &self.name, &reported) {
            let name = &self.name;
            // Latencies and replies could not be told apart.
            tracing::warn!(
                "another node of the cluster is called {name:?} too: give each its own name with cluster.node"
            );
        }
        let report = NodeReport {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            format: FORMAT,
            seq: stats.seq,
            listed: other.listed,
            behind: stats.behind,
            is_loading: !is_connected,
            outages: self.outages.count(now),
            probes: link.is_probing(),
            has_namesake: self.namesakes.is_known(),
            round_trip_us: round_trip.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        };
        node.set_report(report.emit());
        link.set_live_nodes(self.id, self.live_nodes(is_connected, &reported));
        if is_connected {
            // Without contact they are no longer known to be live; those that were are still the ones that may have something
            // to say.
            let names = reported.iter().filter(|other| other.is_live()).map(|other| &other.report.name);
            self.peers = names.filter(|name| **name != self.name).cloned().collect();
            self.peers.dedup();
        }
        let nodes = reported.into_iter().map(|node| ClusterNodeStatus {
            name: node.report.name,
            version: node.report.version,
            age: node.age,
            seq: node.report.seq,
            listed: node.report.listed,
        });
        let sharing_problem = if node.has_foreign_bans() {
            Some(BANS_NOT_SHARED)
        } else {
            other.has_foreign_messages.then_some(MESSAGES_NOT_SHARED)
        };
        let mut counters = vec![
            ("applied", stats.applied),
            ("written", stats.written),
            ("refused", stats.refused),
            ("renewed", stats.renewed),
            ("lost_leases", stats.lost_leases),
            ("loads", stats.loads),
            ("failures", stats.failures),
            ("defects", stats.defects),
            ("malformed", stats.malformed.saturating_add(other.malformed)),
            ("untracked", stats.untracked + other.untracked),
        ];
        counters.extend(other.counters);
        link.set_status(ClusterStatus {
            name: self.name.clone(),
            is_connected,
            is_joining: !self.contact.has_joined() && now < self.started + JOIN_TIME,
            problem: if is_connected { sharing_problem } else { self.outage_problem(node) },
            last_contact: self.contact.has_joined().then(|| node.last_contact()),
            outage_limit: self.outage_limit,
            round_trip,
            nodes: nodes.collect(),
            peers: self.peers.clone(),
            counters,
        });
    }

    /// Why there is no contact. A node that has not joined yet is loading, whatever has failed on the way.
    fn outage_problem(&self, node: &ClusterNode) -> Option<ClusterProblem> {
        let last = self.last_problem.filter(|_| self.contact.has_joined());
        Some(last.unwrap_or_else(|| problem(node.state())))
    }

    /// The nodes among which tasks are shared out. A node that does not probe cannot do it for the others.
    fn live_nodes(&self, is_connected: bool, reported: &[ReportedNode]) -> Vec<u64> {
        let mut live = vec![self.id];
        if is_connected {
            let is_other = |node: &&ReportedNode| node.is_live() && node.number != self.id && node.report.probes;
            live.extend(reported.iter().filter(is_other).map(|node| node.number));
        }
        live
    }
}
