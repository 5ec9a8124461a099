//! The inputs that a script can vary: the data of registrations, and the configuration.

use crate::support::*;
use rallypoint_lobby_proto::{
    Ban, BanSubject, CheckKind, CheckTarget, Config, Mapping, NamePattern, PublicId, UnlistedServer,
};
use rallypoint_wire::lobby::Transport;
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// The data of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationData {
    pub id: u128,
    pub lobby: u32,
    pub is_tcp: bool,
    pub port: u16,
    pub players: u16,
    pub query: Option<&'static str>,
    pub has_bad_name: bool,
}

/// The configuration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub lease: u64,
    pub allow_private: bool,
    pub checks: bool,
    pub is_exempt: bool,
    pub is_mapped: bool,
    pub bans_network: bool,
    pub bans_name: bool,
    pub bans_server: bool,
}

pub const SOURCES: [&str; 7] =
    ["9.9.9.1", "9.9.9.2", "192.168.0.1", "2620:fe::1", "2620:fe::2", "::ffff:9.9.9.1", "0.0.0.0"];
pub const PRIVATE: &str = "192.168.0.1";
pub const BANNED: &str = "9.9.9.2";
pub const EXEMPT: &str = "2620:fe::2";
/// The external address of the private source, which is also the address of another server.
pub const OUTSIDE: &str = "9.9.9.1";
pub const BAD_NAME: &str = "casino";
/// The UDP endpoint of a server that is banned individually.
pub const BAD_PLACE: (&str, u16) = (OUTSIDE, 2);
pub const KEEP: Duration = secs(40);
pub const RETRY: Duration = secs(7);
/// The timeout of a check, and how long the registry waits beyond it.
pub const OVERDUE: Duration = secs(15);
pub const QUERIES: [Option<&str>; 4] = [None, Some("session"), Some("session:7"), Some("gamespy")];

impl RegistrationData {
    pub fn server(&self) -> Server {
        let mut server = if self.is_tcp { tcp(self.id) } else { udp(self.id) };
        server = server.port(self.port).players(self.players).lobby(lobby(self.lobby));
        if self.has_bad_name {
            server = server.name(BAD_NAME);
        }
        if let Some(query) = self.query {
            server = server.key("x-query", query);
        }
        server
    }

    pub fn transport(&self) -> Transport {
        if self.is_tcp { Transport::Tcp } else { Transport::Udp }
    }

    /// L12 and E1: the check target of a server at this address.
    pub fn target(&self, inside: (IpAddr, u16)) -> Option<CheckTarget> {
        let (kind, port) = match (self.is_tcp, self.query) {
            (true, _) => (CheckKind::Connect, inside.1),
            (false, Some("session")) => (CheckKind::Query(rallypoint_wire::query::Protocol::Session), inside.1),
            (false, Some("session:7")) => (CheckKind::Query(rallypoint_wire::query::Protocol::Session), 7),
            (false, _) => return None,
        };
        Some(CheckTarget { addr: SocketAddr::new(inside.0, port), kind })
    }
}

impl Settings {
    pub fn config(&self) -> Config {
        let mut config = Config { lease: secs(self.lease), allow_private: self.allow_private, ..Config::default() };
        config.limit_exempt = networks(&["0.0.0.0/0", "::/0"]);
        config.limits.max_entries = 8;
        config.checks.enabled = self.checks;
        (config.checks.keep, config.checks.retry) = (KEEP, RETRY);
        (config.checks.per_address, config.checks.per_network) = (1_000_000, 1_000_000);
        (config.checks.in_flight, config.checks.waiting) = (1_000_000, 1_000_000);
        config.checks.total = 100_000_000;
        if self.is_exempt {
            config.checks.exempt = networks(&[&format!("{EXEMPT}/128")]);
        }
        if self.is_mapped {
            let from = format!("{PRIVATE}/32").parse().unwrap();
            config.address_map = [Mapping { from, port: None, to: ip(OUTSIDE), to_port: None }].into_iter().collect();
        }
        let network = BanSubject::Network(format!("{BANNED}/32").parse().unwrap());
        let name = BanSubject::Name(NamePattern::new(BAD_NAME));
        let ban = |subject| Ban { subject, reason: "".into(), until: None };
        let addresses = vec![SocketAddr::new(ip(BAD_PLACE.0), BAD_PLACE.1)];
        let server = UnlistedServer {
            id: PublicId::from_bytes([0; 16]),
            name: String::new(),
            transport: Transport::Udp,
            addresses,
        };
        let server = BanSubject::Server(server);
        let bans = [(self.bans_network, network), (self.bans_name, name), (self.bans_server, server)];
        config.bans = permanent(bans.into_iter().filter(|(is_set, _)| *is_set).map(|(_, subject)| ban(subject)));
        config
    }

    pub fn outside(&self, inside: (IpAddr, u16)) -> (IpAddr, u16) {
        if self.is_mapped && inside.0 == ip(PRIVATE) { (ip(OUTSIDE), inside.1) } else { inside }
    }

    pub fn is_bad_place(&self, outside: (IpAddr, u16), data: &RegistrationData) -> bool {
        self.bans_server && !data.is_tcp && outside == (ip(BAD_PLACE.0), BAD_PLACE.1)
    }

    pub fn is_private(&self, outside: (IpAddr, u16)) -> bool {
        !self.allow_private && outside.0 == ip(PRIVATE)
    }
}
