//! The settings of `rallypoint serve`, as typed values.

use super::{ExportConfig, names};
use ipnet::IpNet;
use jiff::Timestamp;
use rallypoint_cluster::{ClusterSecret, StoreUrl};
use rallypoint_history::Retention;
use rallypoint_lobby::{ListLimits, LobbyOptions, WatchTarget};
use rallypoint_lobby_proto::{Ban, BanList, Mapping};
use rallypoint_web::{LobbyNames, WebOptions};
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

/// All settings. `Default` is the configuration without any file, variable or flag.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Directory for data that survives a restart; if not set, the default of the system.
    pub data_dir: Option<PathBuf>,
    /// A separate file with bans.
    pub ban_file: Option<PathBuf>,
    pub lobby_listen: Vec<SocketAddr>,
    pub legacy_listen: Vec<SocketAddr>,
    /// File that contains the admin token.
    pub admin_token_file: Option<PathBuf>,
    /// The registry's settings without the lists that follow; [`Self::registry`] combines them.
    pub registry: rallypoint_lobby_proto::Config,
    pub address_map: Vec<Mapping>,
    pub check_exempt: Vec<IpNet>,
    pub limit_exempt: Vec<IpNet>,
    pub bans: Vec<Ban>,
    /// The bans of [`Self::ban_file`].
    pub more_bans: Vec<Ban>,
    /// Names of lobbies.
    pub names: BTreeMap<LobbyId, String>,
    pub save_every: Duration,
    pub receive_buffer: usize,
    pub list: ListLimits,
    pub web: WebOptions,
    /// Servers that cannot register and are probed instead.
    pub watch: Vec<WatchTarget>,
    pub history: HistorySettings,
    pub cluster: ClusterSettings,
    pub export: ExportConfig,
    pub log: LogSettings,
}

/// Settings of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    pub enabled: bool,
    pub retention: Retention,
    pub max_servers: usize,
    pub max_size: u64,
}

impl Default for HistorySettings {
    fn default() -> Self {
        let options = rallypoint_history::HistoryOptions::new("");
        let (retention, max_servers) = (options.retention, options.limits.servers);
        Self { enabled: true, retention, max_servers, max_size: options.max_bytes }
    }
}

/// Settings of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSettings {
    /// The store; `None` if this lobby is not a node of a cluster.
    pub url: Option<StoreUrl>,
    pub name: String,
    /// Name of this node; if empty, that of the host.
    pub node: String,
    pub secret: Option<ClusterSecret>,
    /// File that contains the secret.
    pub secret_file: Option<PathBuf>,
    pub outage_limit: Duration,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            url: None,
            name: "rallypoint".into(),
            node: String::new(),
            secret: None,
            secret_file: None,
            outage_limit: rallypoint_cluster::OUTAGE_LIMIT,
        }
    }
}

impl ClusterSettings {
    /// The name of this node: that of the host if none is set.
    pub fn node_name(&self) -> String {
        if self.node.is_empty() { host_name() } else { self.node.clone() }
    }
}

/// The name of the host, as the name of a node.
fn host_name() -> String {
    #[cfg(unix)]
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let host = std::env::var("COMPUTERNAME").unwrap_or_default();
    if rallypoint_cluster::is_valid_name(&host) { host } else { "node".into() }
}

/// Settings of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    pub level: tracing::Level,
    pub format: LogFormat,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for Settings {
    fn default() -> Self {
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        let networks = loopback.map(|ip| IpNet::new_assert(ip, if ip.is_ipv4() { 8 } else { 128 }).trunc());
        let net = LobbyOptions::default();
        Self {
            data_dir: None,
            ban_file: None,
            lobby_listen: net.listen,
            legacy_listen: net.legacy,
            admin_token_file: None,
            registry: net.registry,
            address_map: Vec::new(),
            check_exempt: Vec::new(),
            limit_exempt: networks.into(),
            bans: Vec::new(),
            more_bans: Vec::new(),
            names: names::known(),
            save_every: net.save_every,
            receive_buffer: net.receive_buffer,
            list: net.list,
            web: WebOptions::default(),
            watch: Vec::new(),
            history: HistorySettings::default(),
            cluster: ClusterSettings::default(),
            export: ExportConfig::default(),
            log: LogSettings { level: tracing::Level::INFO, format: LogFormat::Text },
        }
    }
}

impl Settings {
    /// The registry's configuration. The registry has no calendar, so expired bans are removed here, by today's date.
    pub fn registry(&self, now: Instant, today: Timestamp) -> rallypoint_lobby_proto::Config {
        let mut config = self.registry.clone();
        config.address_map = self.address_map.iter().copied().collect();
        config.checks.exempt = self.check_exempt.iter().copied().collect();
        config.named_lobbies = self.names.iter().filter(|(_, name)| !name.is_empty()).map(|(id, _)| *id).collect();
        config.limit_exempt = self.limit_exempt.iter().copied().collect();
        config.bans = BanList::new(self.all_bans().cloned(), now, today.into());
        config
    }

    /// The bans of both files.
    pub fn all_bans(&self) -> impl Iterator<Item = &Ban> {
        self.bans.iter().chain(&self.more_bans)
    }

    /// The options of the web server.
    pub fn web(&self) -> WebOptions {
        let mut web = self.web.clone();
        web.settings.names = LobbyNames(self.names.clone());
        web.settings.bans = self.all_bans().cloned().collect();
        web.require_ipv6 = web.listen.iter().any(|addr| addr.is_ipv6() && !addr.ip().is_unspecified());
        web
    }
}
