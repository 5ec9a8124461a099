//! Bans of operators as the nodes share them.
//!
//! The value in the store is the time of the decision and the end of the ban in milliseconds since 1970 (0 if it has none), each
//! followed by a space, and the ban in JSON. A ban that was lifted stays there as such for 30 days, so that a node that was away
//! learns of it; so does one that has ended.

use crate::ClusterNode;
use rallypoint_lobby::{AdminRecord, BanChange, BanDecision, LiftedBans};
use rallypoint_lobby_proto::{Ban, BanSubject};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SharedBan {
    Put(Ban),
    Lifted(BanSubject),
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
    lifted: &LiftedBans,
    stored: &[BanDecision],
) -> bool {
    let stored: HashMap<_, _> =
        stored.iter().map(|decision| (decision.change.subject().to_string(), decision.since)).collect();
    let own = record
        .bans
        .iter()
        .map(|own| BanDecision { change: BanChange::Put(own.ban.clone()), since: own.since.saturating_mul(1_000) });
    let lifted = lifted.decisions();
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

/// The latest time of a decision. Numbers of the scripts are exact up to there; they treat a later time as none.
const MAX_SINCE: u64 = 999_999_999_999_999;

/// Parses a value of the store; anything else is skipped.
pub(super) fn parse(value: &[u8]) -> Option<BanDecision> {
    let mut parts = value.splitn(3, |byte| *byte == b' ');
    let mut number = || -> Option<u64> { std::str::from_utf8(parts.next()?).ok()?.parse().ok() };
    let (since, _end) = (number().filter(|since| *since <= MAX_SINCE)?, number()?);
    let change = match serde_json::from_slice(parts.next()?).ok()? {
        SharedBan::Put(ban) => BanChange::Put(ban),
        SharedBan::Lifted(subject) => BanChange::Lifted(subject),
    };
    Some(BanDecision { change, since })
}

/// What the node receives of the operator's changes of bans.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Decision(BanDecision),
    /// There were more changes than wait for a subscriber.
    Missed,
}

/// The next change of a ban by the operator of this node. Returns `None` at once if there is no store of bans.
pub(super) async fn receive(bans: &mut Option<broadcast::Receiver<BanDecision>>) -> Option<Received> {
    match bans.as_mut()?.recv().await {
        Ok(decision) => Some(Received::Decision(decision)),
        Err(broadcast::error::RecvError::Lagged(_)) => Some(Received::Missed),
        Err(broadcast::error::RecvError::Closed) => {
            *bans = None;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> BanSubject {
        BanSubject::network("203.0.113.0/24".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_shared_ban_is_parsed_and_garbage_is_skipped() {
        let subject = network();
        let ban = Ban { subject: subject.clone(), reason: "spam".into(), until: None };
        for (shared, change) in [
            (SharedBan::Put(ban.clone()), BanChange::Put(ban)),
            (SharedBan::Lifted(subject.clone()), BanChange::Lifted(subject)),
        ] {
            let value = [b"17 0 ", &*serde_json::to_vec(&shared).unwrap()].concat();
            assert_eq!(parse(&value), Some(BanDecision { change, since: 17 }));
        }
        let ahead = [b"9999999999999999 0 ", &*serde_json::to_vec(&SharedBan::Lifted(network())).unwrap()].concat();
        assert_eq!(parse(&ahead), None, "no decision could be later");
        for garbage in [&b""[..], b"17", b"17 ", b"17 0", b"17 0 {}", b"17 {}", b"17 0 {\"put\":{}}", b"\xff \xff \xff"]
        {
            assert_eq!(parse(garbage), None);
        }
    }

    #[tokio::test]
    async fn changes_that_were_missed_are_reported() {
        let (sender, receiver) = broadcast::channel(2);
        let mut bans = Some(receiver);
        let decision = |since| BanDecision { change: BanChange::Lifted(network()), since };
        (0..5).for_each(|since| drop(sender.send(decision(since))));
        assert_eq!(receive(&mut bans).await, Some(Received::Missed));
        assert_eq!(receive(&mut bans).await, Some(Received::Decision(decision(3))));
        drop(sender);
        assert_eq!(receive(&mut bans).await, Some(Received::Decision(decision(4))));
        assert_eq!(receive(&mut bans).await, None);
    }
}
