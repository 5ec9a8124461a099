//! Connections to one server, to a Redis Cluster, or to the master that Sentinel names.

use super::{
    Commands, REQUEST_TIMEOUT, bounded_connection::BoundedConnection, error, sentinel, store_error, tls_mismatch,
};
use crate::{StoreError, StoreErrorKind, StoreUrl, url::Topology};
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, FromRedisValue, RedisError, Value,
    cluster::ClusterClientBuilder,
    cluster_async::ClusterConnection,
    cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr},
};
use std::time::Duration;

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

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
        let error = match connection {
            Ok(Ok(connection)) => return Ok(StoreConnection(connection)),
            // A port without a server has no TLS either.
            Ok(Err(error)) if error.is_connection_refusal() => return Err(store_error(&self.url, &error)),
            Ok(Err(error)) => store_error(&self.url, &error),
            Err(_) => error::timeout(&self.url),
        };
        if error.kind != StoreErrorKind::Unreachable {
            return Err(error);
        }
        let mismatch = match self.first_addr() {
            Some(addr) => tls_mismatch::find(addr).await,
            None => None,
        };
        Err(mismatch.map_or(error, |mismatch| error::tls_mismatch(&self.url, mismatch)))
    }

    /// The first address that is named.
    fn first_addr(&self) -> Option<&ConnectionAddr> {
        match &self.topology {
            Topology::Single(info) => Some(info.addr()),
            Topology::Cluster(nodes) => nodes.first().map(redis::ConnectionInfo::addr),
            Topology::Sentinel { sentinels, .. } => sentinels.first(),
        }
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
                sentinel::connect_to_master(sentinels, service, node, &config).await.map(Kind::Single)
            }
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

    /// Executes a command without keys: in a Redis Cluster, at the master that has this key.
    pub(crate) async fn query_at(&mut self, key: &str, command: Cmd) -> Result<Value, RedisError> {
        match &mut self.0 {
            Kind::Single(connection) => command.query_async(connection).await,
            Kind::Cluster(connection) => {
                let master = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
                connection.route_command(command, RoutingInfo::SingleNode(master)).await
            }
        }
    }

    pub(crate) async fn query_pipeline<T: FromRedisValue>(&mut self, commands: &Commands) -> Result<T, RedisError> {
        match &mut self.0 {
            Kind::Single(connection) => commands.query_async(connection).await,
            Kind::Cluster(connection) => commands.query_async(connection).await,
        }
    }
}
