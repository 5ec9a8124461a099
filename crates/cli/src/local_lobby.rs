//! Where the lobby on this machine listens, according to its configuration.

use crate::config::{Settings, Sources};
use rallypoint_lobby_proto::doors::LOBBY;
use rallypoint_query::{Host, HttpUrl};
use rallypoint_wire::lobby;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
};

/// Default port of a lobby's web server.
pub const DEFAULT_HTTP_PORT: NonZeroU16 = NonZeroU16::new(rallypoint_web::PORT).expect("the constant is not 0");

/// The lobby on this machine. Without a configuration it listens at the default ports.
#[derive(Clone, Debug)]
pub struct LocalLobby {
    /// Its first address, if the port is known.
    lobby: Option<SocketAddr>,
    /// The first address of its web server, if the port is known.
    web: Option<SocketAddr>,
}

impl LocalLobby {
    /// Reads the configuration in its default place. What cannot be read has its default: the configuration of a lobby may
    /// not be readable for all users.
    pub fn load() -> Self {
        Self::new(&Sources::new(None).readable_settings())
    }

    /// The lobby with these settings.
    pub fn new(settings: &Settings) -> Self {
        // Port 0 is another one at each start.
        let first = |addrs: &[SocketAddr]| addrs.iter().copied().find(|addr| addr.port() != 0);
        Self { lobby: first(&settings.doors[&LOBBY]), web: first(&settings.web.listen) }
    }

    /// The lobby as `--lobby` takes it: `localhost`, with a port if it is not the default one.
    pub fn host(&self) -> String {
        match self.lobby {
            Some(addr) if !addr.ip().is_unspecified() && !addr.ip().is_loopback() => addr.to_string(),
            Some(addr) if addr.port() != lobby::PORT => format!("localhost:{}", addr.port()),
            _ => "localhost".to_owned(),
        }
    }

    /// The URL of its web server.
    pub fn web_url(&self) -> HttpUrl {
        let addr = self.web.unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), DEFAULT_HTTP_PORT.get()));
        let ip = match addr.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let port = NonZeroU16::new(addr.port()).unwrap_or(DEFAULT_HTTP_PORT);
        HttpUrl { is_secure: false, host: Host::Ip(ip), port, path: "/".into() }
    }

    /// The port of the web server of the lobby at this host and port: the configured one if that is the lobby on this
    /// machine, otherwise the default one.
    pub fn http_port_of(&self, host: &Host, port: u16) -> NonZeroU16 {
        let is_local = match (host, self.lobby) {
            (Host::Name(name), Some(_)) => name.eq_ignore_ascii_case("localhost"),
            (Host::Ip(ip), Some(addr)) => ip.is_loopback() || *ip == addr.ip(),
            (_, None) => false,
        };
        let is_same = is_local && self.lobby.is_some_and(|addr| addr.port() == port);
        self.web.filter(|_| is_same).and_then(|web| NonZeroU16::new(web.port())).unwrap_or(DEFAULT_HTTP_PORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(lobby: &str, web: &str) -> LocalLobby {
        let mut settings = Settings::default();
        let addrs = |text: &str| text.split_whitespace().map(|addr| addr.parse().unwrap()).collect();
        settings.doors[&LOBBY] = addrs(lobby);
        settings.web.listen = addrs(web);
        LocalLobby::new(&settings)
    }

    #[test]
    fn without_a_configuration_the_default_ports_are_used() {
        let lobby = LocalLobby::new(&Settings::default());
        assert_eq!(lobby.host(), "localhost");
        assert_eq!(lobby.web_url().to_string(), "http://127.0.0.1:29950/");
        let off = local("0.0.0.0:29944", "");
        assert_eq!(off.web_url().to_string(), "http://127.0.0.1:29950/");
    }

    #[test]
    fn configured_ports_and_addresses_are_used_for_this_lobby_only() {
        let lobby = local("0.0.0.0:4000 [::]:4000", "[::]:8080");
        assert_eq!(lobby.host(), "localhost:4000");
        assert_eq!(lobby.web_url().to_string(), "http://[::1]:8080/");
        let port = |host: &str, port| lobby.http_port_of(&rallypoint_query::split_port(host).unwrap().0, port).get();
        assert_eq!((port("localhost", 4_000), port("127.0.0.1", 4_000), port("::1", 4_000)), (8_080, 8_080, 8_080));
        assert_eq!((port("localhost", 29_944), port("lobby.example.org", 4_000)), (29_950, 29_950));
        let other = local("192.0.2.7:29944", "192.0.2.7:80");
        assert_eq!((&*other.host(), &*other.web_url().to_string()), ("192.0.2.7:29944", "http://192.0.2.7/"));
        assert_eq!(other.http_port_of(&Host::Ip("192.0.2.7".parse().unwrap()), 29_944).get(), 80);
        let any = local("127.0.0.1:0", "127.0.0.1:0");
        assert_eq!((&*any.host(), &*any.web_url().to_string()), ("localhost", "http://127.0.0.1:29950/"));
    }
}
