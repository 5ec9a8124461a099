//! The settings of `rallypoint serve`, as typed values.

use super::{names, table::SETTINGS};
use ipnet::IpNet;
use jiff::Timestamp;
use rallypoint_cluster::{ClusterSecret, StoreUrl};
use rallypoint_history::Retention;
use rallypoint_lobby::{DoorAddrs, ListLimits, WatchTarget};
use rallypoint_lobby_proto::{Ban, BanList, Mapping};
use rallypoint_query::HttpUrl;
use rallypoint_web::{ListNames, WebOptions};
use rallypoint_wire::lobby::ListId;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::LazyLock,
    time::{Duration, Instant},
};

/// All settings. `Default` is the configuration without any file, variable or flag.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Directory for data that survives a restart; if not set, the default of the system.
    pub data_dir: Option<PathBuf>,
    /// A separate file with bans.
    pub ban_file: Option<PathBuf>,
    /// Addresses of the doors.
    pub doors: DoorAddrs,
    /// File that contains the admin token.
    pub admin_token_file: Option<PathBuf>,
    /// The registry's settings without the lists that follow; [`Self::registry`] combines them.
    pub registry: rallypoint_lobby_proto::Config,
    pub address_map: Vec<Mapping>,
    pub check_exempt: Vec<IpNet>,
    pub limit_exempt: Vec<IpNet>,
    pub whole_lists: Vec<IpNet>,
    pub bans: Vec<Ban>,
    /// The bans of [`Self::ban_file`].
    pub more_bans: Vec<Ban>,
    /// Names of lists.
    pub names: BTreeMap<ListId, String>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistorySettings {
    pub enabled: bool,
    pub retention: Retention,
    pub max_servers: usize,
    pub max_size: u64,
}

/// Settings of the copies for mirrors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportConfig {
    /// The directory; `None` if no copies are written.
    pub directory: Option<PathBuf>,
    pub interval: Duration,
    /// The key; `None` for the file in the data directory.
    pub key_file: Option<PathBuf>,
    pub max_age: Duration,
    /// The names of the lobby.
    pub hosts: Vec<String>,
    /// The address of the live page.
    pub page_url: Option<HttpUrl>,
    /// Where copies are published.
    pub mirrors: Vec<HttpUrl>,
}

/// Settings of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// The defaults of the table.
static DEFAULTS: LazyLock<Settings> = LazyLock::new(|| {
    let mut settings = Settings {
        data_dir: None,
        ban_file: None,
        doors: DoorAddrs::default(),
        admin_token_file: None,
        registry: rallypoint_lobby_proto::Config::default(),
        address_map: Vec::new(),
        check_exempt: Vec::new(),
        limit_exempt: Vec::new(),
        whole_lists: Vec::new(),
        bans: Vec::new(),
        more_bans: Vec::new(),
        // A configuration adds names.
        names: names::known(),
        save_every: Duration::ZERO,
        receive_buffer: 0,
        list: ListLimits::default(),
        web: WebOptions::default(),
        watch: Vec::new(),
        history: HistorySettings::default(),
        cluster: ClusterSettings::default(),
        export: ExportConfig::default(),
        log: LogSettings { level: tracing::Level::INFO, format: LogFormat::Text },
    };
    for setting in SETTINGS.iter() {
        let result = setting.set_text(&mut settings, setting.default);
        debug_assert_eq!(result, Ok(()), "the default of {} is invalid", setting.path);
    }
    // On a machine with little memory, less than in the table.
    settings.registry.caps.memory = settings.registry.caps.memory.min(rallypoint_lobby::default_memory_cap());
    settings
});

impl Default for Settings {
    fn default() -> Self {
        DEFAULTS.clone()
    }
}

impl Settings {
    /// The registry's configuration. The registry has no calendar, so expired bans are removed here, by today's date.
    pub fn registry(&self, now: Instant, today: Timestamp) -> rallypoint_lobby_proto::Config {
        let mut config = self.registry.clone();
        config.address_map = self.address_map.iter().copied().collect();
        config.checks.exempt = self.check_exempt.iter().copied().collect();
        config.named_lists = self.names.iter().filter(|(_, name)| !name.is_empty()).map(|(id, _)| *id).collect();
        config.limit_exempt = self.limit_exempt.iter().copied().collect();
        config.whole_lists = self.whole_lists.iter().copied().collect();
        config.bans = BanList::new(self.all_bans().cloned(), now, today.into());
        config
    }

    /// Paths that start at the directory of the configuration file if they are relative.
    pub fn relative_paths(&mut self) -> [&mut Option<PathBuf>; 8] {
        let site = &mut self.web.settings.site;
        [
            &mut self.ban_file,
            &mut self.admin_token_file,
            &mut self.cluster.secret_file,
            &mut self.export.directory,
            &mut self.export.key_file,
            &mut site.logo,
            &mut site.maps,
            &mut site.geoip,
        ]
    }

    /// The bans of both files.
    pub fn all_bans(&self) -> impl Iterator<Item = &Ban> {
        self.bans.iter().chain(&self.more_bans)
    }

    /// The options of the web server.
    pub fn web(&self) -> WebOptions {
        let mut web = self.web.clone();
        web.settings.names = ListNames(self.names.clone());
        web.settings.bans = self.all_bans().cloned().collect();
        web.require_ipv6 = web.listen.iter().any(|addr| addr.is_ipv6() && !addr.ip().is_unspecified());
        web
    }
}
