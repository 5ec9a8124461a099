//! A running node: connects a lobby with the store.

mod awaited_responses;
mod bans;
mod checks;
mod connection;
mod contact_log;
mod defect_log;
mod driver;
mod messenger;
mod namesakes;
mod outages;
mod problem;
mod status;

use crate::{ClusterNode, ClusterSecret, NodeConfig, NodeState, StoreClient, StoreError, StoreUrl};
use driver::Driver;
use rallypoint_lobby::{LobbyService, NodeIdentity};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

/// Options of a node.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The store.
    pub url: StoreUrl,
    /// Name of the cluster: clusters with different names can share a store.
    pub name: String,
    /// The secret that all nodes share.
    pub secret: ClusterSecret,
    /// Name of this node: where it is, for players and operators.
    pub node_name: String,
    /// How long servers of other nodes stay listed without contact with the store.
    pub outage_limit: Duration,
    /// Maximum number of servers that are tracked.
    pub max_servers: usize,
}

/// Why a node cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterStartError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store belongs to nodes with another secret or a later version.
    #[error("{0}")]
    Refused(String),
    /// The operating system provides no random bytes.
    #[error(transparent)]
    Entropy(#[from] rallypoint_udp::EntropyError),
    /// The lobby was not started as a node of a cluster.
    #[error("the lobby was not started as a node of a cluster")]
    NotANode,
}

/// A node that has contacted the store and found that it may take part. It has no lobby yet.
#[derive(Debug)]
pub struct PreparedNode {
    options: ClusterOptions,
    client: StoreClient,
    config: NodeConfig,
}

impl PreparedNode {
    /// Contacts the store.
    pub async fn connect(options: ClusterOptions) -> Result<Self, ClusterStartError> {
        let client = StoreClient::new(&options.url, &options.name)?;
        let config = NodeConfig {
            node: rallypoint_udp::entropy::u64()?,
            secret_check: options.secret.check_value(),
            outage_limit: options.outage_limit,
            max_servers: options.max_servers,
        };
        let now = Instant::now();
        let mut node = ClusterNode::new(config.clone(), now);
        let mut connection = client.connect().await?;
        if let Some(warning) = client.info(&mut connection).await?.and_then(|info| info.eviction_warning()) {
            tracing::warn!("{warning}");
        }
        if let Some((id, request)) = node.poll_request(now) {
            let reply = client.execute(&mut connection, &request).await?;
            node.handle_reply(now, Instant::now(), id, Ok(reply));
        }
        match node.state() {
            NodeState::Refused(reason) => Err(ClusterStartError::Refused(reason.clone())),
            _ => Ok(Self { options, client, config }),
        }
    }

    /// The identity that the lobby has to be started with.
    #[must_use]
    pub fn identity(&self) -> NodeIdentity {
        NodeIdentity { name: self.options.node_name.clone(), public_id_key: self.options.secret.public_id_key() }
    }

    /// Connects a lobby with the store.
    pub async fn start(self, lobby: &LobbyService) -> Result<ClusterService, ClusterStartError> {
        let link = lobby.cluster().ok_or(ClusterStartError::NotANode)?.clone();
        let (stop, stopped) = watch::channel(false);
        let driver = Driver::new(self.options, self.client, self.config, lobby.clone(), link).await;
        let messenger = tokio::spawn(driver.messenger().run());
        Ok(ClusterService { stop, task: tokio::spawn(driver.run(stopped)), messenger: messenger.abort_handle() })
    }
}

/// A running node.
#[derive(Debug)]
pub struct ClusterService {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    messenger: AbortHandle,
}

impl ClusterService {
    /// Ends the exchange with the store. Changes that are on their way are written first, for at most 300 ms, and the node
    /// removes its report, so that it does not count as lost.
    pub async fn shutdown(self) {
        let _ = self.stop.send(true);
        self.messenger.abort();
        let _ = tokio::time::timeout(Duration::from_secs(2), self.task).await;
    }
}
