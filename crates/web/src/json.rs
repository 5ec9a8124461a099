//! A server as JSON.
//!
//! The keys are those of gamedig where it has an equivalent field, so that programs written for gamedig can use the API.

use crate::api::schema::{DifferenceName, OriginName, SessionKeyName, TransportName, VerificationName};
use bytes::Bytes;
use rallypoint_lobby::{ServerRecord, SessionKeyStatus};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::net::SocketAddr;
use utoipa::ToSchema;

/// Names of fields.
type Names = Vec<&'static str>;

/// A server, as in lists and events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
pub(crate) struct ServerView<'a> {
    /// The public ID: it stays the same as long as the owner keeps the secret ID of the server.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String, pattern = "^[0-9a-f]{32}$")]
    id: rallypoint_lobby_proto::PublicId,
    /// The lobby that the server is in.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String, format = "uuid")]
    lobby: rallypoint_wire::lobby::LobbyId,
    /// The name; may be empty.
    name: &'a str,
    /// The map; empty if the server does not report it.
    map: &'a str,
    /// Whether a password is required.
    password: bool,
    /// Number of players.
    numplayers: u16,
    /// Number of slots for players.
    maxplayers: u16,
    /// Number of bots.
    numbots: u16,
    /// The short name of the game.
    game: &'a str,
    /// The full name of the game.
    game_name: &'a str,
    /// The version of the game.
    version: &'a str,
    /// A link of the server's choice, http or https. It is not checked.
    #[schema(required)]
    website: Option<&'a str>,
    /// Address and port to connect to: IPv4 if there is one.
    #[schema(required, value_type = Option<String>)]
    connect: Option<SocketAddr>,
    /// Address and port of each address family.
    #[schema(inline)]
    addresses: Addresses,
    /// The transport protocol of the game.
    #[schema(value_type = TransportName)]
    transport: &'static str,
    /// The protocol ID that clients compare to decide whether they can join.
    #[serde(serialize_with = "text_or_null")]
    #[schema(required, value_type = Option<String>, format = "uuid")]
    protocol_id: Option<rallypoint_wire::lobby::ProtocolId>,
    /// Round-trip time in milliseconds from the lobby to the server at its last reply: up to two minutes old while it is
    /// queried and replies, otherwise as old as its last check. A new value alone is not an event. Null if it was never measured.
    #[schema(required)]
    ping: Option<u64>,
    /// Time of the first registration, in seconds since 1970.
    since: u64,
    /// How the server came into the list: it registered, it announced itself (to the Bloodmasters master list), or the operator
    /// watches it.
    #[schema(value_type = OriginName)]
    origin: &'static str,
    /// The result of verification by a query.
    #[schema(value_type = VerificationName)]
    verified: &'static str,
    /// The fields in which the reply differs from the registration; only present if `verified` is `differs`.
    #[serde(skip_serializing_if = "Names::is_empty")]
    #[schema(required = false, value_type = Vec<DifferenceName>)]
    differs: Names,
    /// Whether the server has proved to the lobby that it holds the key that it states as `x-session-key`: `verified` or
    /// `unverified`; absent if it states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = SessionKeyName)]
    session_key: Option<&'static str>,
    /// Everything that the server sent, as text.
    #[schema(value_type = HashMap<String, String>)]
    raw: Table<'a>,
}

/// Address and port of each address family.
#[derive(Debug, Serialize, ToSchema)]
struct Addresses {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    ipv4: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    ipv6: Option<SocketAddr>,
}

#[derive(Debug)]
struct Table<'a>(&'a ServerRecord);

/// A server as JSON. It is written once per record, for the first reader, unless it is unusually large.
pub(crate) fn server(record: &ServerRecord) -> Bytes {
    record.encoded(|record| serde_json::to_vec(&ServerView::new(record)).unwrap_or_else(|_| b"null".to_vec()).into())
}

impl<'a> ServerView<'a> {
    /// The view of a record.
    pub fn new(record: &'a ServerRecord) -> Self {
        Self {
            id: record.id,
            lobby: record.lobby,
            name: &record.name,
            map: &record.map,
            password: record.password,
            numplayers: record.players,
            maxplayers: record.slots,
            numbots: record.bots,
            game: &record.game,
            game_name: &record.game_name,
            version: &record.version,
            website: record.website.as_deref(),
            connect: record.addresses().next(),
            addresses: Addresses { ipv4: record.v4.map(SocketAddr::V4), ipv6: record.v6.map(SocketAddr::V6) },
            transport: record.transport_code(),
            protocol_id: record.protocol_id,
            ping: record.latency_ms(),
            since: record.since,
            origin: record.origin.code(),
            verified: record.verification.code(),
            differs: record.differences.names().collect(),
            session_key: record.session_key.map(SessionKeyStatus::code),
            raw: Table(record),
        }
    }
}

impl Serialize for Table<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entries = self.0.table();
        // Two keys that differ as bytes can be the same text; a JSON object has each key once.
        let mut seen = std::collections::HashSet::new();
        entries.retain(|(key, _)| seen.insert(key.clone()));
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        for (key, value) in &entries {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

pub(crate) fn text<S: Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn text_or_null<S: Serializer>(value: &Option<impl std::fmt::Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
