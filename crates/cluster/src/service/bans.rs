//! Bans of operators as the nodes share them.
//!
//! The value in the store is the time of the decision and the end of the ban in milliseconds since 1970 (0 if it has none), each
//! followed by a space, and the ban in JSON. A ban that was lifted stays there as such for 30 days, so that a node that was away
//! learns of it; so does one that has ended.

use crate::ClusterNode;
use rallypoint_lobby::{AdminRecord, AdminStore, BanChange, LobbyService, OperatorDecision};
use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;

/// The exchange of bans between this node's operator and the others.
#[derive(Debug)]
pub(super) struct Exchange {
    /// `None` without a store of bans.
    admin: Option<AdminStore>,
    changes: Option<broadcast::Receiver<OperatorDecision>>,
    /// Whether it was logged that another program's value is where the bans should be.
    is_foreign_logged: bool,
    malformed: u64,
    left_out: usize,
}

impl Exchange {
    pub fn new(lobby: &LobbyService) -> Self {
        let admin = lobby.admin().cloned();
        let changes = admin.as_ref().map(AdminStore::subscribe);
        Self { admin, changes, is_foreign_logged: false, malformed: 0, left_out: 0 }
    }

    /// Number of values of the store that are not bans.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Number of bans, of the store or of this node, that did not fit.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The next change of a ban by the operator of this node. Returns `None` at once if there is no store of bans.
    pub async fn receive(&mut self) -> Option<Received> {
        receive(&mut self.changes).await
    }

    /// Hands what the operator of this node has just decided to the other nodes.
    pub fn handle_received(&mut self, node: &mut ClusterNode, received: Received) {
        match received {
            Received::Decision(decision) => {
                if !hand_over(node, decision, true) {
                    self.set_left_out(self.left_out.max(1));
                }
            }
            Received::Missed => node.reread_bans(),
        }
    }

    /// Parses a ban of the store.
    pub fn parse(&mut self, value: &[u8]) -> Option<OperatorDecision> {
        let decision = parse(value);
        self.malformed += u64::from(decision.is_none());
        decision
    }

    /// Parses all bans of the store, and hands those over that it does not have.
    pub fn parse_all(&mut self, node: &mut ClusterNode, values: &[Vec<u8>], left_out: usize) -> Vec<OperatorDecision> {
        let all: Vec<_> = values.iter().filter_map(|value| self.parse(value)).collect();
        let has_room = self.admin.as_ref().is_none_or(|admin| share_missing(node, &admin.record(), &all));
        self.set_left_out(left_out.saturating_add(usize::from(!has_room)));
        all
    }

    /// Applies decisions of the other nodes.
    pub async fn apply(&mut self, decisions: Vec<OperatorDecision>) {
        let Some(admin) = self.admin.as_ref().filter(|_| !decisions.is_empty()) else { return };
        match admin.apply_shared(decisions).await {
            Ok(left_out) => self.set_left_out(self.left_out.max(left_out)),
            Err(error) => tracing::warn!(%error, "cannot apply bans of other nodes"),
        }
    }

    /// Logs once that there are more bans than a node keeps.
    fn set_left_out(&mut self, count: usize) {
        if count > 0 && self.left_out == 0 {
            let max = AdminRecord::MAX;
            tracing::error!(
                count,
                "not all bans of the cluster are in force at this node: there are more than {max}. Lift bans that are no \
                 longer needed, or combine them into networks"
            );
        }
        self.left_out = count;
    }

    /// Logs once that bans cannot be shared because their key has another program's value, and that they can again.
    pub fn log_foreign(&mut self, node: &ClusterNode, key: &str) {
        let is_foreign = node.has_foreign_bans();
        if is_foreign && !self.is_foreign_logged {
            tracing::error!(
                "bans are not shared with the other nodes: the key {key} of the store has another program's value. Delete it; the \
                 nodes then write their bans again"
            );
        } else if self.is_foreign_logged && !is_foreign {
            tracing::info!("bans are shared with the other nodes again");
        }
        self.is_foreign_logged = is_foreign;
    }
}

