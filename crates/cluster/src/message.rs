//! Messages between nodes besides changes: reports of probes, and requests with their responses.
//!
//! A message is an entry of the stream `msg`, in JSON. It is kept for some minutes, so that a node that joins learns what the
//! others found out before. Nothing is lost for good with a message: reports are repeated.

use crate::MalformedRecord;
use rallypoint_lobby::{Differences, FailedCheckAge, NodeLatency, NodeOutcome, Verification, VerificationResult};
use rallypoint_lobby_proto::PublicId;
use rallypoint_query_proto::{Player, ServerInfo, Team};
use rallypoint_wire::text::sanitize;
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// Maximum size of a message in bytes; longer ones are not parsed.
pub(crate) const MAX_MESSAGE: usize = 512 << 10;

/// Maximum number of latencies in a message, and of results.
pub(crate) const MAX_LATENCIES: usize = 1_000;
pub(crate) const MAX_RESULTS: usize = 100;

/// Size in bytes from which a message has no further results. A result has up to 150 kB.
pub(crate) const RESULTS_SIZE: usize = 256 << 10;

/// Maximum number of players and teams of a server, and of outcomes of an address.
const MAX_PLAYERS: usize = 255;
const MAX_TEAMS: usize = 32;
const MAX_OUTCOMES: usize = 16;

/// Maximum length of a text in characters.
const MAX_NAME: usize = 64;
const MAX_OUTCOME_TEXT: usize = 500;

/// A message of a node to all others.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Number of the node that sent it.
    pub from: u64,
    /// Its name.
    pub name: String,
    #[serde(flatten)]
    pub body: Body,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// Latencies between the node and servers, in microseconds.
    Latencies(Vec<(String, u32)>),
    /// Results of probes.
    Results(Vec<SharedResult>),
    /// Which outcomes registrations from an address had.
    #[serde(rename = "question")]
    OutcomesRequest { number: u64, address: IpAddr },
    /// The response.
    #[serde(rename = "answer")]
    OutcomesResponse { number: u64, outcomes: Vec<SharedOutcome> },
}

impl Body {
    /// Names of the variants in JSON. Those of requests and responses are the ones that earlier versions understand.
    const KINDS: [&str; 4] = ["latencies", "results", "question", "answer"];
}

/// A [`VerificationResult`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SharedResult {
    id: String,
    verified: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    differs: Vec<String>,
    /// The address in the list at which it replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<SocketAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    players: Option<Vec<SharedPlayer>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    teams: Vec<(u8, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SharedPlayer {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    team: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ping: Option<i32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    spectator: bool,
}

/// A [`NodeOutcome`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SharedOutcome {
    code: String,
    text: String,
    port: Option<u16>,
    listed: bool,
    refused: bool,
    times: u32,
    age_ms: u64,
    /// Age of the failed check, and the time until a registration causes another one, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_check_ms: Option<(u64, u64)>,
}

impl Message {
    pub fn emit(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses a message; `Ok(None)` if it is of a kind that only later versions have.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, MalformedRecord> {
        if bytes.len() > MAX_MESSAGE {
            return Err(MalformedRecord);
        }
        let fields: serde_json::Map<_, _> = serde_json::from_slice(bytes).map_err(|_| MalformedRecord)?;
        let name = fields.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        if !crate::is_valid_name(name) {
            return Err(MalformedRecord);
        }
        if !Body::KINDS.iter().any(|kind| fields.contains_key(*kind)) {
            return Ok(None);
        }
        serde_json::from_value(fields.into()).map(Some).map_err(|_| MalformedRecord)
    }
}

/// Latencies that a node has measured; those that are not valid are skipped.
pub(crate) fn latencies(node: &Arc<str>, shared: Vec<(String, u32)>) -> Vec<(PublicId, NodeLatency)> {
    let latency = |(id, us): (String, u32)| {
        let latency = Duration::from_micros(u64::from(us));
        Some((id.parse().ok()?, NodeLatency { node: Arc::clone(node), latency }))
    };
    shared.into_iter().take(MAX_LATENCIES).filter_map(latency).collect()
}

impl SharedResult {
    pub fn new(result: &VerificationResult) -> Self {
        let info = result.info.as_deref();
        let player = |player: &Player| SharedPlayer {
            name: shorten(&player.name, MAX_NAME),
            team: player.team,
            ping: player.ping_ms,
            spectator: player.spectator,
        };
        let players = info.and_then(|info| info.player_list.as_ref());
        Self {
            id: result.id.to_string(),
            verified: result.verification.code().into(),
            differs: result.differences.names().map(Into::into).collect(),
            at: result.replied_at,
            key: result.proven_key.map(|key| key.to_string()),
            players: players.map(|players| players.iter().take(MAX_PLAYERS).map(player).collect()),
            teams: info
                .map(|info| {
                    let teams = info.teams.iter().take(MAX_TEAMS);
                    teams.map(|team| (team.id, shorten(&team.name, MAX_NAME))).collect()
                })
                .unwrap_or_default(),
        }
    }

