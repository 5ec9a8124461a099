//! Finds other nodes with the name of this one.

use crate::report::ReportedNode;
use std::collections::HashMap;

/// Nodes that have the name of this one, and when each reported first, as far as this node knows.
///
/// After a node was killed and started again, its former row has the same name for a while. That row never changes, while a running
/// node reports every three seconds.
#[derive(Debug, Default)]
pub(super) struct Namesakes {
    first_reports: HashMap<u64, u64>,
    is_known: bool,
}

impl Namesakes {
    /// Returns whether another running node has this name, the first time that it shows.
    pub fn find(&mut self, own: u64, name: &str, reported: &[ReportedNode]) -> bool {
        let is_namesake = |node: &&ReportedNode| node.is_live() && node.number != own && node.report.name == name;
        let namesakes: Vec<_> = reported.iter().filter(is_namesake).collect();
        self.first_reports.retain(|number, _| namesakes.iter().any(|node| node.number == *number));
        let mut is_running = false;
        for node in namesakes {
            is_running |= *self.first_reports.entry(node.number).or_insert(node.time) != node.time;
        }
        let is_new = is_running && !self.is_known;
        self.is_known |= is_running;
        // Once they have gone, the next one is new.
        self.is_known &= !self.first_reports.is_empty();
        is_new
    }

    /// Whether another running node has this name.
    pub fn is_known(&self) -> bool {
        self.is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeReport, NodeRow, reported_nodes};

    fn reported(now: u64, rows: &[(u64, u64, &str)]) -> Vec<ReportedNode> {
        let report = |name: &str| NodeReport { name: name.into(), ..NodeReport::default() }.emit();
        let row = |&(node, time, name): &(u64, u64, &str)| NodeRow { node, time, report: report(name) };
        reported_nodes(&rows.iter().map(row).collect::<Vec<_>>(), now)
    }

    #[test]
    fn a_running_node_with_the_same_name_is_found_once() {
        let mut namesakes = Namesakes::default();
        assert!(!namesakes.find(1, "a", &reported(3_000, &[(1, 3_000, "a"), (2, 1_000, "a"), (3, 1_000, "b")])));
        assert!(namesakes.find(1, "a", &reported(6_000, &[(1, 6_000, "a"), (2, 4_000, "a"), (3, 4_000, "b")])));
        assert!(!namesakes.find(1, "a", &reported(9_000, &[(1, 9_000, "a"), (2, 7_000, "a")])));
        // Another one, later.
        assert!(!namesakes.find(1, "a", &reported(30_000, &[(1, 30_000, "a"), (2, 7_000, "a")])));
        assert!(!namesakes.find(1, "a", &reported(33_000, &[(1, 33_000, "a"), (4, 32_000, "a")])));
        assert!(namesakes.find(1, "a", &reported(36_000, &[(1, 36_000, "a"), (4, 35_000, "a")])));
    }

    #[test]
    fn the_row_of_a_node_that_was_killed_is_no_namesake() {
        let mut namesakes = Namesakes::default();
        for now in (3_000..12_000).step_by(500) {
            assert!(!namesakes.find(2, "a", &reported(now, &[(1, 2_000, "a"), (2, now, "a")])), "{now}");
        }
    }
}
