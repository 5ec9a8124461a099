//! Bans that were lifted, as the nodes of a cluster remember them.

use super::AdminRecord;
use crate::cluster::{BanChange, BanDecision};
use rallypoint_lobby_proto::BanSubject;
use std::collections::{BTreeSet, HashMap};

/// Bans that were lifted at any node of a cluster, with the time of the decision. The cluster's store keeps them too, but can be emptied;
/// then a node that was away must not bring such a ban back.
#[derive(Clone, Debug, Default)]
pub struct LiftedBans {
    by_subject: HashMap<String, (BanSubject, u64)>,
    /// The same in the order of the decisions.
    by_time: BTreeSet<(u64, String)>,
}

impl LiftedBans {
    /// Notes a decision, unless a later one is known. One of this node's operator (`is_current`) is the latest, whatever the clocks
    /// are. If there are too many, the oldest one is dropped. Returns `false` if a later lift is known.
    pub(super) fn handle(&mut self, decision: &BanDecision, is_current: bool) -> bool {
        let (subject, since) = (decision.change.subject(), decision.since);
        let key = subject.to_string();
        if let Some((_, known)) = self.by_subject.get(&key) {
            if *known > since && !is_current {
                return false;
            }
            self.by_time.remove(&(*known, key.clone()));
            self.by_subject.remove(&key);
        }
        if let BanChange::Lifted(_) = &decision.change {
            self.by_subject.insert(key.clone(), (subject.clone(), since));
            self.by_time.insert((since, key));
        }
        if self.by_subject.len() > AdminRecord::MAX
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.by_subject.remove(&oldest);
        }
        true
    }

    /// The decisions, in no particular order.
    pub fn decisions(&self) -> impl Iterator<Item = BanDecision> {
        let lifted = |(subject, since): &(BanSubject, u64)| BanDecision {
            change: BanChange::Lifted(subject.clone()),
            since: *since,
        };
        self.by_subject.values().map(lifted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::Ban;

    fn lifted(name: &str, since: u64) -> BanDecision {
        BanDecision { change: BanChange::Lifted(subject(name)), since }
    }

    fn subject(name: &str) -> BanSubject {
        BanSubject::network(name.parse().unwrap()).unwrap()
    }

    #[test]
    fn an_earlier_ban_does_not_undo_a_lift() {
        let put = |since| {
            let ban = Ban { subject: subject("203.0.113.0/24"), reason: "spam".into(), until: None };
            BanDecision { change: BanChange::Put(ban), since }
        };
        let mut lifts = LiftedBans::default();
        for (decision, is_current, expected) in [
            (lifted("203.0.113.0/24", 20), false, Some(20)),
            (put(10), false, Some(20)),
            (lifted("203.0.113.0/24", 15), false, Some(20)),
            (put(30), false, None),
            (lifted("203.0.113.0/24", 40), false, Some(40)),
            (put(35), true, None),
        ] {
            lifts.handle(&decision, is_current);
            let known: Vec<_> = lifts.by_subject.values().map(|(_, since)| *since).collect();
            assert_eq!(known, expected.as_slice());
            assert_eq!(lifts.by_time.len(), known.len());
        }
    }

    #[test]
    fn the_oldest_of_too_many_lifts_is_dropped() {
        let mut lifts = LiftedBans::default();
        let count = AdminRecord::MAX as u64 + 5;
        for since in 0..count {
            let name = format!("2001:db8:0:{since:x}::/64");
            lifts.handle(&lifted(&name, since), false);
        }
        assert_eq!((lifts.by_subject.len(), lifts.by_time.len()), (AdminRecord::MAX, AdminRecord::MAX));
        assert_eq!(lifts.by_time.first().map(|(since, _)| *since), Some(5));
    }
}
