//! The state of a cluster as the store shows it, for the operator.

mod problem;

use super::{
    BAN, ENTRY, LEASE, LOG, META, NODE, REQUEST_TIMEOUT, StoreClient, StoreConnection, error, replies, store_error,
};
use crate::{StoreError, StoreErrorKind, clock::milliseconds, report::ReportedNode, reported_nodes};
use problem::find_problem;
use redis::{Cmd, Value};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Number of losses of contact in ten minutes that make a node unstable: a failover is one.
const MANY_OUTAGES: u32 = 3;

/// Fields that the metadata of a cluster has.
const META_FIELDS: [&str; 5] = ["format", "seq", "secret", "epoch", "token"];

/// The state of a cluster as its store shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreStatus {
    /// The store, without its password.
    pub store: String,
    /// Whether the store answers, and accepts the user and the password.
    pub is_reachable: bool,
    /// Whether it accepts changes; `None` if the user has no right to make any.
    pub is_writable: Option<bool>,
    /// The problem with the store or the cluster: one sentence.
    pub problem: Option<String>,
    /// A recommended change of the store: one sentence.
    pub warning: Option<String>,
    /// Program and version of the store, if it says so. In a Redis Cluster, this and the next four are of the master with the keys
    /// of this cluster.
    pub server: Option<String>,
    /// `master` or `slave`, if the store says so.
    pub role: Option<String>,
    /// Memory that the store uses, in bytes.
    pub used_memory: Option<u64>,
    /// Limit of that memory, in bytes; 0 if there is none.
    pub max_memory: Option<u64>,
    /// Round-trip time to the store, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Whether a cluster with this name has been set up in the store.
    pub is_set_up: bool,
    /// Fields of the metadata that the store has lost.
    pub lost_fields: Vec<&'static str>,
    /// Version of the layout of the store.
    pub format: Option<u32>,
    /// Number of the last change.
    pub seq: Option<u64>,
    /// Number of servers.
    pub servers: Option<u64>,
    /// Number of records in the log.
    pub log_records: Option<u64>,
    /// Number of bans, in force or lifted.
    pub bans: Option<u64>,
    /// The nodes that reported in the last hour, except those that were stopped.
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
    /// State, derived from its reports.
    pub state: NodeHealth,
    /// Time since it last reported, in milliseconds.
    pub age_ms: u64,
    /// Number of times that it lost contact with the store in the ten minutes before it reported.
    pub outages: u32,
    /// Number of changes that it had not applied when it reported.
    pub behind: u64,
    /// Number of servers that it lists.
    pub listed: u64,
    /// Its round-trip time to the store, in milliseconds.
    pub round_trip_ms: f64,
    /// Whether it has found another running node with its name.
    pub has_namesake: bool,
}

/// The state of a node, as far as its reports show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeHealth {
    /// It reported recently, and has all servers.
    Live,
    /// It reported recently, and is still reading the servers of the others.
    Loading,
    /// It reported recently, but loses contact with the store again and again.
    Unstable,
    /// It no longer reports, although it was not stopped.
    Lost,
    /// It cannot report, because the store refuses changes.
    Unknown,
}

impl NodeHealth {
    fn of(node: &ReportedNode, is_writable: Option<bool>) -> Self {
        match node.is_live() {
            true if node.report.outages >= MANY_OUTAGES => Self::Unstable,
            true if node.report.is_loading => Self::Loading,
            true => Self::Live,
            false if is_writable == Some(false) => Self::Unknown,
            false => Self::Lost,
        }
    }

    /// Whether it reported recently.
    #[must_use]
    pub fn is_reporting(self) -> bool {
        matches!(self, Self::Live | Self::Loading | Self::Unstable)
    }
}

/// Whether the store accepts changes.
enum WriteAccess {
    Accepted,
    Refused(StoreError),
    /// The user has no right to make any.
    NoRight,
}

impl StoreClient {
    /// Reads the state of the cluster and of its store. Nothing is changed. If the store cannot be reached or used, that is the
    /// [`problem`](StoreStatus::problem), and the other fields have what could be read.
    pub async fn status(&self) -> StoreStatus {
        let mut status = StoreStatus { store: self.connector.url().to_string(), ..StoreStatus::default() };
        let result = self.read_status(&mut status).await;
        status.problem = match result {
            Ok(()) => find_problem(&status, &self.keys.all[META]),
            Err(error) => Some(error.message),
        };
        status
    }

