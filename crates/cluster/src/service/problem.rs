//! The problem of a node in public form: without the address of the store.

use crate::NodeState;
use rallypoint_lobby::ClusterProblem;

/// Why a node that must not take part is not connected.
pub const REFUSED: ClusterProblem =
    ClusterProblem { code: "refused", summary: "the nodes in the store have another secret or version" };

/// Another program's value is in place of the bans.
pub const BANS_NOT_SHARED: ClusterProblem = ClusterProblem {
    code: "bans_not_shared",
    summary: "bans are not shared with the other nodes: their key in the store has another program's value",
};

/// Another program's value is in place of the messages.
pub const MESSAGES_NOT_SHARED: ClusterProblem = ClusterProblem {
    code: "messages_not_shared",
    summary: "latencies and the results of probes are not shared with the other nodes: their key in the store has another program's \
              value",
};

/// Why a node is not connected.
pub fn problem(state: &NodeState) -> ClusterProblem {
    match state {
        NodeState::Disconnected(error) => ClusterProblem { code: error.kind.code(), summary: error.kind.summary() },
        NodeState::Refused(_) => REFUSED,
        NodeState::Loading | NodeState::Following => {
            ClusterProblem { code: "loading", summary: "the servers of other nodes are being loaded" }
        }
    }
}
