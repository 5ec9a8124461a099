//! Everything that can be said about the web server.

use crate::{Admin, JoinLink, Token};
use ipnet::IpNet;
use rallypoint_history::HistoryReader;
use rallypoint_limit::Rate;
use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::Ban;
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// The port, if nobody chooses another.
pub const PORT: u16 = 29_950;

/// What a [`WebService`](crate::WebService) is told when it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct WebOptions {
    /// Where it listens. Port 0 is any free port. Both families, 29950.
    pub listen: Vec<SocketAddr>,
    /// Whether an IPv6 address counts as an error on a machine that has no IPv6. No: it is left out with a warning.
    pub require_ipv6: bool,
    /// How much it takes on.
    pub limits: WebLimits,
    /// What can be changed later.
    pub settings: WebSettings,
}

/// How much a web server takes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// Connections at once. 4,096.
    pub connections: usize,
    /// Those of one IPv4 address or IPv6 /56. 128: many people can be behind one address.
    pub per_address: usize,
    /// Those that listen to events. 2,048.
    pub listeners: usize,
    /// Those that listen to events from one IPv4 address or IPv6 /56. 32.
    pub listeners_per_address: usize,
    /// Bytes of answers that were made for one client each and that it has not taken yet. 64 MB. Lists that are the same for
    /// all are not among them.
    pub answer_bytes: usize,
    /// Those of one IPv4 address or IPv6 /56. 16 MB.
    pub answer_bytes_per_address: usize,
    /// Bytes of lists that are the same for all and that one IPv4 address or IPv6 /56 has not taken yet; one list is always
    /// possible. 64 MB. There is one copy of a list, but while it changes every client can hold on to another version.
    pub list_bytes_per_address: usize,
    /// How long a client has for the head of its request, also for the next one on a connection that is kept. 20 s.
    pub request_timeout: Duration,
    /// How long a client may take nothing of what is sent to it. 20 s.
    pub stall_timeout: Duration,
}

/// What can be changed while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSettings {
    /// What lobbies are called.
    pub names: LobbyNames,
    /// Links that join a server, by lobby. None.
    pub joins: BTreeMap<LobbyId, JoinLink>,
    /// How many requests one IPv4 address or IPv6 /56 can make. `None`: any number. 20 per second, 200 at once.
    pub requests: Option<Rate>,
    /// Networks that may make any number of requests and have any number of connections: loopback.
    pub exempt: Vec<IpNet>,
    /// Networks of proxies, whose word is taken for who asks (`X-Forwarded-For`). None.
    pub trusted_proxies: Vec<IpNet>,
    /// Whose outcomes can be asked for.
    pub outcomes: Outcomes,
    /// What the operator is known by. `None`: there is no admin API.
    pub admin_token: Option<Token>,
    /// The bans of the configuration, which the admin API shows.
    pub bans: Vec<Ban>,
    /// Networks that may read the metrics: loopback, which is only who is on this machine itself. Empty: nobody.
    pub metrics: Vec<IpNet>,
}

/// Whose outcomes a visitor can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcomes {
    /// Those of the visitor's own address.
    #[default]
    Own,
    /// Those of any address.
    Any,
}

/// What lobbies are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LobbyNames(pub BTreeMap<LobbyId, String>);

/// What a web server shows.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The lobby.
    pub lobby: LobbyService,
    /// What was, if it is kept.
    pub history: Option<HistoryReader>,
    /// Where the operator's decisions are kept. Without it there is no admin API.
    pub admin: Option<Admin>,
}

impl Parts {
    /// Only a lobby.
    #[must_use]
    pub fn new(lobby: LobbyService) -> Self {
        Self { lobby, history: None, admin: None }
    }
}

impl LobbyNames {
    /// The name of a lobby, if it has one.
    #[must_use]
    pub fn name(&self, id: &LobbyId) -> Option<&str> {
        self.0.get(id).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Its name or else the beginning of its ID: short enough for a list.
    pub(crate) fn short(&self, id: &LobbyId) -> String {
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
            answer_bytes: 64 << 20,
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
            names: LobbyNames::default(),
            joins: BTreeMap::new(),
            requests: Some(Rate::per_second(20, 200)),
            exempt: loopback.into(),
            metrics: loopback.into(),
            admin_token: None,
            bans: Vec::new(),
            trusted_proxies: Vec::new(),
            outcomes: Outcomes::Own,
        }
    }
}
