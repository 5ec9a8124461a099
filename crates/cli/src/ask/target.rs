//! Whom to ask, as a person names it.

use crate::config::names;
pub use rallypoint_query_proto::Protocol;
use rallypoint_query_proto::{Detail, Probe, ServerQuery};
use rallypoint_wire::{bloodmasters, legacy, lobby};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
    str::FromStr,
};

/// A server, or something that has a list of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `host`, `host:port`, `bloodmasters://host:port`, `session://host:port`.
    Server(Server),
    /// `lobby://host:port/lobby`.
    Lobby(Lobby),
    /// `http://host:port/path`: a Bloodmasters master list.
    MasterList(Page),
}

/// A game server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub host: Host,
    /// Without one, the default port of each protocol.
    pub port: Option<NonZeroU16>,
    /// Without one it is asked in both, and the first answer counts.
    pub protocol: Option<Protocol>,
}

/// A lobby, and which of its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lobby {
    pub host: Host,
    pub port: Option<NonZeroU16>,
    /// Without one, that of Gang Garrison 2.
    pub id: Option<lobby::LobbyId>,
}

/// A page on the web, by http: a list of Bloodmasters servers (L17), or a lobby's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub host: Host,
    pub port: NonZeroU16,
    pub path: String,
}

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Ip(IpAddr),
    /// Also an address of a link with the name of the link, which the system knows: `fe80::1%eth0`.
    Name(Box<str>),
}

impl Server {
    /// How to ask it at these addresses: in one protocol or in both.
    pub fn probes(&self, ips: &[SocketAddr], players: bool) -> Vec<Probe> {
        let protocols = any_of(self.protocol);
        let each = |mut addr: SocketAddr| {
            protocols.iter().map(move |&protocol| {
                addr.set_port(self.port.map_or(protocol.default_port(), NonZeroU16::get));
                Probe::new(addr, query(protocol, players))
            })
        };
        ips.iter().copied().flat_map(each).collect()
    }
}

impl Lobby {
    pub fn port(&self, legacy: bool) -> u16 {
        self.port.map_or(if legacy { legacy::PORT } else { lobby::PORT }, NonZeroU16::get)
    }

    pub fn id(&self) -> lobby::LobbyId {
        self.id.unwrap_or(lobby::LobbyId::GANG_GARRISON_2)
    }
}

/// Those that a server may speak of which this is known.
pub fn any_of(known: Option<Protocol>) -> Vec<Protocol> {
    known.map_or_else(|| Protocol::ALL.to_vec(), |known| vec![known])
}

pub fn query(protocol: Protocol, players: bool) -> ServerQuery {
    ServerQuery { protocol, detail: if players { Detail::Players } else { Detail::Info } }
}

const EXPECTED: &str = "expected a server such as play.example.org, 203.0.113.1:6969, [2001:db8::1]:45555 or \
                        session://play.example.org, or a list such as lobby://lobby.example.org";

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else { return server(text, None) };
        match &*scheme.to_ascii_lowercase() {
            "bloodmasters" => server(rest.trim_end_matches('/'), Some(Protocol::Bloodmasters)),
            "session" => server(rest.trim_end_matches('/'), Some(Protocol::Session)),
            "lobby" => rest.parse().map(Self::Lobby),
            "http" => master_list(rest),
            "https" => Err("https is not supported: give the http:// address of the list, if it has one".into()),
            _ => Err(format!("there are no {scheme}:// targets: use bloodmasters://, session://, lobby:// or http://")),
        }
    }
}

/// `host[:port][/uuid-or-name]`, with or without `lobby://` before it.
impl FromStr for Lobby {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let text = text.strip_prefix("lobby://").unwrap_or(text);
        let (host, id) = match text.split_once('/') {
            Some((host, id)) if !id.is_empty() => (host, Some(names::find(id)?)),
            Some((host, _)) => (host, None),
            None => (text, None),
        };
        let (host, port) = host_and_port(host).map_err(|()| {
            "expected a lobby such as lobby.example.org, 203.0.113.1:29944 or lobby://lobby.example.org/gg2".to_owned()
        })?;
        Ok(Self { host, port, id })
    }
}

fn server(text: &str, protocol: Option<Protocol>) -> Result<Target, String> {
    let (host, port) = host_and_port(text).map_err(|()| EXPECTED.to_owned())?;
    Ok(Target::Server(Server { host, port, protocol }))
}

fn master_list(rest: &str) -> Result<Target, String> {
    let expected = || "expected a list such as http://lobby.example.org/bloodmasterslist.php".to_owned();
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    // What goes into a request line must not end it.
    if !path.chars().all(|c| c.is_ascii_graphic()) {
        return Err(expected());
    }
    let path = match path.split('#').next().unwrap_or_default() {
        "" | "/" => bloodmasters::master_list::PATH.to_owned(),
        path if path.starts_with('?') => format!("/{path}"),
        path => path.to_owned(),
    };
    let (host, port) = host_and_port(host).map_err(|()| expected())?;
    let port = port.unwrap_or(HTTP);
    Ok(Target::MasterList(Page { host, port, path }))
}

const HTTP: NonZeroU16 = NonZeroU16::new(80).expect("80 is not 0");

