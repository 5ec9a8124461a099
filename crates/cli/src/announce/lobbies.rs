//! Finding the addresses of lobbies.

use crate::failure::complain;
use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

/// A lobby as a person names it: `lobby.example.org`, `203.0.113.1:29944`, `[2001:db8::1]:29944`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: u16,
}

impl Host {
    /// All addresses, without repetition.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        if self.name.eq_ignore_ascii_case("localhost") {
            // Many machines know only one of the two by this name, and some have only one.
            let both = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
            let exists = |ip: &IpAddr| std::net::UdpSocket::bind((*ip, 0)).is_ok();
            return Ok(both.into_iter().filter(exists).map(|ip| SocketAddr::new(ip, self.port)).collect());
        }
        let mut found = Vec::new();
        for addr in tokio::net::lookup_host((&*self.name, self.port)).await? {
            if !found.contains(&addr) {
                found.push(addr);
            }
        }
        // A name can have a great many addresses, but then one of each family stands for all of them.
        found.truncate(16);
        Ok(found)
    }
}

/// A lobby, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lobby {
    pub host: Host,
    pub addrs: Vec<SocketAddr>,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.parse::<Ipv6Addr>() {
            Ok(ip) => write!(f, "[{ip}]:{}", self.port),
            Err(_) if self.port == rallypoint_wire::lobby::PORT => f.write_str(&self.name),
            Err(_) => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

impl FromStr for Host {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "expected a name or an address, such as lobby.example.org, 203.0.113.1:29944 or [2001:db8::1]:29944";
        let text = text.trim();
        let of = |name: &str, port| Ok(Self { name: name.into(), port });
        let default = rallypoint_wire::lobby::PORT;
        if let Ok(ip) = text.parse::<IpAddr>() {
            return of(&ip.to_string(), default);
        }
        if let Ok(addr) = text.parse::<SocketAddr>() {
            return if addr.port() == 0 { Err(expected) } else { of(&addr.ip().to_string(), addr.port()) };
        }
        if let Some(ip) = text.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            return ip.parse::<Ipv6Addr>().map_err(|_| expected).and_then(|ip| of(&ip.to_string(), default));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0).ok_or(expected)?),
            None => (text, default),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || !name.chars().all(is_name) { Err(expected) } else { of(name, port) }
    }
}

/// Looks all names up. What cannot be found now stays where it was before.
pub async fn find(hosts: &[Host], before: &[Lobby]) -> Vec<Lobby> {
    let mut lobbies = Vec::new();
    for host in hosts {
        let known = before.iter().find(|lobby| lobby.host == *host);
        match (host.resolve().await, known) {
            (Ok(mut addrs), _) if !addrs.is_empty() => {
                // The order of a name's addresses changes with every look, which is no change.
                addrs.sort();
                lobbies.push(Lobby { host: host.clone(), addrs });
            }
            (_, Some(known)) => lobbies.push(known.clone()),
            (Ok(_), None) => complain(format_args!("the lobby {host} has no address")),
            (Err(_), None) => {
                complain(format_args!("the lobby {host} cannot be found: is the name right, and is there a network?"));
            }
        }
    }
    lobbies
}

/// All addresses of all lobbies, each once.
pub fn addrs(lobbies: &[Lobby]) -> Vec<SocketAddr> {
    let mut addrs: Vec<_> = lobbies.iter().flat_map(|lobby| &lobby.addrs).copied().collect();
    addrs.sort();
    addrs.dedup();
    addrs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lobbies_are_named_as_people_name_them() {
        for (text, shown) in [
            ("lobby.example.org", "lobby.example.org"),
            ("lobby.example.org:29944", "lobby.example.org"),
            ("lobby.example.org:1234", "lobby.example.org:1234"),
            ("203.0.113.1", "203.0.113.1"),
            ("203.0.113.1:1234", "203.0.113.1:1234"),
            ("2001:db8::1", "[2001:db8::1]:29944"),
            ("[2001:db8::1]", "[2001:db8::1]:29944"),
            ("[2001:db8::1]:1234", "[2001:db8::1]:1234"),
            (" localhost ", "localhost"),
        ] {
            assert_eq!(text.parse::<Host>().unwrap().to_string(), shown);
        }
        for wrong in ["", "lobby:", "lobby:0", "lobby:99999", "http://lobby", "[lobby]:1", "two words", ":29944"] {
            assert!(wrong.parse::<Host>().is_err(), "{wrong}");
        }
    }
}
