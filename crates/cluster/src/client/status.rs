//! The state of a cluster as the store shows it, for the operator.

use super::{BAN, ENTRY, LOG, REQUEST_TIMEOUT, StoreClient, StoreConnection, error, replies, store_error};
use crate::{StoreError, clock::milliseconds, reported_nodes};
use redis::{Cmd, Value};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The state of a cluster as its store shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreStatus {
    /// The store, without its password.
    pub store: String,
    /// Program and version of the store, if it says so.
    pub server: Option<String>,
    /// `master` or `slave`, if the store says so.
    pub role: Option<String>,
    /// Memory that the store uses, in bytes.
    pub used_memory: Option<u64>,
    /// Round-trip time to the store, in milliseconds.
    pub round_trip_ms: f64,
    /// Whether a cluster with this name has been set up in the store.
    pub is_set_up: bool,
    /// Version of the layout of the store.
    pub format: Option<u32>,
    /// Number of the last change.
    pub seq: u64,
    /// Number of servers.
    pub servers: u64,
    /// Number of records in the log.
    pub log_records: u64,
    /// Number of bans, in force or lifted.
    pub bans: u64,
    /// The nodes that reported in the last hour.
    pub nodes: Vec<StoreNode>,
}

/// A node as it reported itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreNode {
    /// Its name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// The latest layout of the store that it knows; 0 if it does not say so.
    pub format: u32,
    /// Whether it reported recently.
    pub is_live: bool,
    /// Time since it last reported, in milliseconds.
    pub age_ms: u64,
    /// Number of changes that it had not applied when it reported.
    pub behind: u64,
    /// Number of servers that it lists.
    pub listed: u64,
    /// Its round-trip time to the store, in milliseconds.
    pub round_trip_ms: f64,
}

impl StoreClient {
    /// Reads the state of the cluster. Nothing is changed.
    pub async fn status(&self, connection: &mut StoreConnection) -> Result<StoreStatus, StoreError> {
        let sent = Instant::now();
        let time: Vec<u64> = self.read(connection, &redis::cmd("TIME")).await?;
        let round_trip = sent.elapsed();
        let now = time.first().copied().unwrap_or(0) * 1_000 + time.get(1).copied().unwrap_or(0) / 1_000;
        let mut command = redis::cmd("HMGET");
        command.arg(&self.keys.all[0]).arg("format").arg("seq");
        let meta: Vec<Option<u64>> = self.read(connection, &command).await?;
        let servers = self.count(connection, "HLEN", ENTRY).await?;
        let log_records = self.count(connection, "XLEN", LOG).await?;
        let bans = self.count(connection, "HLEN", BAN).await?;
        let mut command = redis::cmd("HGETALL");
        command.arg(&self.keys.all[super::NODE]);
        let rows: Value = self.read(connection, &command).await?;
        let nodes = reported_nodes(&replies::node_rows(rows), now).into_iter().map(|node| StoreNode {
            is_live: node.is_live(),
            age_ms: milliseconds(node.age),
            name: node.report.name,
            version: node.report.version,
            format: node.report.format,
            behind: node.report.behind,
            listed: node.report.listed,
            round_trip_ms: node.report.round_trip_us as f64 / 1_000.0,
        });
        let nodes = nodes.collect();
        // A user without the right to ask gets everything else.
        let info: String = self.read::<Value>(connection, &redis::cmd("INFO")).await.map(text).unwrap_or_default();
        let field = |name: &str| {
            let rest = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            rest.map(|value| value.trim().to_owned())
        };
        let valkey = field("valkey_version").map(|version| format!("Valkey {version}"));
        Ok(StoreStatus {
            store: self.connector.url().to_string(),
            server: valkey.or_else(|| field("redis_version").map(|version| format!("Redis {version}"))),
            role: field("role"),
            used_memory: field("used_memory").and_then(|bytes| bytes.parse().ok()),
            round_trip_ms: round_trip.as_secs_f64() * 1_000.0,
            is_set_up: meta.first().is_some_and(Option::is_some),
            format: meta.first().copied().flatten().and_then(|format| format.try_into().ok()),
            seq: meta.get(1).copied().flatten().unwrap_or(0),
            servers,
            log_records,
            bans,
            nodes,
        })
    }

    async fn count(&self, connection: &mut StoreConnection, name: &str, key: usize) -> Result<u64, StoreError> {
        let mut command = redis::cmd(name);
        command.arg(&self.keys.all[key]);
        self.read(connection, &command).await
    }

    pub(super) async fn read<T: redis::FromRedisValue>(
        &self,
        connection: &mut StoreConnection,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        self.read_within(REQUEST_TIMEOUT, connection, command).await
    }

    pub(super) async fn read_within<T: redis::FromRedisValue>(
        &self,
        time: Duration,
        connection: &mut StoreConnection,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let url = self.connector.url();
        let reply = tokio::time::timeout(time, connection.query(command)).await;
        reply.map_err(|_| error::timeout(url))?.map_err(|error| store_error(url, &error))
    }
}

/// The text of INFO: one reply, or in a Redis Cluster one of each node.
fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text,
        Value::Map(replies) => replies.into_iter().next().map(|(_, reply)| text(reply)).unwrap_or_default(),
        _ => String::new(),
    }
}
