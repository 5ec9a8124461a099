//! A server as JSON.
//!
//! The keys are gamedig's where it has one for the same thing: programs that were written for it find what they look for.

use bytes::Bytes;
use rallypoint_lobby::ServerRecord;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::net::SocketAddr;

/// The names of fields.
type Names = Vec<&'static str>;

/// A server as lists and events have it.
#[derive(Debug, Serialize)]
pub(crate) struct ServerView<'a> {
    #[serde(serialize_with = "text")]
    id: rallypoint_lobby_proto::PublicId,
    #[serde(serialize_with = "text")]
    lobby: rallypoint_wire::lobby::LobbyId,
    name: &'a str,
    map: &'a str,
    password: bool,
    numplayers: u16,
    maxplayers: u16,
    numbots: u16,
    game: &'a str,
    game_name: &'a str,
    version: &'a str,
    website: Option<&'a str>,
    /// What a player types: IPv4 if there is one.
    connect: Option<SocketAddr>,
    addresses: Addresses,
    transport: &'static str,
    #[serde(serialize_with = "text_or_null")]
    protocol_id: Option<rallypoint_wire::lobby::ProtocolId>,
    /// In whole milliseconds.
    ping: Option<u64>,
    /// In seconds since 1970.
    since: u64,
    origin: &'static str,
    verified: &'static str,
    #[serde(skip_serializing_if = "Names::is_empty")]
    differs: Names,
    raw: Table<'a>,
}

#[derive(Debug, Serialize)]
struct Addresses {
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv4: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv6: Option<SocketAddr>,
}

#[derive(Debug)]
struct Table<'a>(&'a ServerRecord);

/// A server as JSON. It is written once per record, for the first reader.
pub(crate) fn server(record: &ServerRecord) -> &Bytes {
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
            raw: Table(record),
        }
    }
}

impl Serialize for Table<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entries = self.0.table();
        // Two keys that differ as bytes can look the same; JSON wants each once.
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
