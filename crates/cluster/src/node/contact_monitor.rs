//! When an outage of the store begins and ends, for displays and the log.

use super::{ClusterNode, NodeState};
use crate::{StoreError, StoreErrorKind};
use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

/// Time without contact that is not worth a message: a reconnection usually succeeds at once.
const GRACE: Duration = Duration::from_secs(1);

/// Number of outages within [`OUTAGE_WINDOW`] from which on a contact has to last for [`STEADY_TIME`] to end one: the log of a node
/// whose contact comes and goes would otherwise consist of that.
const MANY_OUTAGES: usize = 3;

/// How long an outage counts.
const OUTAGE_WINDOW: Duration = Duration::from_secs(600);

/// How long a contact that was lost again and again has to last.
const STEADY_TIME: Duration = Duration::from_secs(30);

/// A change of the contact between a node and the store, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContactEvent {
    /// The node has read everything for the first time.
    Joined,
    /// An outage has begun, for this reason.
    Lost(StoreError),
    /// The outage goes on, for a reason that was not reported yet.
    OtherReason(StoreError),
    /// The store does not let the node take part, for this reason.
    Refused(String),
    /// The outage, or the refusal, has ended.
    Regained,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    #[default]
    Joining,
    Contact,
    Outage,
    Refusal,
}

/// Follows a node, so that each outage is reported once when it begins, once for each further reason, and once when it ends.
///
/// A store that answers some requests and fails others (without memory, a replica, a user without a right) is one outage,
/// although a node that tries again has contact for a moment each time.
#[derive(Debug, Default)]
pub struct ContactMonitor {
    shown: Shown,
    has_joined: bool,
    /// The reasons of this outage that were reported. They can alternate.
    reasons: HashSet<StoreErrorKind>,
    /// When the last outages began.
    outages: VecDeque<Instant>,
}

impl ContactMonitor {
    /// Compares the state of the node with what was reported last. Returns what has to be reported.
    pub fn poll_event(&mut self, now: Instant, node: &ClusterNode) -> Option<ContactEvent> {
        match (node.state(), self.shown) {
            (NodeState::Following, Shown::Joining) => {
                self.shown = Shown::Contact;
                self.has_joined = true;
                Some(ContactEvent::Joined)
            }
            (NodeState::Following, Shown::Outage | Shown::Refusal)
                if node.has_recovered(now) && self.is_steady(now, node) =>
            {
                self.shown = Shown::Contact;
                let is_first = !std::mem::replace(&mut self.has_joined, true);
                Some(if is_first { ContactEvent::Joined } else { ContactEvent::Regained })
            }
            (NodeState::Disconnected(error), Shown::Joining | Shown::Contact)
                // The first contact with a distant store takes longer than that.
                if now.saturating_duration_since(node.last_contact()) > GRACE && node.stats().failures > 0 =>
            {
                self.shown = Shown::Outage;
                self.reasons = HashSet::from([error.kind]);
                self.outages.push_back(now);
                if self.outages.len() > MANY_OUTAGES {
                    self.outages.pop_front();
                }
                Some(ContactEvent::Lost(error.clone()))
            }
            // A store that was emptied is filled at once.
            (NodeState::Disconnected(error), Shown::Outage)
                if error.kind != StoreErrorKind::Emptied && self.reasons.insert(error.kind) =>
            {
                Some(ContactEvent::OtherReason(error.clone()))
            }
            (NodeState::Refused(reason), Shown::Joining | Shown::Contact | Shown::Outage) => {
                self.shown = Shown::Refusal;
                Some(ContactEvent::Refused(reason.clone()))
            }
            _ => None,
        }
    }

    /// Whether the contact can be expected to last.
    fn is_steady(&mut self, now: Instant, node: &ClusterNode) -> bool {
        self.outages.retain(|start| now.saturating_duration_since(*start) < OUTAGE_WINDOW);
        self.outages.len() < MANY_OUTAGES || now.saturating_duration_since(node.contact_since()) >= STEADY_TIME
    }

    /// Whether the node takes part. While it reads everything again, or connects again within a second, it goes on as before.
    #[must_use]
    pub fn is_in_contact(&self) -> bool {
        self.shown == Shown::Contact
    }

    /// Whether the node has ever had all servers of the cluster.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.has_joined
    }
}
