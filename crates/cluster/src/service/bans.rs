//! Bans of operators as the nodes share them.
//!
//! The value in the store is the time of the decision in milliseconds since 1970, a space, and the ban in JSON; a ban that was
//! lifted stays there as such, so that a node that was away learns of it.

use crate::ClusterNode;
use rallypoint_lobby::{AdminRecord, BanChange};
use rallypoint_lobby_proto::{Ban, BanSubject};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SharedBan {
    Put(Ban),
    Lifted(BanSubject),
}

/// Hands a change of this node's operator to the other nodes.
pub(super) fn share(node: &mut ClusterNode, change: &BanChange) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    share_since(node, change, u64::try_from(since).unwrap_or(u64::MAX));
}

/// Hands all bans of this node to the others, which have most of them.
pub(super) fn share_all(node: &mut ClusterNode, record: &AdminRecord) {
    for stored in &record.bans {
        share_since(node, &BanChange::Put(stored.ban.clone()), stored.since.saturating_mul(1_000));
    }
}

fn share_since(node: &mut ClusterNode, change: &BanChange, since: u64) {
    let (subject, shared) = match change {
        BanChange::Put(ban) => (&ban.subject, SharedBan::Put(ban.clone())),
        BanChange::Lifted(subject) => (subject, SharedBan::Lifted(subject.clone())),
    };
    if let Ok(value) = serde_json::to_vec(&shared) {
        node.handle_ban(subject.to_string().into_bytes(), value, since);
    }
}

/// Parses a value of the store; anything else is skipped.
pub(super) fn parse(value: &[u8]) -> Option<BanChange> {
    let split = value.iter().position(|byte| *byte == b' ')?;
    match serde_json::from_slice(&value[split + 1..]).ok()? {
        SharedBan::Put(ban) => Some(BanChange::Put(ban)),
        SharedBan::Lifted(subject) => Some(BanChange::Lifted(subject)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_ban_is_parsed_and_garbage_is_skipped() {
        let subject = BanSubject::network("203.0.113.0/24".parse().unwrap()).unwrap();
        let ban = Ban { subject: subject.clone(), reason: "spam".into(), until: None };
        for (shared, change) in [
            (SharedBan::Put(ban.clone()), BanChange::Put(ban)),
            (SharedBan::Lifted(subject.clone()), BanChange::Lifted(subject)),
        ] {
            let value = [b"17 ", &*serde_json::to_vec(&shared).unwrap()].concat();
            assert_eq!(parse(&value), Some(change));
        }
        for garbage in [&b""[..], b"17", b"17 ", b"17 {}", b"17 {\"put\":{}}", b"\xff \xff"] {
            assert_eq!(parse(garbage), None);
        }
    }
}
