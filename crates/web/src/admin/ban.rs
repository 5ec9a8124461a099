//! Who is banned, as the operator says it.

use super::network::Network;
use rallypoint_lobby_proto::{Ban, Banned, NamePattern, PublicId};
use rallypoint_wire::{lobby::Transport, text::harmless};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};
use thiserror::Error;

/// The longest reason, pattern or note, in characters.
const LONGEST: usize = 500;

/// One ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanRule {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Why.
    pub reason: String,
    /// Until when, in seconds since 1970; for good if not set.
    pub until: Option<u64>,
}

/// Who is banned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// Whoever has one of these addresses.
    Network(#[serde(with = "as_text")] Network),
    /// Whoever has such a name: `*` stands for anything, `?` for one character.
    Name(String),
    /// One server, which was taken off the list.
    Server(Unlisted),
}

/// A server that was taken off the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlisted {
    /// What it is called in public.
    #[serde(with = "as_text")]
    pub id: PublicId,
    /// Its name.
    pub name: String,
    /// How players reached it.
    #[serde(with = "TransportCode")]
    pub transport: Transport,
    /// Where players reached it.
    pub addresses: Vec<SocketAddr>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Transport", rename_all = "snake_case")]
enum TransportCode {
    Tcp,
    Udp,
}

/// Why something cannot be banned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotABan {
    /// Nobody is named, or twice.
    #[error("expected one of address, network and name")]
    Whom,
    /// Not an address or network.
    #[error("expected an address such as 203.0.113.9 or a network such as 203.0.113.0/24")]
    Network,
    /// It would shut out a large part of the world.
    #[error("the network is too wide: at least /8 (IPv4) or /16 (IPv6); wider ones belong into the configuration file")]
    TooWide,
    /// It would fit nearly every name.
    #[error("the pattern has to have at least three characters besides * and ?")]
    TooVague,
    /// A text is too long, or has characters that cannot be seen.
    #[error("a text has one line of at most {LONGEST} characters, all of which can be seen")]
    Text,
}

impl BanRule {
    /// Whether it has not ended.
    pub(super) fn is_in_force(&self, today: u64) -> bool {
        self.until.is_none_or(|until| today < until)
    }

    /// For a registry, which knows no dates. A ban that has ended is none.
    pub(super) fn in_force(&self, now: Instant, today: u64) -> Option<Ban> {
        // What is too far away for the clock does not end while the program runs.
        let until = self.until.and_then(|until| now.checked_add(Duration::from_secs(until.saturating_sub(today))));
        self.is_in_force(today).then(|| Ban { who: self.who.banned(), reason: self.reason.as_str().into(), until })
    }
}

impl Who {
    /// A network, if it is one that an operator would want to ban.
    pub fn network(network: Network) -> Result<Self, NotABan> {
        let least = if network.0.addr().is_ipv4() { 8 } else { 16 };
        (network.0.prefix_len() >= least).then_some(Self::Network(network)).ok_or(NotABan::TooWide)
    }

    /// A pattern of names, if it does not fit nearly all of them.
    pub fn name(pattern: &str) -> Result<Self, NotABan> {
        let pattern = text(pattern)?;
        let letters = pattern.chars().filter(|c| !matches!(c, '*' | '?' | ' ')).count();
        (letters >= 3).then_some(Self::Name(pattern)).ok_or(NotABan::TooVague)
    }

    /// Whether both are about the same, though more may be known of one than of the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(one), Self::Server(other)) => one.id == other.id,
            _ => self == other,
        }
    }

    fn banned(&self) -> Banned {
        match self {
            Self::Network(Network(net)) => Banned::Network(*net),
            Self::Name(pattern) => Banned::Name(NamePattern::new(pattern)),
            Self::Server(Unlisted { id, transport, addresses, .. }) => {
                Banned::Server { id: *id, transport: *transport, addresses: addresses.clone() }
            }
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Name(pattern) => write!(f, "name {pattern}"),
            Self::Server(server) => write!(f, "server {}", server.id),
        }
    }
}

/// A text of the operator: what would be replaced in a text of a stranger (L5) is refused here. It would spoil a log or a
/// terminal, and a pattern that has it fits no name as it is shown.
pub(super) fn text(text: &str) -> Result<String, NotABan> {
    let text = text.trim();
    let is_fit = text.chars().count() <= LONGEST && harmless(text) == text;
    is_fit.then(|| text.to_owned()).ok_or(NotABan::Text)
}

/// Values that are kept and shown as text.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::{fmt::Display, str::FromStr};

    pub fn serialize<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<Who, NotABan> {
        text.parse().and_then(Who::network)
    }

    #[test]
    fn who_can_be_banned() {
        for (text, whom) in [
            ("203.0.113.9", "203.0.113.9"),
            ("203.0.113.9/24", "203.0.113.0/24"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1/128", "192.0.2.1"),
            ("::ffff:192.0.2.1/120", "192.0.2.0/24"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), whom);
        }
        assert_eq!(network("0.0.0.0/0"), Err(NotABan::TooWide));
        assert_eq!(network("2001::/15"), Err(NotABan::TooWide));
        assert_eq!(network("::ffff:0:0/96"), Err(NotABan::TooWide), "all of IPv4");
        assert_eq!(network("example.org"), Err(NotABan::Network));
        assert_eq!(Who::name(" *casino* ").unwrap().to_string(), "name *casino*");
        assert_eq!(Who::name("*a?*"), Err(NotABan::TooVague));
    }

    #[test]
    fn texts_can_be_seen() {
        for hidden in ["evil\u{1b}[2J", "evil\u{202e}gnp", "ev\u{200b}il", "evil\nname"] {
            assert_eq!(Who::name(hidden), Err(NotABan::Text), "{hidden:?}");
            assert_eq!(text(hidden), Err(NotABan::Text), "{hidden:?}");
        }
        assert_eq!(text(&"x".repeat(501)), Err(NotABan::Text));
        assert_eq!(text(" Größe 七 👩\u{200d}🚀 "), Ok("Größe 七 👩\u{200d}🚀".into()));
    }

    #[test]
    fn a_ban_that_has_ended_is_none() {
        let rule = BanRule { who: network("203.0.113.0/24").unwrap(), reason: String::new(), until: Some(1_000) };
        let now = Instant::now();
        assert!(rule.in_force(now, 1_000).is_none());
        assert_eq!(rule.in_force(now, 940).unwrap().until, Some(now + Duration::from_secs(60)));
        assert_eq!(BanRule { until: None, ..rule }.in_force(now, 940).unwrap().until, None);
    }

    #[test]
    fn bans_are_read_as_they_are_kept() {
        let server = Unlisted {
            id: PublicId::from_bytes([7; 16]),
            name: "Bacon Town".into(),
            transport: Transport::Udp,
            addresses: vec!["203.0.113.9:8190".parse().unwrap(), "[2001:db8::9]:8190".parse().unwrap()],
        };
        for (who, kept) in [
            (network("203.0.113.0/24").unwrap(), r#"{"network":"203.0.113.0/24","#),
            (Who::name("casino").unwrap(), r#"{"name":"casino","#),
            (Who::Server(server), r#"{"server":{"id":"0707"#),
        ] {
            let rule = BanRule { who, reason: "test".into(), until: Some(7) };
            let json = serde_json::to_string(&rule).unwrap();
            assert!(json.starts_with(kept), "{json}");
            assert_eq!(serde_json::from_str::<BanRule>(&json).unwrap(), rule);
        }
        assert!(serde_json::from_str::<BanRule>(r#"{"reason":"","until":null}"#).is_err(), "nobody is named");
    }
}
