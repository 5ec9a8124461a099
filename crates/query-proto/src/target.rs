//! Whom to ask, and what.

use rallypoint_wire::{bloodmasters, session};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    str::FromStr,
};

/// A server to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Where it is. Only what comes from there counts as an answer.
    pub address: SocketAddr,
    /// What to ask.
    pub question: Question,
    /// Whatever the caller wants to know it by; it comes back with the report.
    pub tag: u64,
}

/// What to ask a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Everything, by document 002.
    Bloodmasters,
    /// The seven infos of document 003.
    Session {
        /// And who plays there, if anybody does.
        players: bool,
    },
}

/// Why a target can't be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No answer can ever come from such an address.
    #[error("{0} is no address that a server can answer from: give the server's own address and port")]
    NotAServer(SocketAddr),
    /// [`ProberConfig::max_targets`](crate::ProberConfig::max_targets) are waiting.
    #[error("{0} servers are waiting to be asked already: take results first, or allow more")]
    TooMany(usize),
}

impl Target {
    /// A target without a tag.
    #[must_use]
    pub const fn new(address: SocketAddr, question: Question) -> Self {
        Self { address, question, tag: 0 }
    }

    /// How a listed server can be asked, if the value of its key `x-query` says so (E1): `bloodmasters` or `session`, each
    /// optionally with `:port`, at the address where it is listed.
    #[must_use]
    pub fn from_x_query(value: &[u8], listed: SocketAddr) -> Option<Self> {
        let value = std::str::from_utf8(value).ok()?;
        let (question, port) = match value.split_once(':') {
            Some((_, port)) if port.starts_with('+') => return None,
            Some((question, port)) => (question, port.parse::<NonZeroU16>().ok()?.get()),
            None => (value, listed.port()),
        };
        Some(Self::new(SocketAddr::new(listed.ip(), port), question.parse().ok()?))
    }

    /// Whether an answer can come from there at all.
    pub(crate) fn is_askable(&self) -> bool {
        let ip = self.address.ip().to_canonical();
        let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
        self.address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
    }
}

impl Question {
    /// The port of a server that was not told otherwise (B8, S34).
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Bloodmasters => bloodmasters::PORT,
            Self::Session { .. } => session::PORT,
        }
    }

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Bloodmasters => Kind::Bloodmasters,
            Self::Session { .. } => Kind::Session,
        }
    }
}

/// The name of its protocol, as `x-query` and URLs have it.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bloodmasters => "bloodmasters",
            Self::Session { .. } => "session",
        })
    }
}

/// Reads the name of a protocol; players are asked for.
impl FromStr for Question {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        match name {
            "bloodmasters" => Ok(Self::Bloodmasters),
            "session" => Ok(Self::Session { players: true }),
            _ => Err(UnknownProtocol),
        }
    }
}

/// A name that is none of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("servers are asked by `bloodmasters` or `session`")]
pub struct UnknownProtocol;

/// A protocol. Two targets of the same protocol at the same address are asked one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Bloodmasters,
    Session,
}

/// Where an answer has to come from: an address without what does not belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    ip: IpAddr,
    port: u16,
    /// Only a link-local address is another one on another link.
    link: u32,
}

impl Peer {
    pub fn of(address: SocketAddr) -> Self {
        let link = match address {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => v6.scope_id(),
            _ => 0,
        };
        Self { ip: address.ip().to_canonical(), port: address.port(), link }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn e1_x_query_names_a_protocol_and_maybe_a_port() {
        let listed = address("192.0.2.1:8190");
        let read =
            |value: &str| Target::from_x_query(value.as_bytes(), listed).map(|t| (t.address.to_string(), t.question));
        assert_eq!(read("bloodmasters"), Some(("192.0.2.1:8190".into(), Question::Bloodmasters)));
        assert_eq!(read("session:45555"), Some(("192.0.2.1:45555".into(), Question::Session { players: true })));
        for wrong in ["", "quake", "session:", "session:0", "session:+1", "session:65536", "bloodmasters:1:2"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(Target::from_x_query(b"session\xff", listed), None);
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        assert_eq!(Peer::of(address("192.0.2.1:9")), Peer::of(address("[::ffff:192.0.2.1]:9")));
        assert_ne!(Peer::of(address("192.0.2.1:9")), Peer::of(address("192.0.2.1:8")));
        assert_eq!(Peer::of(address("[2001:db8::1%2]:9")), Peer::of(address("[2001:db8::1]:9")));
        assert_ne!(Peer::of(address("[fe80::1%2]:9")), Peer::of(address("[fe80::1%3]:9")));
    }

    #[test]
    fn nobody_answers_from_nowhere() {
        for wrong in ["0.0.0.0:1", "[::]:1", "192.0.2.1:0", "224.0.0.1:1", "255.255.255.255:1", "[ff02::1]:1"] {
            assert!(!Target::new(address(wrong), Question::Bloodmasters).is_askable(), "{wrong}");
        }
        assert!(Target::new(address("127.0.0.1:1"), Question::Bloodmasters).is_askable());
    }
}
