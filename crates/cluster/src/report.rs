//! The report of a node about itself.

use crate::NodeRow;
use rallypoint_lobby::ClusterStatus;
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, time::Duration};

/// Maximum length of a name or version that is displayed.
const MAX_NAME: usize = 64;

/// The report of a node about itself in the store, in JSON. Fields that are missing or unknown are ignored, so that nodes of
/// neighbouring versions understand each other.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeReport {
    pub name: String,
    pub version: String,
    /// The latest layout of the store that it knows; 0 if it does not say so.
    pub format: u32,
    pub seq: u64,
    pub listed: u64,
    pub behind: u64,
    pub round_trip_us: u64,
    /// Whether it is still reading the servers of the others.
    pub is_loading: bool,
    /// Number of times that it lost contact with the store in the last ten minutes.
    pub outages: u32,
    /// Whether it probes servers, so that it can do it for the others.
    pub probes: bool,
    /// Whether it has found another running node with its name.
    pub has_namesake: bool,
}

impl NodeReport {
    pub fn emit(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses a report. Whatever the store has, the result can be displayed.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut report: Self = serde_json::from_slice(bytes).unwrap_or_default();
        for text in [&mut report.name, &mut report.version] {
            *text = rallypoint_wire::text::sanitize(text).chars().take(MAX_NAME).collect();
        }
        report
    }
}

/// A node as it reported itself, and when.
#[derive(Debug)]
pub(crate) struct ReportedNode {
    /// Random number of this start of the node.
    pub number: u64,
    pub report: NodeReport,
    /// When it reported, in the store's milliseconds.
    pub time: u64,
    pub age: Duration,
}

impl ReportedNode {
    pub fn is_live(&self) -> bool {
        self.age < ClusterStatus::NODE_TIMEOUT
    }
}

/// The nodes that reported, by name. Of a node that was started again, only the last start is among them, unless both report.
pub(crate) fn reported_nodes(rows: &[NodeRow], store_now: u64) -> Vec<ReportedNode> {
    // A time in the future is one of before the store's clock was set: the node has not reported since.
    let mut nodes: Vec<_> = rows
        .iter()
        .map(|row| ReportedNode {
            number: row.node,
            report: NodeReport::parse(&row.report),
            time: row.time,
            age: Duration::from_millis(store_now.abs_diff(row.time)),
        })
        .collect();
    nodes.sort_by(|a, b| a.report.name.cmp(&b.report.name).then(a.age.cmp(&b.age)));
    let mut names = HashSet::new();
    nodes.retain(|node| names.insert(node.report.name.clone()) || node.is_live());
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_was_started_again_is_listed_once() {
        let report = |name: &str| NodeReport { name: name.into(), ..NodeReport::default() }.emit();
        let row = |node, time, name| NodeRow { node, time, report: report(name) };
        let rows = [row(1, 70_000, "a"), row(2, 99_500, "a"), row(3, 99_000, "b"), row(4, 99_000, "b"), row(5, 9, "c")];
        let nodes = reported_nodes(&rows, 100_000);
        let numbers: Vec<_> = nodes.iter().map(|node| (node.number, node.is_live())).collect();
        assert_eq!(numbers, [(2, true), (3, true), (4, true), (5, false)]);
        assert!(!reported_nodes(&[row(6, 200_000, "d")], 100_000)[0].is_live(), "a time in the future");
    }
}
