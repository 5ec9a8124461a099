//! Targets of a scan, as users write them.

use crate::list_names;
use rallypoint_query_proto::{self as proto, Detail, Probe, Protocol, ServerQuery};
use rallypoint_wire::{
    legacy,
    lobby::{self, ListId, ProtocolId},
};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
    str::FromStr,
};

/// A server, or a list of servers.
///
/// ```
/// use rallypoint_query::Target;
///
/// for text in ["play.example.org", "session://[2001:db8::1]:45555", "lobby://lobby.example.org/gg2"] {
///     let target: Target = text.parse()?;
///     assert_eq!(target.to_string(), text);
/// }
/// # Ok::<(), rallypoint_query::ParseTargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `host`, `host:port`, or `protocol://host:port` with the name of any [`Protocol`].
    Server(ServerAddress),
    /// `lobby://host:port/lobby`.
    Lobby(LobbyAddress),
    /// A lobby that speaks the legacy protocol (L16), which lists only servers with this protocol ID. Has no written form of
    /// its own.
    LegacyLobby(LobbyAddress, ProtocolId),
    /// `http://host:port/path` or `https://...`: the page or the API of a lobby, or a Bloodmasters master list (L17).
    WebList(HttpUrl),
}

/// Address of a game server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Name or IP address.
    pub host: Host,
    /// UDP port; `None` means the default port of each protocol.
    pub port: Option<NonZeroU16>,
    /// Protocol of the server; `None` means that those of [`proto::candidates`] are tried, and the first answer counts.
    pub protocol: Option<Protocol>,
}

/// Address of a lobby, and which of its lists to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyAddress {
    /// Name or IP address.
    pub host: Host,
    /// TCP port; `None` means the default port of the protocol.
    pub port: Option<NonZeroU16>,
    /// The list; `None` means all lists that the lobby is known to have.
    pub id: Option<ListId>,
}

/// An `http://` or `https://` URL: a Bloodmasters master list (L17), or a lobby's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// Whether the connection is encrypted (`https://`).
    pub is_secure: bool,
    /// Name or IP address.
    pub host: Host,
    /// TCP port.
    pub port: NonZeroU16,
    /// Path and query, beginning with a slash.
    pub path: String,
}

/// A host name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IP address.
    Ip(IpAddr),
    /// A name, or a link-local address with the name of an interface, which the system resolves: `fe80::1%eth0`.
    Name(Box<str>),
}

/// Why a text is not a [`Target`]: a sentence that names what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseTargetError(String);

impl ServerAddress {
    /// The probes of this server at its resolved addresses, whose ports are ignored: one for each address and protocol.
    #[must_use]
    pub fn probes(&self, addresses: &[SocketAddr], detail: Detail) -> Vec<Probe> {
        let probe = |address: &SocketAddr, protocol: Protocol| {
            let port = self.port.map_or(protocol.default_port(), NonZeroU16::get);
            let mut address = *address;
            address.set_port(port);
            Probe::new(address, ServerQuery { protocol, detail })
        };
        let protocols = || candidates(self.protocol, self.port.map(NonZeroU16::get));
        addresses.iter().flat_map(|address| protocols().map(move |protocol| probe(address, protocol))).collect()
    }
}

/// The protocols that a server may speak, given the one that it is known to speak, or else its port.
pub(crate) fn candidates(known: Option<Protocol>, port: Option<u16>) -> impl Iterator<Item = Protocol> {
    let guessed = known.is_none().then(|| proto::candidates(port));
    known.into_iter().chain(guessed.into_iter().flatten())
}

impl LobbyAddress {
    /// The TCP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.map_or(lobby::PORT, NonZeroU16::get)
    }

    /// The TCP port of the legacy protocol.
    #[must_use]
    pub fn legacy_port(&self) -> u16 {
        self.port.map_or(legacy::PORT, NonZeroU16::get)
    }
}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else { return server(text, None) };
        let scheme = scheme.to_ascii_lowercase();
        match &*scheme {
            "lobby" => rest.parse().map(Self::Lobby),
            "http" | "https" => text.parse().map(Self::WebList),
            _ => match scheme.parse() {
                Ok(protocol) => server(rest.trim_end_matches('/'), Some(protocol)),
                Err(_) => Err(ParseTargetError(format!("unknown scheme {scheme}://: {}", similar_or_all(&scheme)))),
            },
        }
    }
}

