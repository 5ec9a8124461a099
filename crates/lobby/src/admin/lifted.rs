//! Bans that were lifted, as the nodes of a cluster remember them.

use super::AdminRecord;
use crate::cluster::{BanChange, OperatorDecision};
use rallypoint_lobby_proto::BanSubject;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// How long a ban that was lifted is remembered, in milliseconds: 30 days, as in the cluster's store.
const RETENTION: u64 = 30 * 86_400_000;

/// Bans that were lifted at any node of a cluster, with the time of the decision. The cluster's store keeps them too, but can
/// be emptied; then a node that was away must not bring such a ban back. They survive a restart, because a ban can be lifted
/// without contact with the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Lift>", into = "Vec<Lift>")]
pub struct Lifts {
    by_subject: HashMap<String, Lift>,
    /// Lifted bans in the order of the decisions.
    by_time: BTreeSet<(u64, String)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lift {
    #[serde(flatten)]
    subject: BanSubject,
    /// In milliseconds since 1970.
    since: u64,
}

impl Lifts {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_subject.is_empty()
    }

    /// Whether a later lift is known.
    pub(super) fn supersedes(&self, decision: &OperatorDecision) -> bool {
        self.since(decision.change.subject()).is_some_and(|known| known > decision.since)
    }

    /// Whether a decision that is not superseded is not known.
    pub(super) fn is_changed_by(&self, decision: &OperatorDecision) -> bool {
        let known = self.since(decision.change.subject());
        match &decision.change {
            BanChange::Put(_) => known.is_some(),
            BanChange::Lifted(_) => known != Some(decision.since),
        }
    }

    /// Notes a decision, which replaces what is known about its subject. If there are too many, the oldest one is dropped.
    pub(super) fn handle(&mut self, decision: &OperatorDecision) {
        let subject = decision.change.subject();
        self.remove(&subject.to_string());
        if let BanChange::Lifted(_) = &decision.change {
            self.insert(Lift { subject: subject.clone(), since: decision.since });
        }
        if self.by_subject.len() > AdminRecord::MAX {
            self.remove_oldest();
        }
    }

    /// Forgets bans that were lifted long ago; `now` is in milliseconds since 1970.
    pub(super) fn forget_old(&mut self, now: u64) {
        while self.by_time.first().is_some_and(|(since, _)| since.saturating_add(RETENTION) < now) {
            self.remove_oldest();
        }
    }

    fn since(&self, subject: &BanSubject) -> Option<u64> {
        // Most lobbies have none, and the text of a subject costs more than the rest.
        if self.is_empty() { None } else { self.by_subject.get(&subject.to_string()).map(|lifted| lifted.since) }
    }

    fn insert(&mut self, lifted: Lift) {
        let key = lifted.subject.to_string();
        self.by_time.insert((lifted.since, key.clone()));
        self.by_subject.insert(key, lifted);
    }

    fn remove(&mut self, key: &str) {
        if let Some(lifted) = self.by_subject.remove(key) {
            self.by_time.remove(&(lifted.since, key.to_owned()));
        }
    }

    fn remove_oldest(&mut self) {
        if let Some((_, oldest)) = self.by_time.pop_first() {
            self.by_subject.remove(&oldest);
        }
    }

    /// The decisions, in no particular order.
    pub fn decisions(&self) -> impl Iterator<Item = OperatorDecision> {
        let decision =
            |lifted: &Lift| OperatorDecision { change: BanChange::Lifted(lifted.subject.clone()), since: lifted.since };
        self.by_subject.values().map(decision)
    }
}

impl From<Vec<Lift>> for Lifts {
    fn from(list: Vec<Lift>) -> Self {
        let mut lifted = Self::default();
        for ban in list {
            lifted.remove(&ban.subject.to_string());
            lifted.insert(ban);
        }
        while lifted.by_subject.len() > AdminRecord::MAX {
            lifted.remove_oldest();
        }
        lifted
    }
}

/// In the order of the decisions.
impl From<Lifts> for Vec<Lift> {
    fn from(mut lifted: Lifts) -> Self {
        lifted.by_time.iter().filter_map(|(_, key)| lifted.by_subject.remove(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::Ban;

    fn lifted(name: &str, since: u64) -> OperatorDecision {
        OperatorDecision { change: BanChange::Lifted(subject(name)), since }
    }

    fn subject(name: &str) -> BanSubject {
        BanSubject::network(name.parse().unwrap()).unwrap()
    }

    #[test]
    fn an_earlier_ban_does_not_undo_a_lift() {
        let put = |since| {
            let ban = Ban { subject: subject("203.0.113.0/24"), reason: "spam".into(), until: None };
            OperatorDecision { change: BanChange::Put(ban), since }
        };
        let mut lifts = Lifts::default();
        for (decision, expected) in [
            (lifted("203.0.113.0/24", 20), Some(20)),
            (put(10), Some(20)),
            (lifted("203.0.113.0/24", 15), Some(20)),
            (put(30), None),
            (lifted("203.0.113.0/24", 40), Some(40)),
            (put(40), None),
        ] {
            if !lifts.supersedes(&decision) {
                lifts.handle(&decision);
                assert!(!lifts.is_changed_by(&decision));
            }
            let known: Vec<_> = lifts.by_subject.values().map(|lifted| lifted.since).collect();
            assert_eq!(known, expected.as_slice());
            assert_eq!(lifts.by_time.len(), known.len());
        }
    }

    #[test]
    fn the_oldest_of_too_many_lifts_is_dropped_and_so_are_old_ones() {
        let mut lifts = Lifts::default();
        let count = AdminRecord::MAX as u64 + 5;
        for since in 0..count {
            let name = format!("2001:db8:0:{since:x}::/64");
            lifts.handle(&lifted(&name, since));
        }
        assert_eq!((lifts.by_subject.len(), lifts.by_time.len()), (AdminRecord::MAX, AdminRecord::MAX));
        assert_eq!(lifts.by_time.first().map(|(since, _)| *since), Some(5));
        lifts.forget_old(RETENTION + count - 2);
        assert_eq!((lifts.by_subject.len(), lifts.by_time.len()), (2, 2));
    }
}