/// Hands bans and lifts that this node knows to the others if the store does not have them, or has an earlier decision. Returns
/// `false` if too many wait for the store.
fn share_missing(node: &mut ClusterNode, record: &AdminRecord, stored: &[OperatorDecision]) -> bool {
    let stored: HashMap<_, _> =
        stored.iter().map(|decision| (decision.change.subject().to_string(), decision.since)).collect();
    let own = record.bans.iter().map(|own| OperatorDecision {
        change: BanChange::Put(own.ban.clone()),
        since: own.since.saturating_mul(1_000),
    });
    let is_missing = |decision: &OperatorDecision| {
        stored.get(&decision.change.subject().to_string()).is_none_or(|known| *known < decision.since)
    };
    let mut has_room = true;
    for decision in own.chain(record.lifted.decisions()).filter(is_missing) {
        has_room &= hand_over(node, decision, false);
    }
    has_room
}

fn hand_over(node: &mut ClusterNode, decision: OperatorDecision, is_current: bool) -> bool {
    let OperatorDecision { change, since } = decision;
    let subject = change.subject().to_string();
    let end = match &change {
        BanChange::Put(ban) => ban.until.map_or(0, unix_milliseconds),
        BanChange::Lifted(_) => since,
    };
    serde_json::to_vec(&change).is_ok_and(|value| node.handle_ban(subject.as_bytes(), value, since, end, is_current))
}

fn unix_milliseconds(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// The latest time of a decision. Numbers of the scripts are exact up to there; they treat a later time as none.
const MAX_SINCE: u64 = 999_999_999_999_999;

/// Parses a value of the store; anything else is skipped.
fn parse(value: &[u8]) -> Option<OperatorDecision> {
    let mut parts = value.splitn(3, |byte| *byte == b' ');
    let mut number = || -> Option<u64> { std::str::from_utf8(parts.next()?).ok()?.parse().ok() };
    let (since, _end) = (number().filter(|since| *since <= MAX_SINCE)?, number()?);
    let change = serde_json::from_slice(parts.next()?).ok()?;
    Some(OperatorDecision { change, since })
}

/// A change of bans by the operator, as the node receives it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Decision(OperatorDecision),
    /// There were more changes than wait for a subscriber.
    Missed,
}

async fn receive(bans: &mut Option<broadcast::Receiver<OperatorDecision>>) -> Option<Received> {
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
    use rallypoint_lobby_proto::{Ban, BanSubject};

    fn network() -> BanSubject {
        BanSubject::network("203.0.113.0/24".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_shared_ban_is_parsed_and_garbage_is_skipped() {
        let subject = network();
        let ban = Ban { subject: subject.clone(), reason: "spam".into(), until: None };
        for (shared, change) in [
            (r#"{"put":{"network":"203.0.113.0/24","reason":"spam","until":null}}"#, BanChange::Put(ban)),
            (r#"{"lifted":{"network":"203.0.113.0/24"}}"#, BanChange::Lifted(subject)),
        ] {
            assert_eq!(serde_json::to_string(&change).unwrap(), shared);
            let value = [b"17 0 ", shared.as_bytes()].concat();
            assert_eq!(parse(&value), Some(OperatorDecision { change, since: 17 }));
        }
        let ahead = [b"9999999999999999 0 ", &*serde_json::to_vec(&BanChange::Lifted(network())).unwrap()].concat();
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
        let decision = |since| OperatorDecision { change: BanChange::Lifted(network()), since };
        (0..5).for_each(|since| drop(sender.send(decision(since))));
        assert_eq!(receive(&mut bans).await, Some(Received::Missed));
        assert_eq!(receive(&mut bans).await, Some(Received::Decision(decision(3))));
        drop(sender);
        assert_eq!(receive(&mut bans).await, Some(Received::Decision(decision(4))));
        assert_eq!(receive(&mut bans).await, None);
    }
}
