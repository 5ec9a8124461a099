//! Everything that `rallypoint serve` can be told.

use super::names;
use ipnet::IpNet;
use jiff::Timestamp;
use rallypoint_history::Retention;
use rallypoint_lobby::{ListLimits, LobbyOptions};
use rallypoint_lobby_proto::{Ban, BanList, Mapping};
use rallypoint_web::{LobbyNames, WatchTarget, WebOptions};
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

/// All settings, with the defaults of a lobby that nobody configured.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the list is kept over a restart; if not set, where the system keeps such things.
    pub data_dir: Option<PathBuf>,
    /// A further file with bans.
    pub ban_file: Option<PathBuf>,
    pub lobby_listen: Vec<SocketAddr>,
    pub legacy_listen: Vec<SocketAddr>,
    /// The file that the operator's token is in.
    pub admin_token_file: Option<PathBuf>,
    /// The registry's own settings, but for the lists that follow: [`Self::registry`] puts all of them together.
    pub registry: rallypoint_lobby_proto::Config,
    pub address_map: Vec<Mapping>,
    pub check_exempt: Vec<IpNet>,
    pub limit_exempt: Vec<IpNet>,
    pub bans: Vec<Ban>,
    /// Those of [`Self::ban_file`].
    pub more_bans: Vec<Ban>,
    /// What lobbies are called.
    pub names: BTreeMap<LobbyId, String>,
    pub save_every: Duration,
    pub receive_buffer: usize,
    pub list: ListLimits,
    pub web: WebOptions,
    /// Servers that cannot register.
    pub watch: Vec<WatchTarget>,
    pub history: HistorySettings,
    pub log: LogSettings,
}

/// What is kept of what was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    pub enabled: bool,
    pub retention: Retention,
    pub max_servers: usize,
    pub max_size: u64,
}

impl Default for HistorySettings {
    fn default() -> Self {
        let options = rallypoint_history::Options::new("");
        let (retention, max_servers) = (options.retention, options.limits.servers);
        Self { enabled: true, retention, max_servers, max_size: options.max_bytes }
    }
}

/// How the program tells what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    pub level: tracing::Level,
    pub format: LogFormat,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
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
            log: LogSettings { level: tracing::Level::INFO, format: LogFormat::Text },
        }
    }
}

impl Settings {
    /// The registry's configuration. It knows no dates, so it has to be told which day it is.
    pub fn registry(&self, now: Instant, today: Timestamp) -> rallypoint_lobby_proto::Config {
        let mut config = self.registry.clone();
        config.address_map = self.address_map.iter().copied().collect();
        config.checks.exempt = self.check_exempt.iter().copied().collect();
        config.named_lobbies = self.names.iter().filter(|(_, name)| !name.is_empty()).map(|(id, _)| *id).collect();
        config.limit_exempt = self.limit_exempt.iter().copied().collect();
        config.bans = BanList::new(self.all_bans().cloned(), now, today.into());
        config
    }

    /// The bans of all files.
    pub fn all_bans(&self) -> impl Iterator<Item = &Ban> {
        self.bans.iter().chain(&self.more_bans)
    }

    /// What the web server is told.
    pub fn web(&self) -> WebOptions {
        let mut web = self.web.clone();
        web.settings.names = LobbyNames(self.names.clone());
        web.settings.bans = self.all_bans().cloned().collect();
        web.require_ipv6 = web.listen.iter().any(|addr| addr.is_ipv6() && !addr.ip().is_unspecified());
        web
    }
}
