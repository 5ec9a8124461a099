//! The store itself: connections to Redis or Valkey, and the commands for each request.

mod bounded_connection;
mod bounded_stream;
mod connection;
mod error;
mod foreign_keys;
mod info;
mod messages;
mod replies;
mod scripts;
mod sentinel;
mod status;
mod tls_mismatch;

pub use connection::StoreConnection;
pub(crate) use error::store_error;
pub(crate) use messages::MessageId;
pub use status::{NodeHealth, StoreNode, StoreStatus};

use crate::{
    BanWrite, FORMAT, LeaseWrite, NAME_FORM, Reply, Request, StoreError, StoreErrorKind, StoreUrl, Write,
    clock::milliseconds,
    is_valid_name,
    record::{endpoint_bytes, transport_byte},
};
use connection::Connector;
use rallypoint_lobby_proto::PublicId;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value};
use scripts::{Script, Scripts};
use std::time::Duration;

/// Time for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the store waits for a record of the log.
const LOG_TIMEOUT: Duration = Duration::from_secs(3);

/// Number of log records per request. A record has up to 100 kB, usually 300 bytes.
const LOG_RECORDS: usize = 500;

/// Maximum number of bans that are read.
const MAX_BANS: usize = 20_000;

/// Size in bytes from which a part of a scan is complete. Fewer entries would cost a joining node more round trips (30 for 100,000
/// servers of usual size); more would make other nodes wait for the store, and the reply for a slow connection. The last step
/// of a part can add 10 MB: a hundred of the longest entries.
const SCAN_SIZE: usize = 1 << 20;

/// The store of a cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StoreClient {
    connector: Connector,
    keys: Keys,
    scripts: Scripts,
}

/// The keys of a cluster. They have one hash tag, so that they are in one slot of a Redis Cluster.
#[derive(Clone, Debug)]
struct Keys {
    prefix: String,
    /// In the order in which the scripts expect them.
    all: [String; 8],
}

const META: usize = 0;
const ENTRY: usize = 1;
const LEASE: usize = 3;
const LOG: usize = 5;
const NODE: usize = 6;
const BAN: usize = 7;

