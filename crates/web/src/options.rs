//! Options, limits and settings of the web server.

use crate::{AdminToken, ExportService, JoinLink, SiteSettings};
use ipnet::IpNet;
use rallypoint_history::HistoryReader;
use rallypoint_limit::Rate;
use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::Ban;
use rallypoint_query::list_names;
use rallypoint_wire::lobby::ListId;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// The default port.
pub const PORT: u16 = 29_950;

/// Options of a [`WebService`](crate::WebService).
#[derive(Clone, Debug, PartialEq)]
pub struct WebOptions {
    /// Addresses to listen on; port 0 is any free port. Default: port 29950 of all IPv4 and all IPv6 addresses.
    pub listen: Vec<SocketAddr>,
    /// Whether a machine without IPv6 is an error. Default: no, IPv6 addresses are skipped with a warning.
    pub require_ipv6: bool,
    /// Limits of connections and memory.
    pub limits: WebLimits,
    /// Settings that can be changed while the server runs.
    pub settings: WebSettings,
}

/// Limits of connections and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// Maximum number of open connections. Default: 4,096.
    pub connections: usize,
    /// Maximum number of open connections of one IPv4 address or IPv6 /56. Default: 128, because many people can share an
    /// address.
    pub per_address: usize,
    /// Maximum number of open event streams. Default: 2,048.
    pub listeners: usize,
    /// Maximum number of open event streams of one IPv4 address or IPv6 /56. Default: 32.
    pub listeners_per_address: usize,
    /// Maximum number of bytes of responses that were made for one client each, and that it has not received yet. Default:
    /// 32 MB, and at most an eighth of the lobby's memory cap (but 4 MB). Prebuilt lists are not included.
    pub answer_bytes: usize,
    /// Maximum of those bytes for one IPv4 address or IPv6 /56. Default: 16 MB.
    pub answer_bytes_per_address: usize,
    /// Maximum number of bytes of prebuilt lists that one IPv4 address or IPv6 /56 has not received yet; a single list is
    /// always allowed. Default: 64 MB. All clients share the bytes of a list, but while the list changes, each client can hold
    /// on to another version of it.
    pub list_bytes_per_address: usize,
    /// Time that a client has to send the head of a request, also of the next one on the same connection. Default: 20 s.
    pub request_timeout: Duration,
    /// Time after which a client that receives nothing of a response is disconnected. Default: 20 s.
    pub stall_timeout: Duration,
}

/// Settings that can be changed while the server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSettings {
    /// Names of lists. Default: none.
    pub names: ListNames,
    /// Title, colours and files of the pages.
    pub site: SiteSettings,
    /// Links that start a game, by list. Default: none.
    pub joins: BTreeMap<ListId, JoinLink>,
    /// Rate of requests of one IPv4 address or IPv6 /56; `None` for no limit. Default: 20 per second, with bursts of 200.
    pub requests: Option<Rate>,
    /// Networks that are exempt from all limits per address. Default: loopback.
    pub exempt: Vec<IpNet>,
    /// Networks of proxies whose `X-Forwarded-For` is trusted. Default: none.
    pub trusted_proxies: Vec<IpNet>,
    /// Whose registration outcomes a client may see. Default: its own.
    pub outcomes: OutcomeAccess,
    /// The token of the operator. Default: `None`, which turns the admin API off.
    pub admin_token: Option<AdminToken>,
    /// The bans of the configuration file, for the admin API to show. Default: none.
    pub bans: Vec<Ban>,
    /// Networks that may read the metrics; empty turns them off. Default: loopback, which does not include clients of a proxy
    /// on this machine.
    pub metrics: Vec<IpNet>,
}

/// Whose registration outcomes a client may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutcomeAccess {
    /// Outcomes of the client's own address.
    #[default]
    Own,
    /// Outcomes of any address.
    Any,
}

/// Names of lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListNames(pub BTreeMap<ListId, String>);

/// The services whose data a web server shows.
#[derive(Clone, Debug)]
pub struct WebSources {
    /// The lobby.
    pub lobby: LobbyService,
    /// The history, if one is kept.
    pub history: Option<HistoryReader>,
    /// The copies for mirrors, if they are written.
    pub export: Option<ExportService>,
}

impl WebSources {
    /// A lobby without history, admin API and copies for mirrors.
    #[must_use]
    pub fn new(lobby: LobbyService) -> Self {
        Self { lobby, history: None, export: None }
    }
}

impl ListNames {
    /// The name of a list, if it has one.
    #[must_use]
    pub fn name(&self, id: &ListId) -> Option<&str> {
        self.0.get(id).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The list with this UUID, this name, or this well-known name such as `gg2`; upper and lower case are the same.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<ListId> {
        let named = || {
            let wanted = text.to_lowercase();
            self.0.iter().find(|(_, name)| !name.is_empty() && name.to_lowercase() == wanted).map(|(id, _)| *id)
        };
        text.parse().ok().or_else(named).or_else(|| list_names::find(text).ok())
    }

    /// The name of a list, or else the first digits of its ID: short enough for a list.
    pub(crate) fn short(&self, id: &ListId) -> String {
        self.name(id).map_or_else(|| format!("{:.8}…", id.to_string()), Into::into)
    }
}

impl Default for WebOptions {
    fn default() -> Self {
        Self {
            listen: vec![(Ipv4Addr::UNSPECIFIED, PORT).into(), (Ipv6Addr::UNSPECIFIED, PORT).into()],
            require_ipv6: false,
            limits: WebLimits::default(),
            settings: WebSettings::default(),
        }
    }
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            per_address: 128,
            listeners: 2_048,
            listeners_per_address: 32,
            answer_bytes: 32 << 20,
            answer_bytes_per_address: 16 << 20,
            list_bytes_per_address: 64 << 20,
            request_timeout: Duration::from_secs(20),
            stall_timeout: Duration::from_secs(20),
        }
    }
}

impl Default for WebSettings {
    fn default() -> Self {
        let loopback = [
            IpNet::new_assert(Ipv4Addr::LOCALHOST.into(), 8).trunc(),
            IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128),
        ];
        Self {
            names: ListNames::default(),
            site: SiteSettings::default(),
            joins: BTreeMap::new(),
            requests: Some(Rate::per_second(20, 200)),
            exempt: loopback.into(),
            metrics: loopback.into(),
            admin_token: None,
            bans: Vec::new(),
            trusted_proxies: Vec::new(),
            outcomes: OutcomeAccess::Own,
        }
    }
}