/// `host[:port][/uuid-or-name]`, with or without `lobby://` before it.
impl FromStr for LobbyAddress {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let text = text.trim();
        let text = text.strip_prefix("lobby://").unwrap_or(text);
        let (host, id) = match text.split_once('/') {
            Some((host, id)) if !id.is_empty() => {
                let id = list_names::find(id).map_err(|error| ParseTargetError(error.to_string()))?;
                (host, Some(id))
            }
            Some((host, _)) => (host, None),
            None => (text, None),
        };
        let (host, port) = split_port(host).ok_or_else(|| {
            ParseTargetError(
                "expected a lobby such as lobby.example.org, 203.0.113.1:29944 or lobby://lobby.example.org/gg2".into(),
            )
        })?;
        Ok(Self { host, port, id })
    }
}

impl HttpUrl {
    const HTTP_PORT: NonZeroU16 = NonZeroU16::new(80).expect("80 is not 0");
    const HTTPS_PORT: NonZeroU16 = NonZeroU16::new(443).expect("443 is not 0");

    const fn default_port(is_secure: bool) -> NonZeroU16 {
        if is_secure { Self::HTTPS_PORT } else { Self::HTTP_PORT }
    }
}

/// `http://host[:port][/path]` or `https://...`.
impl FromStr for HttpUrl {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let expected = || ParseTargetError("expected a URL such as https://lobby.example.org/".into());
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(expected)?;
        let is_secure = match &*scheme.to_ascii_lowercase() {
            "http" => false,
            "https" => true,
            _ => return Err(expected()),
        };
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        // The path becomes part of a request line, which it must not end.
        if !path.chars().all(|c| c.is_ascii_graphic()) {
            return Err(expected());
        }
        let path = match path.split('#').next().unwrap_or_default() {
            "" => "/".to_owned(),
            path if path.starts_with('?') => format!("/{path}"),
            path => path.to_owned(),
        };
        let (host, port) = split_port(host).ok_or_else(expected)?;
        Ok(Self { is_secure, host, port: port.unwrap_or(Self::default_port(is_secure)), path })
    }
}

fn server(text: &str, protocol: Option<Protocol>) -> Result<Target, ParseTargetError> {
    let (host, port) = split_port(text).ok_or_else(|| ParseTargetError(EXPECTED.into()))?;
    Ok(Target::Server(ServerAddress { host, port, protocol }))
}

const EXPECTED: &str = "expected a server such as play.example.org, 203.0.113.1:6969, [2001:db8::1]:45555 or \
                        session://play.example.org, or a list such as lobby://lobby.example.org";

/// `bloodmasters://, session://, lobby://, http:// or https://`.
/// Similarity (0 to 1) from which on a scheme is probably meant.
const SIMILAR: f64 = 0.85;

/// Which schemes may be meant: up to three with a similar name, or else all.
fn similar_or_all(scheme: &str) -> String {
    let known = Protocol::ALL.iter().map(|protocol| protocol.as_str()).chain(["lobby", "http", "https"]);
    let known = known.map(|known| (strsim::jaro_winkler(scheme, known), known));
    let mut similar: Vec<_> = known.filter(|(similarity, _)| *similarity >= SIMILAR).collect();
    similar.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut similar: Vec<_> = similar.into_iter().take(3).map(|(_, known)| format!("{known}://")).collect();
    match similar.pop() {
        None => format!("use {}", schemes()),
        Some(last) if similar.is_empty() => format!("did you mean {last}?"),
        Some(last) => format!("did you mean {} or {last}?", similar.join(", ")),
    }
}

