//! Finding the addresses of lobbies.

use crate::{
    ask::{
        resolve::resolve,
        target::{self, host_and_port},
    },
    failure::complain,
};
use rallypoint_wire::lobby::PORT;
use std::{
    fmt,
    net::{SocketAddr, UdpSocket},
    num::NonZeroU16,
    str::FromStr,
};

/// A lobby as a person names it: `lobby.example.org`, `203.0.113.1:29944`, `[2001:db8::1]:29944`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    host: target::Host,
    port: u16,
}

impl Host {
    /// All addresses, in an order that stays the same.
    pub async fn resolve(&self) -> Vec<SocketAddr> {
        let mut found = resolve(&self.host, self.port, None).await.unwrap_or_default();
        // `localhost` stands for two addresses, and some machines have only one of them.
        found.retain(|addr| !addr.ip().is_loopback() || UdpSocket::bind((addr.ip(), 0)).is_ok());
        found.sort();
        found
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
        self.host.fmt(f)?;
        if self.port == PORT { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl FromStr for Host {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = host_and_port(text.trim()).map_err(
            |()| "expected a name or an address, such as lobby.example.org, 203.0.113.1:29944 or [2001:db8::1]:29944",
        )?;
        Ok(Self { host, port: port.map_or(PORT, NonZeroU16::get) })
    }
}

/// Looks all names up. What cannot be found now stays where it was before.
pub async fn find(hosts: &[Host], before: &[Lobby]) -> Vec<Lobby> {
    let mut lobbies = Vec::new();
    for host in hosts {
        let known = before.iter().find(|lobby| lobby.host == *host);
        match (host.resolve().await, known) {
            (addrs, _) if !addrs.is_empty() => lobbies.push(Lobby { host: host.clone(), addrs }),
            (_, Some(known)) => lobbies.push(known.clone()),
            (_, None) => {
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
            ("2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
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
