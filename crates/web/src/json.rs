//! A server as JSON.
//!
//! The keys are those of gamedig where it has an equivalent field, so that programs written for gamedig can use the API.

use crate::words::{Difference, Origin, SessionKey, Transport, VerificationResult};
use bytes::Bytes;
use rallypoint_history::{UnixSeconds, export};
use rallypoint_lobby::{NodeLatency, ServerRecord};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::net::SocketAddr;
use utoipa::ToSchema;

/// A server, as in lists and events.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Server)]
pub(crate) struct ServerView<'a> {
    /// The public ID: it stays the same as long as the owner keeps the secret ID of the server.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String, pattern = "^[0-9a-f]{32}$")]
    id: rallypoint_lobby_proto::PublicId,
    /// The lobby that the server is in.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String, format = "uuid")]
    list: rallypoint_wire::lobby::ListId,
    /// The name; may be empty.
    name: &'a str,
    /// The map; null if the server does not report it.
    #[schema(required)]
    map: Option<&'a str>,
    /// Whether a password is required.
    password: bool,
    /// Number of players.
    numplayers: u16,
    /// Number of slots for players.
    maxplayers: u16,
    /// Number of bots.
    numbots: u16,
    /// The short name of the game; null if the server does not report it.
    #[schema(required)]
    game: Option<&'a str>,
    /// The full name of the game; null if the server does not report it.
    #[schema(required)]
    game_name: Option<&'a str>,
    /// The version of the game; null if the server does not report it.
    #[schema(required)]
    version: Option<&'a str>,
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
    transport: Transport,
    /// The protocol ID that clients compare to decide whether they can join.
    #[serde(serialize_with = "text_or_null")]
    #[schema(required, value_type = Option<String>, format = "uuid")]
    protocol_id: Option<rallypoint_wire::lobby::ProtocolId>,
    /// Round-trip time in milliseconds from the lobby to the server at its last reply: up to two minutes old while it is
    /// queried and replies, otherwise as old as its last check. A new value alone is not an event. Null if it was never measured.
    #[schema(required)]
    ping: Option<u64>,
    /// Round-trip time in milliseconds from each node of a cluster to the server, by the name of the node: measured about every
    /// five minutes. Null without a cluster, and if no node can measure it.
    #[schema(required, value_type = Option<HashMap<String, u64>>, example = json!({"eu": 12, "us-east": 95}))]
    pings: Pings<'a>,
    /// Time of the first registration.
    #[serde(serialize_with = "time")]
    #[schema(value_type = String, format = "date-time")]
    since: u64,
    /// How the server came into the list: it registered, it announced itself and replied to a query, or the operator watches
    /// it.
    origin: Origin,
    /// The door through which the server came, such as `lobby`, `legacy` or `bloodmasters`; null if the operator watches it.
    #[schema(required)]
    door: Option<&'static str>,
    /// The result of verification by a query.
    verified: VerificationResult,
    /// The fields in which the reply differs from the registration; empty unless `verified` is `differs`.
    differs: Vec<Difference>,
    /// Whether the server has proved to the lobby that it holds the key that it states as `x-session-key`; null if it states
    /// none.
    #[schema(required)]
    session_key: Option<SessionKey>,
    /// Everything that the server sent, as text.
    #[schema(value_type = HashMap<String, String>)]
    raw: Table<'a>,
}

/// Address and port of each address family.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct Addresses {
    #[schema(value_type = Option<String>, required)]
    ipv4: Option<SocketAddr>,
    #[schema(value_type = Option<String>, required)]
    ipv6: Option<SocketAddr>,
}

#[derive(Debug)]
struct Table<'a>(&'a ServerRecord);

impl PartialEq for Table<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.table() == other.0.table()
    }
}

/// Latencies by node.
#[derive(Debug, PartialEq)]
struct Pings<'a>(&'a [NodeLatency]);