fn schemes() -> String {
    let servers: String = Protocol::ALL.iter().map(|protocol| format!("{protocol}://, ")).collect();
    servers + "lobby://, http:// or https://"
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`; a bare IPv6 address has no port. `None` if the text is none of them.
#[must_use]
pub fn split_port(text: &str) -> Option<(Host, Option<NonZeroU16>)> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some((Host::Ip(ip), None));
    }
    let port = |text: &str| text.parse::<NonZeroU16>().ok().filter(|_| !text.starts_with('+'));
    if let Some((inside, behind)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let host = match inside.split_once('%') {
            Some((ip, interface)) if !interface.is_empty() && interface.chars().all(is_name_char) => {
                ip.parse::<Ipv6Addr>().ok()?;
                Host::Name(inside.into())
            }
            _ => Host::Ip(inside.parse::<Ipv6Addr>().ok()?.into()),
        };
        return match behind.strip_prefix(':') {
            Some(text) => Some((host, Some(port(text)?))),
            None if behind.is_empty() => Some((host, None)),
            None => None,
        };
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, text)) => (name, Some(port(text)?)),
        None => (text, None),
    };
    if let Ok(ip) = name.parse::<Ipv4Addr>() {
        return Some((Host::Ip(ip.into()), port));
    }
    let is_valid = !name.is_empty() && name.len() <= 253 && !name.starts_with('-') && name.chars().all(is_name_char);
    is_valid.then(|| (Host::Name(name.into()), port))
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// As written before a port: IPv6 addresses in brackets.
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

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.protocol {
            write!(f, "{protocol}://")?;
        }
        write!(f, "{}{}", self.host, PortSuffix(self.port))
    }
}

impl fmt::Display for LobbyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lobby://{}{}", self.host, PortSuffix(self.port))?;
        self.id.map_or(Ok(()), |id| write!(f, "/{}", list_names::short_name(id)))
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        let port = PortSuffix(Some(self.port).filter(|port| *port != Self::default_port(self.is_secure)));
        write!(f, "{scheme}://{}{port}{}", self.host, self.path)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::Lobby(lobby) | Self::LegacyLobby(lobby, _) => lobby.fmt(f),
            Self::WebList(url) => url.fmt(f),
        }
    }
}

/// A port, if there is one, preceded by a colon.
struct PortSuffix(Option<NonZeroU16>);

impl fmt::Display for PortSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_as_users_write_them() {
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
            ("http://lobby.example.org", "http://lobby.example.org/"),
            ("http://lobby.example.org:8080/list?x=1", "http://lobby.example.org:8080/list?x=1"),
            ("HTTPS://lobby.example.org/list", "https://lobby.example.org/list"),
            ("https://lobby.example.org:80/", "https://lobby.example.org:80/"),
        ] {
            let target: Target = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(target.to_string(), shown);
            assert_eq!(shown.parse(), Ok(target), "what is shown can be parsed again");
        }
    }

    #[test]
    fn invalid_targets_say_what_was_expected() {
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
            assert_eq!(wrong.parse::<Target>(), Err(ParseTargetError(EXPECTED.into())), "{wrong}");
        }
        for (wrong, part) in [
            ("ftp://example.org", "unknown scheme ftp://: use bloodmasters://, session://, "),
            ("mumblee://example.org", "unknown scheme mumblee://: did you mean mumble://?"),
            ("quake4://example.org", "unknown scheme quake4://: did you mean quake"),
            ("ftp://example.org", "://, lobby://, http:// or https://"),
            ("lobby://example.org/nonsense", "gg2"),
            ("lobby://", "lobby.example.org"),
            ("http://example.org/a b", "expected a URL"),
            ("http://example.org/a\r\nHost: x", "expected a URL"),
        ] {
            let error = wrong.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_server_without_a_protocol_is_probed_with_several() {
        let probes = |text: &str| {
            let Ok(Target::Server(server)) = text.parse() else { panic!("{text}") };
            let probes = server.probes(&["192.0.2.1:0".parse().unwrap()], Detail::Info);
            probes.iter().map(|probe| format!("{}://{}", probe.query.protocol, probe.address)).collect::<Vec<_>>()
        };
        assert_eq!(probes("h"), ["bloodmasters://192.0.2.1:6969", "session://192.0.2.1:45555"]);
        assert_eq!(probes("h:7"), ["bloodmasters://192.0.2.1:7", "session://192.0.2.1:7"]);
        assert_eq!(probes("session://h"), ["session://192.0.2.1:45555"]);
        assert_eq!(probes("bloodmasters://h:7"), ["bloodmasters://192.0.2.1:7"]);
    }
}
