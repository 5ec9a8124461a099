//! The problem of a cluster, if it has one.

use super::{NodeHealth, StoreNode, StoreStatus};
use crate::FORMAT;
use std::time::Duration;

/// The most important problem of a cluster whose store could be read. `meta` is the key with its metadata.
pub(super) fn find_problem(status: &StoreStatus, meta: &str) -> Option<String> {
    if !status.is_set_up {
        return Some(
            "no node of a cluster with this name has used the store since it was last emptied: check the address of the store and \
             cluster.name, or start a node"
                .into(),
        );
    }
    if let Some(format) = status.format.filter(|format| *format > FORMAT) {
        return Some(format!(
            "the store is used by nodes of a later version (format {format}, this program knows {FORMAT}): update this program"
        ));
    }
    if !status.lost_fields.is_empty() {
        let fields = status.lost_fields.join(", ");
        return Some(format!(
            "another program has changed the key {meta}: it has no {fields}. A running node repairs it within two seconds; if none \
             does, start one, or delete the key"
        ));
    }
    let reporting: Vec<_> = status.nodes.iter().filter(|node| node.state.is_reporting()).collect();
    let last = status.nodes.iter().min_by_key(|node| node.age_ms);
    match (reporting.is_empty(), last) {
        (true, None) => return Some("no node of the cluster is running: all were stopped".into()),
        (true, Some(last)) => {
            return Some(format!(
                "no node of the cluster reports, the last was {}: start one, or see in the log of the nodes why they have no \
                 contact with the store",
                name_and_age(last)
            ));
        }
        (false, _) => {}
    }
    // A node that was restarted has a new row; the old one is not a problem.
    let is_lost = |node: &&StoreNode| {
        node.state == NodeHealth::Lost && !reporting.iter().any(|reporting| reporting.name == node.name)
    };
    let lost: Vec<_> = status.nodes.iter().filter(is_lost).map(name_and_age).collect();
    if !lost.is_empty() {
        return Some(format!(
            "nodes that were not stopped no longer report: {}. They have ended, or have no contact with the store; after an hour \
             they are forgotten",
            lost.join(", ")
        ));
    }
    let mut namesakes: Vec<_> = reporting.iter().filter(|node| node.has_namesake).map(|node| &*node.name).collect();
    namesakes.dedup();
    if !namesakes.is_empty() {
        let names = namesakes.join(", ");
        return Some(format!("several nodes have the same name: {names}. Give each its own with cluster.node"));
    }
    let unstable: Vec<_> = reporting
        .iter()
        .filter(|node| node.state == NodeHealth::Unstable)
        .map(|node| format!("{} ({} times in ten minutes)", node.name, node.outages))
        .collect();
    (!unstable.is_empty()).then(|| {
        format!(
            "nodes lose contact with the store again and again: {}. Their logs have the reason",
            unstable.join(", ")
        )
    })
}

/// `berlin (12 min ago)`
fn name_and_age(node: &StoreNode) -> String {
    let seconds = Duration::from_millis(node.age_ms).as_secs();
    match seconds {
        0..120 => format!("{} ({seconds} s ago)", node.name),
        _ => format!("{} ({} min ago)", node.name, seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NodeHealth::{Live, Loading, Lost, Unstable};

    fn status(nodes: &[(&str, NodeHealth)]) -> StoreStatus {
        let node = |(name, state): &(&str, NodeHealth)| StoreNode {
            name: (*name).into(),
            version: "0.1.0".into(),
            format: 1,
            state: *state,
            age_ms: if state.is_reporting() { 900 } else { 720_000 },
            outages: 4,
            behind: 0,
            listed: 12,
            round_trip_ms: 0.4,
            has_namesake: false,
        };
        StoreStatus {
            is_set_up: true,
            format: Some(1),
            nodes: nodes.iter().map(node).collect(),
            ..StoreStatus::default()
        }
    }

    fn problem(nodes: &[(&str, NodeHealth)]) -> String {
        find_problem(&status(nodes), "{rp:main}:meta").unwrap_or_default()
    }

    #[test]
    fn a_lost_node_is_a_problem_and_a_restarted_or_loading_one_is_not() {
        assert_eq!(problem(&[("a", Live), ("b", Loading)]), "");
        assert_eq!(problem(&[("a", Live), ("a", Lost)]), "");
        assert!(problem(&[("a", Live), ("b", Lost)]).contains("no longer report: b (12 min ago)."));
        assert!(problem(&[("a", Live), ("b", Unstable)]).contains("again and again: b (4 times in ten minutes)"));
    }

    /// A node that was restarted has two rows for a while, and says so of neither.
    #[test]
    fn nodes_that_have_found_a_namesake_are_a_problem() {
        let mut status = status(&[("a", Live), ("a", Live), ("b", Live)]);
        assert_eq!(find_problem(&status, "{rp:main}:meta"), None);
        status.nodes.iter_mut().filter(|node| node.name == "a").for_each(|node| node.has_namesake = true);
        let problem = find_problem(&status, "{rp:main}:meta").unwrap();
        assert!(problem.contains("the same name: a. Give"), "{problem}");
    }

    #[test]
    fn stopped_nodes_differ_from_lost_ones() {
        assert!(problem(&[]).contains("all were stopped"));
        assert!(problem(&[("a", Lost)]).contains("the last was a (12 min ago)"));
    }

    #[test]
    fn broken_metadata_is_not_taken_for_a_cluster_without_nodes() {
        let status = StoreStatus { lost_fields: vec!["seq", "epoch"], ..status(&[("a", Lost)]) };
        let problem = find_problem(&status, "{rp:main}:meta").unwrap();
        assert!(problem.contains("{rp:main}:meta: it has no seq, epoch"), "{problem}");
        let unused = find_problem(&StoreStatus::default(), "{rp:main}:meta").unwrap();
        assert!(unused.contains("no node of a cluster with this name"), "{unused}");
    }
}
