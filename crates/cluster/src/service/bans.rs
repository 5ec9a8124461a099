//! Bans of operators as the nodes share them.
//!
//! The value in the store is the time of the decision and the end of the ban in milliseconds since 1970 (0 if it has none), each
//! followed by a space, and the ban in JSON. A ban that was lifted stays there as such for 30 days, so that a node that was away
//! learns of it; so does one that has ended.

use crate::ClusterNode;
use rallypoint_lobby::{AdminRecord, BanChange, BanDecision};
use rallypoint_lobby_proto::{Ban, BanSubject};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeSet, HashMap},
    time::{SystemTime, UNIX_EPOCH},
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SharedBan {
    Put(Ban),
    Lifted(BanSubject),
}

/// Bans that were lifted, with the time of the decision. The store keeps them too, but can be emptied; then a node that was away must
/// not bring such a ban back.
#[derive(Debug, Default)]
pub(super) struct Lifts {
    by_subject: HashMap<String, (BanSubject, u64)>,
    /// The same in the order of the decisions.
    by_time: BTreeSet<(u64, String)>,
}

impl Lifts {
    /// Notes a decision, unless a later one is known. One of this node's operator (`is_current`) is the latest, whatever the clocks
    /// are. If there are too many, the oldest one is dropped.
    pub fn handle(&mut self, decision: &BanDecision, is_current: bool) {
        let (subject, since) = (decision.change.subject(), decision.since);
        let key = subject.to_string();
        if let Some((_, known)) = self.by_subject.get(&key) {
            if *known > since && !is_current {
                return;
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
    }
}

/// Hands a decision that this node's operator has just made to the other nodes. Returns `false` if too many wait for the store.
pub(super) fn share(node: &mut ClusterNode, decision: BanDecision) -> bool {
    hand_over(node, decision, true)
}

/// Hands bans and lifts that this node knows to the others if the store does not have them, or has an earlier decision. Returns
/// `false` if too many wait for the store.
pub(super) fn share_missing(
    node: &mut ClusterNode,
    record: &AdminRecord,
    lifts: &Lifts,
    stored: &[BanDecision],
) -> bool {
    let stored: HashMap<_, _> =
        stored.iter().map(|decision| (decision.change.subject().to_string(), decision.since)).collect();
    let own = record
        .bans
        .iter()
        .map(|own| BanDecision { change: BanChange::Put(own.ban.clone()), since: own.since.saturating_mul(1_000) });
    let lifted = lifts
        .by_subject
        .values()
        .map(|(subject, since)| BanDecision { change: BanChange::Lifted(subject.clone()), since: *since });
    let is_missing = |decision: &BanDecision| {
        stored.get(&decision.change.subject().to_string()).is_none_or(|known| *known < decision.since)
    };
    let mut has_room = true;
    for decision in own.chain(lifted).filter(is_missing) {
        has_room &= hand_over(node, decision, false);
    }
    has_room
}

fn hand_over(node: &mut ClusterNode, decision: BanDecision, is_current: bool) -> bool {
    let BanDecision { change, since } = decision;
    let subject = change.subject().to_string();
    let (end, shared) = match change {
        BanChange::Put(ban) => (ban.until.map_or(0, unix_milliseconds), SharedBan::Put(ban)),
        BanChange::Lifted(subject) => (since, SharedBan::Lifted(subject)),
    };
    serde_json::to_vec(&shared).is_ok_and(|value| node.handle_ban(subject.as_bytes(), value, since, end, is_current))
}

fn unix_milliseconds(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Parses a value of the store; anything else is skipped.
pub(super) fn parse(value: &[u8]) -> Option<BanDecision> {
    let mut parts = value.splitn(3, |byte| *byte == b' ');
    let mut number = || -> Option<u64> { std::str::from_utf8(parts.next()?).ok()?.parse().ok() };
    let (since, _end) = (number()?, number()?);
    let change = match serde_json::from_slice(parts.next()?).ok()? {
        SharedBan::Put(ban) => BanChange::Put(ban),
        SharedBan::Lifted(subject) => BanChange::Lifted(subject),
    };
    Some(BanDecision { change, since })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut lifts = Lifts::default();
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
        let mut lifts = Lifts::default();
        let count = AdminRecord::MAX as u64 + 5;
        for since in 0..count {
            let name = format!("2001:db8:0:{since:x}::/64");
            lifts.handle(&lifted(&name, since), false);
        }
        assert_eq!((lifts.by_subject.len(), lifts.by_time.len()), (AdminRecord::MAX, AdminRecord::MAX));
        assert_eq!(lifts.by_time.first().map(|(since, _)| *since), Some(5));
    }

    #[test]
    fn a_shared_ban_is_parsed_and_garbage_is_skipped() {
        let subject = BanSubject::network("203.0.113.0/24".parse().unwrap()).unwrap();
        let ban = Ban { subject: subject.clone(), reason: "spam".into(), until: None };
        for (shared, change) in [
            (SharedBan::Put(ban.clone()), BanChange::Put(ban)),
            (SharedBan::Lifted(subject.clone()), BanChange::Lifted(subject)),
        ] {
            let value = [b"17 0 ", &*serde_json::to_vec(&shared).unwrap()].concat();
            assert_eq!(parse(&value), Some(BanDecision { change, since: 17 }));
        }
        for garbage in [&b""[..], b"17", b"17 ", b"17 0", b"17 0 {}", b"17 {}", b"17 0 {\"put\":{}}", b"\xff \xff \xff"]
        {
            assert_eq!(parse(garbage), None);
        }
    }
}
