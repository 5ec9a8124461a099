//! What the operator has decided, as it is kept and shown.

use ipnet::IpNet;
use rallypoint_lobby::{Ban, Banned, Bans, NamePattern};
use rallypoint_wire::text::harmless;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::IpAddr,
    str::FromStr,
    time::{Duration, Instant},
};
use thiserror::Error;

/// How many bans, and how many notes, there can be.
pub(super) const MOST: usize = 10_000;

/// The longest reason, pattern or note, in characters.
pub(super) const LONGEST: usize = 500;

/// A network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(pub IpNet);

/// One ban: of a network or of a pattern of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanRule {
    /// Who, by address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Who, by name: `*` stands for anything, `?` for one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why.
    pub reason: String,
    /// Until when, in seconds since 1970; for good if not set.
    pub until: Option<u64>,
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

/// A ban with its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NumberedBan {
    pub id: u64,
    #[serde(flatten)]
    pub rule: BanRule,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// A note about a server or a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub id: u64,
    /// A public ID, an address or a network.
    pub about: String,
    pub text: String,
    /// When it was written, in seconds since 1970.
    pub time: u64,
}

/// All that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub version: u32,
    /// The number of the next ban or note.
    pub next: u64,
    pub bans: Vec<NumberedBan>,
    pub notes: Vec<Note>,
}

impl Default for Record {
    fn default() -> Self {
        Self { version: Self::VERSION, next: 1, bans: Vec::new(), notes: Vec::new() }
    }
}

impl Record {
    pub const VERSION: u32 = 1;

    /// The bans for a registry, which knows no dates.
    pub fn in_force(&self, now: Instant, today: u64) -> Bans {
        self.bans.iter().filter_map(|ban| ban.rule.in_force(now, today)).collect()
    }
}

impl BanRule {
    /// A ban of those who are named, if it is one that an operator would want.
    pub fn new(who: Option<Network>, name: Option<String>, reason: &str, until: Option<u64>) -> Result<Self, NotABan> {
        let name = name.map(|name| name.trim().to_owned());
        match (&who, &name) {
            (Some(Network(net)), None) => {
                let least = if net.addr().is_ipv4() { 8 } else { 16 };
                (net.prefix_len() >= least).then_some(()).ok_or(NotABan::TooWide)?;
            }
            (None, Some(pattern)) => {
                let letters = pattern.chars().filter(|c| !matches!(c, '*' | '?' | ' ')).count();
                (letters >= 3).then_some(()).ok_or(NotABan::TooVague)?;
                text(pattern)?;
            }
            _ => return Err(NotABan::Whom),
        }
        Ok(Self { network: who, name, reason: text(reason)?, until })
    }

    /// Whom it is about, in words.
    #[must_use]
    pub fn whom(&self) -> String {
        match (&self.network, &self.name) {
            (Some(network), _) => network.to_string(),
            (None, Some(name)) => format!("name {name}"),
            (None, None) => String::new(),
        }
    }

    /// Whether it has not ended.
    pub(super) fn is_in_force(&self, today: u64) -> bool {
        self.until.is_none_or(|until| today < until)
    }

    fn in_force(&self, now: Instant, today: u64) -> Option<Ban> {
        let who = match (&self.network, &self.name) {
            (Some(Network(net)), _) => Banned::Network(*net),
            (None, Some(name)) => Banned::Name(NamePattern::new(name)),
            (None, None) => return None,
        };
        // What is too far away for the clock does not end while the program runs.
        let until = self.until.and_then(|until| now.checked_add(Duration::from_secs(until.saturating_sub(today))));
        self.is_in_force(today).then(|| Ban { who, reason: self.reason.as_str().into(), until })
    }
}

/// A text of the operator: what would be replaced in a text of a stranger (L5) is refused here. It would spoil a log or a
/// terminal, and a pattern that has it fits no name as it is shown.
pub(super) fn text(text: &str) -> Result<String, NotABan> {
    let text = text.trim();
    let is_fit = text.chars().count() <= LONGEST && harmless(text) == text;
    is_fit.then(|| text.to_owned()).ok_or(NotABan::Text)
}

impl FromStr for Network {
    type Err = NotABan;

    fn from_str(text: &str) -> Result<Self, NotABan> {
        let one = text.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
        let network = one.or_else(|_| text.parse::<IpNet>().map(|net| net.trunc()));
        network.map(canonical).map(Self).map_err(|_| NotABan::Network)
    }
}

/// A network of IPv4 addresses in IPv6's words is one of IPv4.
fn canonical(net: IpNet) -> IpNet {
    match (net.addr().to_canonical(), net.prefix_len().checked_sub(96)) {
        (IpAddr::V4(ip), Some(length)) if net.addr().is_ipv6() => IpNet::new(ip.into(), length).unwrap_or(net),
        _ => net,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(net) = self;
        if net.prefix_len() == net.max_prefix_len() { net.addr().fmt(f) } else { net.fmt(f) }
    }
}

impl TryFrom<String> for Network {
    type Error = NotABan;

    fn try_from(text: String) -> Result<Self, NotABan> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<BanRule, NotABan> {
        BanRule::new(Some(text.parse()?), None, "", None)
    }

    fn name(text: &str) -> Result<BanRule, NotABan> {
        BanRule::new(None, Some(text.into()), "", None)
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
            assert_eq!(network(text).unwrap().whom(), whom);
        }
        assert_eq!(network("0.0.0.0/0"), Err(NotABan::TooWide));
        assert_eq!(network("2001::/15"), Err(NotABan::TooWide));
        assert_eq!(network("::ffff:0:0/96"), Err(NotABan::TooWide), "all of IPv4");
        assert_eq!(network("example.org"), Err(NotABan::Network));
        assert_eq!(name(" *casino* ").unwrap().whom(), "name *casino*");
        assert_eq!(name("*a?*"), Err(NotABan::TooVague));
        for hidden in ["evil\u{1b}[2J", "evil\u{202e}gnp", "ev\u{200b}il", "evil\nname"] {
            assert_eq!(name(hidden), Err(NotABan::Text), "{hidden:?}");
            assert_eq!(text(hidden), Err(NotABan::Text), "{hidden:?}");
        }
        assert_eq!(text(" Größe 七 👩\u{200d}🚀 "), Ok("Größe 七 👩\u{200d}🚀".into()));
        assert_eq!(BanRule::new(None, None, "", None), Err(NotABan::Whom));
        let both = BanRule::new(Some("192.0.2.1".parse().unwrap()), Some("casino".into()), "", None);
        assert_eq!(both, Err(NotABan::Whom));
        let long = BanRule::new(Some("192.0.2.1".parse().unwrap()), None, &"x".repeat(501), None);
        assert_eq!(long, Err(NotABan::Text));
    }

    #[test]
    fn a_ban_that_has_ended_is_none() {
        let rule = BanRule { until: Some(1_000), ..network("203.0.113.0/24").unwrap() };
        let now = Instant::now();
        assert!(rule.in_force(now, 1_000).is_none());
        assert_eq!(rule.in_force(now, 940).unwrap().until, Some(now + Duration::from_secs(60)));
        assert_eq!(BanRule { until: None, ..rule }.in_force(now, 940).unwrap().until, None);
    }
}
