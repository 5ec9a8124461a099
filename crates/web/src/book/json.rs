//! A server as JSON.
//!
//! The keys are gamedig's where it has one for the same thing: programs that were written for it find what they look for.

use super::Row;
use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::net::SocketAddr;

/// The names of fields.
type Names = Vec<&'static str>;

/// A server as lists and events have it.
#[derive(Debug, Serialize)]
pub struct ServerView<'a> {
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
struct Table<'a>(&'a Row);

impl Row {
    /// This server as JSON. It is written once, for whoever asks first.
    pub fn json(&self) -> &Bytes {
        self.json.get_or_init(|| serde_json::to_vec(&self.view()).unwrap_or_else(|_| b"null".to_vec()).into())
    }

    /// What is written as JSON.
    #[must_use]
    pub fn view(&self) -> ServerView<'_> {
        ServerView {
            id: self.id,
            lobby: self.lobby,
            name: &self.name,
            map: &self.map,
            password: self.password,
            numplayers: self.players,
            maxplayers: self.slots,
            numbots: self.bots,
            game: &self.game,
            game_name: &self.game_name,
            version: &self.version,
            website: self.website.as_deref(),
            connect: self.addresses().next(),
            addresses: Addresses { ipv4: self.v4.map(SocketAddr::V4), ipv6: self.v6.map(SocketAddr::V6) },
            transport: self.transport_code(),
            protocol_id: self.protocol_id,
            ping: self.latency.map(|latency| (latency.as_micros() as u64).div_ceil(1_000)),
            since: self.since,
            origin: self.origin.code(),
            verified: self.verified.code(),
            differs: self.differences.names().collect(),
            raw: Table(self),
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
