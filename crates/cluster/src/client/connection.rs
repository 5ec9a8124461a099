//! Connections to one server, to a Redis Cluster, or to the master that Sentinel names.

use super::{Commands, REQUEST_TIMEOUT, bounded_connection::BoundedConnection, error, store_error};
use crate::{StoreError, StoreErrorKind, StoreUrl, url::Topology};
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, FromRedisValue, RedisError, TlsMode, Value,
    cluster::ClusterClientBuilder,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClientBuilder, SentinelServerType},
};
use std::time::Duration;

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Oldest major version of Redis and Valkey that has the commands that are used.
const MIN_VERSION: u32 = 7;

/// Opens connections.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    url: StoreUrl,
    topology: Topology,
}

/// A connection to the store. Clones share it.
///
/// Neither form reconnects by itself to a single server: after an error the connection is dropped and a new one is opened, also
/// after an error of a master that was demoted. That finds the new master, and shows in one place that contact was lost.
#[derive(Clone)]
pub struct StoreConnection(Kind);

#[derive(Clone)]
enum Kind {
    Single(BoundedConnection),
    Cluster(ClusterConnection<BoundedConnection>),
}

impl std::fmt::Debug for StoreConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Single(_) => "StoreConnection(single)",
            Kind::Cluster(_) => "StoreConnection(cluster)",
        })
    }
}

impl Connector {
    pub fn new(url: &StoreUrl) -> Result<Self, StoreError> {
        let invalid =
            |error: crate::StoreUrlError| StoreError { kind: StoreErrorKind::Rejected, message: error.to_string() };
        Ok(Self { url: url.clone(), topology: url.topology().map_err(invalid)? })
    }

    pub fn url(&self) -> &StoreUrl {
        &self.url
    }

    pub async fn connect(&self) -> Result<StoreConnection, StoreError> {
        let connection = tokio::time::timeout(2 * CONNECT_TIMEOUT, self.try_connect()).await;
        let connection = connection.map_err(|_| error::timeout(&self.url))?;
        connection.map(StoreConnection).map_err(|error| store_error(&self.url, &error))
    }

    async fn try_connect(&self) -> Result<Kind, RedisError> {
        // The one that the rest of the program uses. It fails if it is installed already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        // Requests have timeouts of their own, and the log is read with a request that takes long.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        match &self.topology {
            Topology::Single(info) => BoundedConnection::open(info, config).await.map(Kind::Single),
            Topology::Cluster(nodes) => {
                let client = ClusterClientBuilder::new(nodes.iter().cloned())
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(2 * REQUEST_TIMEOUT)
                    .retries(1)
                    .build()?;
                client.get_async_generic_connection().await.map(Kind::Cluster)
            }
            Topology::Sentinel { sentinels, service, node } => {
                let mut builder =
                    SentinelClientBuilder::new(sentinels.iter().cloned(), service, SentinelServerType::Master)?;
                if let ConnectionAddr::TcpTls { .. } = node.addr() {
                    builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
                    builder = builder.set_client_to_sentinel_tls_mode(TlsMode::Secure);
                }
                builder = builder.set_client_to_redis_db(node.redis_settings().db());
                if let Some(user) = node.redis_settings().username() {
                    builder = builder.set_client_to_redis_username(user);
                }
                if let Some(password) = node.redis_settings().password() {
                    builder = builder.set_client_to_redis_password(password);
                }
                let master = builder.build()?.async_get_client().await?;
                BoundedConnection::open(master.get_connection_info(), config).await.map(Kind::Single)
            }
        }
    }

    /// Checks that the store is new enough. A user without the right to ask is believed.
    pub async fn check_version(&self, connection: &mut StoreConnection) -> Result<(), StoreError> {
        let mut command = redis::cmd("INFO");
        command.arg("server");
        let info = tokio::time::timeout(REQUEST_TIMEOUT, connection.query::<Value>(&command)).await;
        let info = match info.map_err(|_| error::timeout(&self.url))? {
            Ok(info) => format!("{info:?}"),
            Err(error) if error.code() == Some("NOPERM") => return Ok(()),
            Err(error) => return Err(store_error(&self.url, &error)),
        };
        let version = ["valkey_version:", "redis_version:"].iter().find_map(|name| {
            let rest = info.split_once(name)?.1;
            rest.split('.').next()?.trim().parse::<u32>().ok()
        });
        match version {
            Some(version) if version < MIN_VERSION => {
                let message = format!(
                    "the store at {} has version {version}: Redis or Valkey {MIN_VERSION} or later is required",
                    self.url
                );
                Err(StoreError { kind: StoreErrorKind::Rejected, message })
            }
            _ => Ok(()),
        }
    }
}

impl StoreConnection {
    pub(crate) async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        match &mut self.0 {
            Kind::Single(connection) => command.query_async(connection).await,
            Kind::Cluster(connection) => command.query_async(connection).await,
        }
    }

    pub(crate) async fn query_pipeline<T: FromRedisValue>(&mut self, commands: &Commands) -> Result<T, RedisError> {
        match &mut self.0 {
            Kind::Single(connection) => commands.query_async(connection).await,
            Kind::Cluster(connection) => commands.query_async(connection).await,
        }
    }
}