    async fn read_status(&self, status: &mut StoreStatus) -> Result<(), StoreError> {
        // Without the scripts of the nodes: a user who may only read can ask for the state.
        let mut connection = self.connector.connect().await?;
        let connection = &mut connection;
        let sent = Instant::now();
        let now = self.store_time(connection).await?;
        status.round_trip_ms = Some(sent.elapsed().as_secs_f64() * 1_000.0);
        status.is_reachable = true;
        // A user without the right to read it gets everything else.
        let info = self.info(connection).await?.unwrap_or_default();
        status.warning = info.eviction_warning();
        status.server = info.server;
        status.role = info.role;
        status.used_memory = info.used_memory;
        status.max_memory = info.max_memory;
        let foreign = self.find_foreign_key(connection).await?;
        let result = self.read_content(connection, status, now).await;
        foreign.map_or(result, Err)
    }

    /// Reads what the nodes have written.
    async fn read_content(
        &self,
        connection: &mut StoreConnection,
        status: &mut StoreStatus,
        now: u64,
    ) -> Result<(), StoreError> {
        self.read_meta(connection, status).await?;
        status.servers = Some(self.count(connection, "HLEN", ENTRY).await?);
        status.log_records = Some(self.count(connection, "XLEN", LOG).await?);
        let access = self.write_access(connection).await?;
        status.is_writable = match access {
            WriteAccess::Accepted => Some(true),
            WriteAccess::Refused(_) => Some(false),
            WriteAccess::NoRight => None,
        };
        let mut command = redis::cmd("HGETALL");
        command.arg(&self.keys.all[NODE]);
        let rows: Value = self.read(connection, &command).await?;
        status.nodes = reported_nodes(&replies::node_rows(rows), now)
            .into_iter()
            .map(|node| StoreNode {
                state: NodeHealth::of(&node, status.is_writable),
                age_ms: milliseconds(node.age),
                name: node.report.name,
                version: node.report.version,
                format: node.report.format,
                outages: node.report.outages,
                behind: node.report.behind,
                listed: node.report.listed,
                round_trip_ms: node.report.round_trip_us as f64 / 1_000.0,
                has_namesake: node.report.has_namesake,
            })
            .collect();
        status.bans = Some(self.count(connection, "HLEN", BAN).await?);
        match access {
            WriteAccess::Refused(error) => Err(error),
            WriteAccess::Accepted | WriteAccess::NoRight => Ok(()),
        }
    }

    /// The store's time in milliseconds.
    async fn store_time(&self, connection: &mut StoreConnection) -> Result<u64, StoreError> {
        let url = self.connector.url();
        let time = connection.query_at(&self.keys.all[META], redis::cmd("TIME"));
        let time = tokio::time::timeout(REQUEST_TIMEOUT, time).await.map_err(|_| error::timeout(url))?;
        let time: Result<Vec<u64>, _> = time.and_then(|time| Ok(redis::from_redis_value(time)?));
        let time = time.map_err(|error| store_error(url, &error))?;
        let part = |index: usize| time.get(index).copied().unwrap_or(0);
        Ok(part(0).saturating_mul(1_000).saturating_add(part(1) / 1_000))
    }

    async fn read_meta(&self, connection: &mut StoreConnection, status: &mut StoreStatus) -> Result<(), StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(&self.keys.all[META]).arg(&META_FIELDS);
        let fields: Vec<Option<Vec<u8>>> = self.read(connection, &command).await?;
        let number = |index: usize| {
            let bytes = fields.get(index)?.as_deref()?;
            std::str::from_utf8(bytes).ok()?.parse::<u64>().ok()
        };
        status.is_set_up = fields.iter().any(Option::is_some);
        status.format = number(0).map(|format| format.try_into().unwrap_or(u32::MAX));
        status.seq = number(1);
        if status.is_set_up {
            let lost = META_FIELDS.iter().zip(&fields).filter(|(_, value)| value.is_none());
            status.lost_fields = lost.map(|(name, _)| *name).collect();
        }
        Ok(())
    }

    /// Whether the store accepts changes. Nothing is changed: the command is about a lease that never exists.
    async fn write_access(&self, connection: &mut StoreConnection) -> Result<WriteAccess, StoreError> {
        let mut command = redis::cmd("ZADD");
        command.arg(&self.keys.all[LEASE]).arg("XX").arg(0).arg("status");
        match self.read::<Value>(connection, &command).await {
            Ok(_) => Ok(WriteAccess::Accepted),
            Err(error) if error.kind == StoreErrorKind::ReadOnly => Ok(WriteAccess::Refused(error)),
            Err(error) if error.kind == StoreErrorKind::Rejected => Ok(WriteAccess::NoRight),
            Err(error) => Err(error),
        }
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