impl StoreClient {
    /// A store at this address. Clusters with different names can share one store.
    ///
    /// # Errors
    /// If the address or the name is not valid.
    pub fn new(url: &StoreUrl, name: &str) -> Result<Self, StoreError> {
        if !is_valid_name(name) {
            let message = format!("the name of the cluster must have {NAME_FORM}");
            return Err(StoreError { kind: StoreErrorKind::Rejected, message });
        }
        let prefix = format!("{{rp:{name}}}");
        let parts = ["meta", "entry", "at", "lease", "tomb", "log", "node", "ban"];
        let all = parts.map(|part| format!("{prefix}:{part}"));
        Ok(Self { connector: Connector::new(url)?, keys: Keys { prefix, all }, scripts: Scripts::new() })
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<StoreConnection, StoreError> {
        let mut connection = self.connector.connect().await?;
        self.check_version(&mut connection).await?;
        self.load_scripts(&connection).await?;
        Ok(connection)
    }

    /// Executes a request.
    pub async fn execute(&self, connection: &mut StoreConnection, request: &Request) -> Result<Reply, StoreError> {
        let wait = match request.kind() {
            crate::RequestKind::ReadLog => LOG_TIMEOUT + REQUEST_TIMEOUT,
            _ => REQUEST_TIMEOUT,
        };
        let url = self.connector.url();
        let execute = async {
            match self.try_execute(connection, request).await {
                // An operator has deleted all scripts, or a failover to a server that has none was not noticed.
                Err(error) if is_without_script(&error) => {
                    self.load_scripts(connection).await.map_err(|_| error)?;
                    self.try_execute(connection, request).await
                }
                reply => reply,
            }
        };
        let reply = tokio::time::timeout(wait, execute).await;
        let reply = reply.map_err(|_| error::timeout(url))?;
        match reply {
            Ok(reply) => reply.ok_or_else(|| error::unexpected(url)),
            Err(error) => Err(self.name_foreign_key(connection, store_error(url, &error)).await),
        }
    }

    /// Claims a reachability check for a time. Returns a valid result of another node, or that node's claim, if there is one.
    pub(crate) async fn claim(
        &self,
        connection: &mut StoreConnection,
        target: &str,
        node: u64,
        time: Duration,
    ) -> Result<Vec<u8>, StoreError> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.scripts.hash(Script::Claim)).arg(1).arg(self.check_key(target));
        command.arg(node.to_string()).arg(milliseconds(time));
        self.read(connection, &command).await
    }

    /// Publishes the result of a reachability check for a time.
    pub(crate) async fn publish_check(
        &self,
        connection: &mut StoreConnection,
        target: &str,
        result: &[u8],
        time: Duration,
    ) -> Result<(), StoreError> {
        let mut command = redis::cmd("SET");
        command.arg(self.check_key(target)).arg(result).arg("PX").arg(milliseconds(time));
        self.read(connection, &command).await
    }

    /// The key of the bans.
    pub(crate) fn ban_key(&self) -> &str {
        &self.keys.all[BAN]
    }

    fn check_key(&self, target: &str) -> String {
        format!("{}:check:{target}", self.keys.prefix)
    }

    /// Removes the report of a node that stops: it does not count as lost.
    pub(crate) async fn remove_report(&self, connection: &mut StoreConnection, node: u64) -> Result<(), StoreError> {
        let mut command = redis::cmd("HDEL");
        command.arg(&self.keys.all[NODE]).arg(node.to_string());
        self.read::<Value>(connection, &command).await.map(drop)
    }

    async fn load_scripts(&self, connection: &StoreConnection) -> Result<(), StoreError> {
        // At the same time: one after the other would take seconds with a store on another continent.
        let mut loads = tokio::task::JoinSet::new();
        for code in self.scripts.codes() {
            let (client, mut connection) = (self.clone(), connection.clone());
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(code);
            loads.spawn(async move { client.read::<Value>(&mut connection, &command).await });
        }
        while let Some(loaded) = loads.join_next().await {
            loaded.unwrap_or_else(|_| Err(error::unexpected(self.connector.url())))?;
        }
        Ok(())
    }

    /// Executes a request; `None` if the reply is not one of our scripts.
    async fn try_execute(
        &self,
        connection: &mut StoreConnection,
        request: &Request,
    ) -> Result<Option<Reply>, RedisError> {
        match request {
            Request::Open { epoch, secret_check } => {
                let mut command = self.script(Script::Open);
                command.arg(FORMAT).arg(secret_check).arg(epoch);
                Ok(replies::opened(connection.query(&command).await?))
            }
            Request::Tick { epoch, token, node, report, after } => {
                let mut command = self.script(Script::Tick);
                let report = report.as_deref().unwrap_or_default();
                command.arg(epoch).arg(token).arg(node.to_string()).arg(report).arg(after.to_string());
                Ok(replies::ticked(connection.query(&command).await?))
            }
            Request::Write { epoch, writes } => {
                let mut pipeline = redis::pipe();
                for (token, write) in writes {
                    pipeline.add_command(self.write(epoch, token, write));
                }
                Ok(replies::written(connection.query_pipeline(&pipeline).await?))
            }
            Request::Renew(leases) => self.renew(connection, leases).await.map(Some),
            Request::Fetch(ids) => {
                let mut command = self.script(Script::Fetch);
                for id in ids {
                    command.arg(id.as_bytes());
                }
                Ok(replies::fetched(connection.query(&command).await?))
            }
            Request::Scan { cursor } => self.scan(connection, *cursor).await,
            Request::Bans => {
                let mut command = self.script(Script::Bans);
                command.arg(MAX_BANS);
                Ok(replies::bans(connection.query(&command).await?))
            }
            Request::ReadLog { after } => {
                let mut command = redis::cmd("XREAD");
                command.arg("COUNT").arg(LOG_RECORDS).arg("BLOCK").arg(milliseconds(LOG_TIMEOUT));
                command.arg("STREAMS").arg(&self.keys.all[LOG]).arg(format!("{after}-0"));
                match connection.query(&command).await {
                    Err(error) if is_unblocked(&error) => Ok(replies::log(Value::Nil)),
                    reply => Ok(replies::log(reply?)),
                }
            }
        }
    }

    /// Reads a part of all entries, and deletes those that are not valid: the nodes of these servers write them again.
    async fn scan(&self, connection: &mut StoreConnection, cursor: u64) -> Result<Option<Reply>, RedisError> {
        let mut command = self.script(Script::Scan);
        command.arg(cursor.to_string()).arg(SCAN_SIZE);
        let Some(part) = replies::scanned(connection.query(&command).await?) else { return Ok(None) };
        if !part.unreadable.is_empty() {
            let mut command = self.script(Script::Discard);
            for (id, value) in &part.unreadable {
                command.arg(id).arg(value);
            }
            let _: Value = connection.query(&command).await?;
        }
        let malformed = part.deleted.saturating_add(part.unreadable.len() as u64);
        Ok(Some(Reply::Scanned { cursor: part.cursor, entries: part.entries, malformed }))
    }

    /// Renews leases. A lease that does not exist is not created: the server of it has to be written again.
    async fn renew(&self, connection: &mut StoreConnection, leases: &[LeaseWrite]) -> Result<Reply, RedisError> {
        let mut command = redis::cmd("ZADD");
        command.arg(&self.keys.all[LEASE]).arg("XX").arg("GT").arg("CH");
        for lease in leases {
            command.arg(lease.deadline).arg(&member(lease)[..]);
        }
        let changed: usize = connection.query(&command).await?;
        if changed == leases.len() {
            return Ok(Reply::Renewed(Vec::new()));
        }
        // Some do not exist, or another node has renewed them for longer.
        let mut command = redis::cmd("ZMSCORE");
        command.arg(&self.keys.all[LEASE]);
        for lease in leases {
            command.arg(&member(lease)[..]);
        }
        let scores: Vec<Value> = connection.query(&command).await?;
        let missing = leases.iter().zip(scores).filter(|(_, score)| *score == Value::Nil);
        let mut missing: Vec<PublicId> = missing.map(|(lease, _)| lease.id).collect();
        missing.dedup();
        Ok(Reply::Renewed(missing))
    }

    /// The call of a script with its keys.
    fn script(&self, script: Script) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.scripts.hash(script)).arg(self.keys.all.len());
        for key in &self.keys.all {
            command.arg(key);
        }
        command
    }

    fn write(&self, epoch: &[u8; 16], token: &[u8], write: &Write) -> Cmd {
        match write {
            Write::Put { id, value, leases } => {
                let mut command = self.script(Script::Put);
                command.arg(epoch).arg(token).arg(id.as_bytes());
                command.arg(value.origin as u8).arg(&[transport_byte(value.transport)]);
                for (endpoint, lease) in [value.v4, value.v6].into_iter().zip(leases) {
                    command.arg(endpoint.map(endpoint_bytes).unwrap_or_default()).arg(*lease);
                }
                command.arg(value.emit_body());
                command
            }
            Write::Remove { id, reason, deadline } => {
                let mut command = self.script(Script::Remove);
                command.arg(epoch).arg(token).arg(id.as_bytes()).arg(reason.code()).arg(*deadline);
                command
            }
            Write::Ban(BanWrite { subject, value, since, end, is_current }) => {
                let mut command = self.script(Script::Ban);
                command.arg(epoch).arg(token).arg(subject).arg(value).arg(*since).arg(*end).arg(u8::from(*is_current));
                command
            }
        }
    }
}

/// Whether the store does not have a script that it should execute.
fn is_without_script(error: &RedisError) -> bool {
    let code = ServerErrorKind::NoScript;
    // A failed pipeline has the errors of its commands.
    let errors = error.clone().into_server_errors();
    let has_code = errors.is_some_and(|errors| errors.iter().any(|(_, error)| error.kind() == Some(code)));
    error.kind() == ErrorKind::Server(code) || has_code
}

/// Whether the store ended a request that was waiting, because its role has changed. Whether it can still be used, the next request
/// shows.
fn is_unblocked(error: &RedisError) -> bool {
    error.code() == Some("UNBLOCKED")
}

fn member(lease: &LeaseWrite) -> [u8; 17] {
    let mut member = [if lease.is_ipv6 { b'6' } else { b'4' }; 17];
    member[1..].copy_from_slice(lease.id.as_bytes());
    member
}

/// A pipeline of commands that are executed in order.
pub(crate) type Commands = Pipeline;