/// `host`, `host:port`, `[v6]`, `[v6]:port`; a bare IPv6 address is one without a port.
pub fn host_and_port(text: &str) -> Result<(Host, Option<NonZeroU16>), ()> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok((Host::Ip(ip), None));
    }
    let port = |text: &str| match text.parse() {
        Ok(port) if !text.starts_with('+') => Ok(Some(port)),
        _ => Err(()),
    };
    if let Some((inside, behind)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let host = match inside.split_once('%') {
            Some((ip, link)) if !link.is_empty() && link.chars().all(is_name) => {
                ip.parse::<Ipv6Addr>().map_err(drop)?;
                Host::Name(inside.into())
            }
            _ => Host::Ip(inside.parse::<Ipv6Addr>().map_err(drop)?.into()),
        };
        return match behind.strip_prefix(':') {
            Some(text) => Ok((host, port(text)?)),
            None if behind.is_empty() => Ok((host, None)),
            None => Err(()),
        };
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, text)) => (name, port(text)?),
        None => (text, None),
    };
    if let Ok(ip) = name.parse::<std::net::Ipv4Addr>() {
        return Ok((Host::Ip(ip.into()), port));
    }
    let is_good = !name.is_empty() && name.len() <= 253 && !name.starts_with('-') && name.chars().all(is_name);
    if is_good { Ok((Host::Name(name.into()), port)) } else { Err(()) }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// As it stands before a port.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Name(name) if name.contains(':') => write!(f, "[{name}]"),
            Self::Name(name) => f.pad(name),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.protocol {
            write!(f, "{protocol}://")?;
        }
        write!(f, "{}{}", self.host, Port(self.port))
    }
}

impl fmt::Display for Lobby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lobby://{}{}", self.host, Port(self.port))?;
        self.id.map_or(Ok(()), |id| write!(f, "/{}", names::shown(id)))
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = Port(Some(self.port).filter(|port| *port != HTTP));
        write!(f, "http://{}{port}{}", self.host, self.path)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::Lobby(lobby) => lobby.fmt(f),
            Self::MasterList(list) => list.fmt(f),
        }
    }
}

/// A port, if there is one, with the colon before it.
struct Port(Option<NonZeroU16>);

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named_as_people_name_them() {
        for (text, shown) in [
            ("play.example.org", "play.example.org"),
            (" play.example.org:6969 ", "play.example.org:6969"),
            ("203.0.113.1", "203.0.113.1"),
            ("203.0.113.1:1", "203.0.113.1:1"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[2001:db8::1]:45555", "[2001:db8::1]:45555"),
            ("[fe80::1%eth0]:45555", "[fe80::1%eth0]:45555"),
            ("bloodmasters://play.example.org", "bloodmasters://play.example.org"),
            ("Session://[::1]:7/", "session://[::1]:7"),
            ("lobby://lobby.example.org", "lobby://lobby.example.org"),
            ("lobby://lobby.example.org:1/", "lobby://lobby.example.org:1"),
            ("lobby://[::1]:1/gg2", "lobby://[::1]:1/gg2"),
            ("lobby://l/Rallypoint rooms", "lobby://l/rooms"),
            ("lobby://l/1CCF16B1-436d-856f-504d-cc1af306aaa7", "lobby://l/gg2"),
            ("lobby://l/1CCF16B1-436d-856f-504d-cc1af306aaa8", "lobby://l/1ccf16b1-436d-856f-504d-cc1af306aaa8"),
            ("http://lobby.example.org", "http://lobby.example.org/bloodmasterslist.php"),
            ("http://lobby.example.org:8080/list?x=1", "http://lobby.example.org:8080/list?x=1"),
        ] {
            let target: Target = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(target.to_string(), shown);
            assert_eq!(shown.parse(), Ok(target), "what is shown can be given again");
        }
    }

    #[test]
    fn mistakes_say_what_to_do() {
        for wrong in [
            "",
            ":1",
            "host:",
            "host:0",
            "host:65536",
            "host:+1",
            "a b",
            "[host]:1",
            "[::1]x",
            "::1:x",
            "-x",
            "host/x",
            "session://",
            "session://a/b",
        ] {
            assert_eq!(wrong.parse::<Target>(), Err(EXPECTED.to_owned()), "{wrong}");
        }
        for (wrong, part) in [
            ("https://example.org", "https is not supported"),
            ("ftp://example.org", "there are no ftp:// targets"),
            ("lobby://example.org/nonsense", "gg2"),
            ("lobby://", "lobby.example.org"),
            ("http://example.org/a b", "bloodmasterslist.php"),
            ("http://example.org/a\r\nHost: x", "bloodmasterslist.php"),
        ] {
            let error = wrong.parse::<Target>().unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_server_without_a_protocol_is_asked_in_both() {
        let probes = |text: &str| {
            let Ok(Target::Server(server)) = text.parse() else { panic!("{text}") };
            let probes = server.probes(&["192.0.2.1:0".parse().unwrap()], true);
            probes.iter().map(|probe| format!("{}://{}", probe.query.protocol, probe.address)).collect::<Vec<_>>()
        };
        assert_eq!(probes("h"), ["bloodmasters://192.0.2.1:6969", "session://192.0.2.1:45555"]);
        assert_eq!(probes("h:7"), ["bloodmasters://192.0.2.1:7", "session://192.0.2.1:7"]);
        assert_eq!(probes("session://h"), ["session://192.0.2.1:45555"]);
        assert_eq!(probes("bloodmasters://h:7"), ["bloodmasters://192.0.2.1:7"]);
    }
}