impl Serialize for Pings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            return serializer.serialize_none();
        }
        serializer.collect_map(self.0.iter().map(|latency| (&*latency.node, latency.ms())))
    }
}

/// A server as JSON. It is written once per record, for the first reader, unless it is unusually large.
pub(crate) fn server(record: &ServerRecord) -> Bytes {
    record.encoded(|record| serde_json::to_vec(&ServerView::new(record)).unwrap_or_else(|_| b"null".to_vec()).into())
}

/// Writes what has changed between two records of a server: its ID and list, and the fields whose values differ.
pub(crate) fn write_changes(before: &ServerRecord, after: &ServerRecord, out: &mut Vec<u8>) {
    let changes = Changes { before: ServerView::new(before), after: ServerView::new(after) };
    // Writing to memory does not fail, and all keys are strings.
    let _ = serde_json::to_writer(out, &changes);
}

/// The fields of a server that differ from an earlier view of it.
struct Changes<'a> {
    before: ServerView<'a>,
    after: ServerView<'a>,
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without `..`, so that a new field cannot be forgotten here.
        let ServerView {
            id,
            list,
            name,
            map,
            password,
            numplayers,
            maxplayers,
            numbots,
            game,
            game_name,
            version,
            website,
            connect,
            addresses,
            transport,
            protocol_id,
            ping,
            pings,
            since,
            origin,
            door,
            verified,
            differs,
            session_key,
            raw,
        } = &self.after;
        let mut map_of_changes = serializer.serialize_map(None)?;
        map_of_changes.serialize_entry("id", &id.to_string())?;
        map_of_changes.serialize_entry("list", &list.to_string())?;
        macro_rules! write_changed {
            ($($field:ident),*) => {
                $(if *$field != self.before.$field {
                    map_of_changes.serialize_entry(stringify!($field), $field)?;
                })*
            };
        }
        write_changed!(
            name, map, password, numplayers, maxplayers, numbots, game, game_name, version, website, connect
        );
        write_changed!(addresses, transport, ping, pings, origin, door, verified, differs, session_key, raw);
        if *protocol_id != self.before.protocol_id {
            map_of_changes.serialize_entry("protocol_id", &protocol_id.map(|id| id.to_string()))?;
        }
        if *since != self.before.since {
            map_of_changes.serialize_entry("since", &export::rfc3339(*since as UnixSeconds))?;
        }
        map_of_changes.end()
    }
}

/// A text; `None` if the server has not sent it.
fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

impl<'a> ServerView<'a> {
    /// The view of a record.
    pub fn new(record: &'a ServerRecord) -> Self {
        Self {
            id: record.id,
            list: record.list,
            name: &record.name,
            map: known(&record.map),
            password: record.password,
            numplayers: record.players,
            maxplayers: record.slots,
            numbots: record.bots,
            game: known(&record.game),
            game_name: known(&record.game_name),
            version: known(&record.version),
            website: record.website.as_deref(),
            connect: record.addresses().next(),
            addresses: Addresses { ipv4: record.v4.map(SocketAddr::V4), ipv6: record.v6.map(SocketAddr::V6) },
            transport: record.transport.into(),
            protocol_id: record.protocol_id,
            ping: record.latency_ms(),
            pings: Pings(record.node_latencies()),
            since: record.since,
            origin: record.origin.into(),
            door: record.door.map(|door| door.name),
            verified: record.verification.into(),
            differs: Difference::all(record.differences),
            session_key: record.session_key.map(Into::into),
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

/// A time, given in seconds since 1970, in RFC 3339 format.
pub(crate) fn time<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&export::rfc3339(*seconds as UnixSeconds))
}

/// A time in RFC 3339 format, or null.
pub(crate) fn time_or_null<S: Serializer>(seconds: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match seconds {
        Some(seconds) => time(seconds, serializer),
        None => serializer.serialize_none(),
    }
}

fn text_or_null<S: Serializer>(value: &Option<impl std::fmt::Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