    /// The result; `None` if it is not valid. Whatever the store has, its texts can be displayed.
    pub fn result(self) -> Option<VerificationResult> {
        let verification = Verification::ALL.into_iter().find(|known| known.code() == self.verified)?;
        let player = |player: SharedPlayer| Player {
            name: shorten(&player.name, MAX_NAME),
            team: player.team,
            ping_ms: player.ping,
            spectator: player.spectator,
            ..Player::default()
        };
        let team = |(id, name): (u8, String)| Team { id, name: shorten(&name, MAX_NAME), ..Team::default() };
        let info = self.players.map(|players| ServerInfo {
            player_list: Some(players.into_iter().take(MAX_PLAYERS).map(player).collect()),
            teams: self.teams.into_iter().take(MAX_TEAMS).map(team).collect(),
            ..ServerInfo::default()
        });
        Some(VerificationResult {
            differences: Differences::from_names(self.differs.iter().map(String::as_str)),
            info: info.map(Arc::new),
            replied_at: self.at,
            proven_key: self.key.and_then(|key| key.parse().ok()),
            ..VerificationResult::new(self.id.parse().ok()?, verification)
        })
    }
}

impl SharedOutcome {
    pub fn new(outcome: &NodeOutcome) -> Self {
        Self {
            code: outcome.code.into(),
            text: outcome.text.clone(),
            port: outcome.port,
            listed: outcome.is_listed,
            refused: outcome.is_refusal,
            times: outcome.times,
            age_ms: crate::clock::milliseconds(outcome.age),
            failed_check_ms: outcome.failed_check.map(|FailedCheckAge { age, repeatable_in }| {
                (crate::clock::milliseconds(age), crate::clock::milliseconds(repeatable_in))
            }),
        }
    }

    /// The outcomes of a node; those that are not valid are skipped.
    pub fn outcomes(node: &Arc<str>, shared: Vec<Self>) -> Vec<NodeOutcome> {
        let outcome = |shared: Self| {
            Some(NodeOutcome {
                node: Some(Arc::clone(node)),
                code: NodeOutcome::known_code(&shared.code)?,
                text: shorten(&shared.text, MAX_OUTCOME_TEXT),
                port: shared.port,
                is_listed: shared.listed,
                is_refusal: shared.refused,
                times: shared.times,
                age: Duration::from_millis(shared.age_ms),
                failed_check: shared.failed_check_ms.map(|(age, repeatable_in)| FailedCheckAge {
                    age: Duration::from_millis(age),
                    repeatable_in: Duration::from_millis(repeatable_in),
                }),
            })
        };
        shared.into_iter().take(MAX_OUTCOMES).filter_map(outcome).collect()
    }
}

fn shorten(text: &str, longest: usize) -> String {
    sanitize(text).chars().take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(body: Body) -> Message {
        Message::parse(&Message { from: 7, name: "eu-1".into(), body }.emit()).unwrap().unwrap()
    }

    #[test]
    fn a_result_survives() {
        let player = Player { name: "Ann\u{1b}[31m".into(), team: Some(1), ping_ms: Some(30), ..Player::default() };
        let info = ServerInfo {
            player_list: Some(vec![player]),
            teams: vec![Team { id: 1, name: "red".into(), ..Team::default() }],
            ..ServerInfo::default()
        };
        let id = PublicId::from_bytes([9; 16]);
        let result = VerificationResult {
            differences: Differences { players: true, map: true, ..Differences::default() },
            info: Some(Arc::new(info)),
            replied_at: Some("[2001:db8::9]:8190".parse().unwrap()),
            proven_key: Some("0f".repeat(32).parse().unwrap()),
            ..VerificationResult::new(id, Verification::Differs)
        };
        let Body::Results(mut shared) = round_trip(Body::Results(vec![SharedResult::new(&result)])).body else {
            panic!("another message")
        };
        let back = shared.remove(0).result().unwrap();
        assert_eq!((back.id, back.verification, back.differences), (id, result.verification, result.differences));
        assert_eq!((back.replied_at, back.proven_key), (result.replied_at, result.proven_key));
        let info = back.info.unwrap();
        let players = info.player_list.as_deref().unwrap();
        assert!(!players[0].name.contains('\u{1b}'), "texts are harmless");
        assert_eq!((players[0].ping_ms, info.team_name(1)), (Some(30), Some("red")));
    }

    #[test]
    fn latencies_and_outcomes_survive_and_garbage_is_skipped() {
        let id = PublicId::from_bytes([9; 16]);
        let body = Body::Latencies(vec![(id.to_string(), 12_345), ("x".into(), 1)]);
        let Body::Latencies(shared) = round_trip(body).body else { panic!("another message") };
        let node: Arc<str> = "eu-1".into();
        let latency = Duration::from_micros(12_345);
        assert_eq!(latencies(&node, shared), [(id, NodeLatency { node: node.clone(), latency })]);
        let outcome = NodeOutcome {
            node: Some(node.clone()),
            code: "banned",
            text: "banned (spam)".into(),
            port: Some(8190),
            is_listed: false,
            is_refusal: true,
            times: 3,
            age: Duration::from_secs(5),
            failed_check: Some(FailedCheckAge { age: Duration::from_secs(12), repeatable_in: Duration::from_secs(8) }),
        };
        let unknown = SharedOutcome { code: "later".into(), ..SharedOutcome::new(&outcome) };
        let body = Body::OutcomesResponse { number: 3, outcomes: vec![unknown, SharedOutcome::new(&outcome)] };
        let Body::OutcomesResponse { number: 3, outcomes } = round_trip(body).body else { panic!("another message") };
        assert_eq!(SharedOutcome::outcomes(&node, outcomes), [outcome]);
        for garbage in [&b""[..], b"{}", b"[]", b"\xff", br#"{"from":1,"name":"a b","latencies":[]}"#] {
            assert!(Message::parse(garbage).is_err());
        }
        assert!(Message::parse(&vec![b' '; MAX_MESSAGE + 1]).is_err());
    }

    #[test]
    fn fields_and_kinds_of_later_versions_are_ignored() {
        let known =
            br#"{"from":1,"name":"a","at":5,"question":{"number":2,"address":"192.0.2.1","port":7},"later":[]}"#;
        let message = Message::parse(known).unwrap().unwrap();
        assert!(matches!(message.body, Body::OutcomesRequest { number: 2, .. }));
        assert!(matches!(Message::parse(br#"{"from":1,"name":"a","later":{"x":[1]}}"#), Ok(None)));
    }
}
