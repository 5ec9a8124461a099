//! The host and port of a lobby, and the addresses behind it.

use crate::ParseLobbyHostError;
use rallypoint_udp::UdpSocket;
use rallypoint_wire::lobby::PORT;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    num::NonZeroU16,
    str::FromStr,
};

/// Maximum number of addresses used per name. A name can have hundreds; a few of them are enough.
const MAX_ADDRESSES: usize = 16;

/// Longest possible host name in DNS, in bytes.
const MAX_NAME: usize = 253;

/// A lobby by name or address, with a port if it is not 29944: `lobby.example.org`, `203.0.113.1:29944`,
/// `[2001:db8::1]:29944`.
///
/// ```
/// use rallypoint_announce::LobbyHost;
///
/// let host: LobbyHost = "localhost:4000".parse()?;
/// assert_eq!(host.to_string(), "localhost:4000");
/// // A machine without IPv6 has only the first of these two.
/// assert_eq!(host.resolve()[0], "127.0.0.1:4000".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LobbyHost {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    Ip(IpAddr),
    /// A DNS name, or a link-local address with its interface, which only the system can interpret: `fe80::1%eth0`.
    Name(String),
}

/// A lobby and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedLobby {
    /// The lobby as it was configured.
    pub host: LobbyHost,
    /// Its addresses of both families, sorted, at least one.
    pub addrs: Vec<SocketAddr>,
}

impl LobbyHost {
    /// All addresses, sorted; none if the name is unknown. Blocks while the system's resolver works, which takes up to
    /// tens of seconds if no name server responds.
    #[must_use]
    pub fn resolve(&self) -> Vec<SocketAddr> {
        let found = self.resolve_locally().or_else(|| match &self.host {
            Host::Name(name) => Some((name.as_str(), self.port).to_socket_addrs().ok()?.collect()),
            Host::Ip(_) => None,
        });
        usable(found.unwrap_or_default())
    }

    /// The addresses, if they can be found without a name server.
    pub(crate) fn resolve_now(&self) -> Option<Vec<SocketAddr>> {
        self.resolve_locally().map(usable)
    }

    fn resolve_locally(&self) -> Option<Vec<SocketAddr>> {
        let port = self.port;
        match &self.host {
            Host::Ip(ip) => Some(vec![SocketAddr::new(*ip, port)]),
            // Many systems map this name to one family only.
            Host::Name(name) if name.eq_ignore_ascii_case("localhost") => {
                Some(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()])
            }
            Host::Name(_) => None,
        }
    }
}

fn usable(mut addrs: Vec<SocketAddr>) -> Vec<SocketAddr> {
    // `localhost` stands for two addresses, and some machines have only one of them.
    addrs.retain(|addr| !addr.ip().is_loopback() || UdpSocket::bind(SocketAddr::new(addr.ip(), 0), 0).is_ok());
    addrs.truncate(MAX_ADDRESSES);
    addrs.sort();
    addrs.dedup();
    addrs
}

impl From<SocketAddr> for LobbyHost {
    fn from(addr: SocketAddr) -> Self {
        Self { host: Host::Ip(addr.ip()), port: addr.port() }
    }
}

impl fmt::Display for LobbyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Host::Ip(ip) => write!(f, "{ip}"),
            Host::Name(name) if name.contains(':') => write!(f, "[{name}]"),
            Host::Name(name) => f.write_str(name),
        }?;
        if self.port == PORT { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl FromStr for LobbyHost {
    type Err = ParseLobbyHostError;

    fn from_str(text: &str) -> Result<Self, ParseLobbyHostError> {
        let text = text.trim();
        if let Ok(ip) = text.parse() {
            return Ok(Self { host: Host::Ip(ip), port: PORT });
        }
        let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((host, "")) => (parse_bracketed(host)?, PORT),
            Some((host, port)) => {
                (parse_bracketed(host)?, parse_port(port.strip_prefix(':').ok_or(ParseLobbyHostError)?)?)
            }
            None => match text.rsplit_once(':') {
                Some((host, port)) => (parse_unbracketed(host)?, parse_port(port)?),
                None => (parse_unbracketed(text)?, PORT),
            },
        };
        Ok(Self { host, port })
    }
}

fn parse_port(text: &str) -> Result<u16, ParseLobbyHostError> {
    if text.starts_with('+') {
        return Err(ParseLobbyHostError);
    }
    text.parse().map(NonZeroU16::get).map_err(|_| ParseLobbyHostError)
}

fn parse_bracketed(text: &str) -> Result<Host, ParseLobbyHostError> {
    let (ip, is_scoped) = match text.split_once('%') {
        Some((ip, interface)) if !interface.is_empty() && interface.chars().all(is_name_char) => (ip, true),
        _ => (text, false),
    };
    let ip: Ipv6Addr = ip.parse().map_err(|_| ParseLobbyHostError)?;
    Ok(if is_scoped { Host::Name(text.to_owned()) } else { Host::Ip(ip.into()) })
}

fn parse_unbracketed(text: &str) -> Result<Host, ParseLobbyHostError> {
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    let is_name =
        !text.is_empty() && text.len() <= MAX_NAME && !text.starts_with('-') && text.chars().all(is_name_char);
    if is_name { Ok(Host::Name(text.to_owned())) } else { Err(ParseLobbyHostError) }
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_and_addresses_with_and_without_port() {
        for (text, shown) in [
            ("lobby.example.org", "lobby.example.org"),
            ("lobby.example.org:29944", "lobby.example.org"),
            ("lobby.example.org:1234", "lobby.example.org:1234"),
            ("203.0.113.1", "203.0.113.1"),
            ("203.0.113.1:1234", "203.0.113.1:1234"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[2001:db8::1]:1234", "[2001:db8::1]:1234"),
            ("[fe80::1%eth0]:1234", "[fe80::1%eth0]:1234"),
            (" localhost ", "localhost"),
        ] {
            assert_eq!(text.parse::<LobbyHost>().unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            "lobby:",
            "lobby:0",
            "lobby:99999",
            "lobby:+1",
            "http://lobby",
            "[lobby]:1",
            "[::1]1",
            "two words",
            ":29944",
            "-lobby",
        ] {
            assert_eq!(wrong.parse::<LobbyHost>(), Err(ParseLobbyHostError), "{wrong}");
        }
    }

    #[test]
    fn localhost_has_the_loopback_address_of_each_family() {
        let found = "localhost:7".parse::<LobbyHost>().unwrap().resolve();
        assert!(found.contains(&"127.0.0.1:7".parse().unwrap()), "{found:?}");
        assert!(found.iter().all(|addr| addr.ip().is_loopback() && addr.port() == 7), "{found:?}");
    }
}
