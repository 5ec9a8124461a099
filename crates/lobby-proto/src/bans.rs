//! Bans: what is banned, why, and until when.

mod list;
mod name_pattern;
mod network;
#[cfg(feature = "serde")]
mod serde_form;

pub use list::BanList;
pub(crate) use list::Candidate;
pub use name_pattern::NamePattern;
pub use network::{CanonicalNetwork, ParseNetworkError};

use crate::PublicId;
use rallypoint_wire::{lobby::Transport, text::sanitize};
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use thiserror::Error;

/// Maximum length of a reason, a name pattern or a note, in characters.
pub const MAX_OPERATOR_TEXT: usize = 500;

/// Minimum prefix lengths of a network that can be banned without editing the configuration file.
const MIN_PREFIX_V4: u8 = 8;
const MIN_PREFIX_V6: u8 = 16;

/// Minimum number of characters of a name pattern besides `*`, `?` and spaces.
const MIN_LETTERS: usize = 3;

/// One ban: its subject, the reason and an optional end.
///
/// One type for all places: the configuration, the operator's file, the API and, as a member of a [`BanList`], the
/// registry. With the feature `serde` it is an object such as
/// `{"network":"203.0.113.0/24","reason":"spam","until":1800000000}`; `until` is in seconds since 1970, or `null`.
///
/// ```
/// use rallypoint_lobby_proto::{Ban, BanList, BanSubject};
/// use std::time::{Duration, Instant, SystemTime};
///
/// let (now, utc) = (Instant::now(), SystemTime::now());
/// let subject = BanSubject::Network("203.0.113.0/24".parse()?);
/// let ban = Ban { subject, reason: "spam".into(), until: Some(utc + Duration::from_secs(3600)) };
/// assert_eq!(ban.to_string(), "203.0.113.0/24 (spam)");
///
/// let bans = BanList::new([ban], now, utc);
/// assert!(bans.by_address(now, "203.0.113.9".parse()?).is_some());
/// assert!(bans.by_address(now + Duration::from_secs(3600), "203.0.113.9".parse()?).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ban {
    /// The banned subject.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub subject: BanSubject,
    /// Why, for the operator and for the owner of a banned server; may be empty.
    #[cfg_attr(feature = "serde", serde(with = "serde_form::shared_text"))]
    pub reason: Arc<str>,
    /// When the ban ends, in UTC; `None` if it is permanent.
    #[cfg_attr(feature = "serde", serde(default, with = "serde_form::unix_seconds"))]
    pub until: Option<SystemTime>,
}

/// The subject that a [`Ban`] applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum BanSubject {
    /// Every address of a network, or one address.
    Network(#[cfg_attr(feature = "serde", serde(with = "serde_form::as_text"))] CanonicalNetwork),
    /// Servers whose name, as displayed, matches a pattern.
    Name(#[cfg_attr(feature = "serde", serde(with = "serde_form::as_text"))] NamePattern),
    /// One server.
    Server(UnlistedServer),
}

/// A server that was taken off the list: identified by its public ID, and by its addresses because a restarted server has
/// a new ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnlistedServer {
    /// Its public ID.
    #[cfg_attr(feature = "serde", serde(with = "serde_form::as_text"))]
    pub id: PublicId,
    /// Its name when it was banned, for the operator.
    pub name: String,
    /// The transport of its endpoints.
    #[cfg_attr(feature = "serde", serde(with = "serde_form::TransportCode"))]
    pub transport: Transport,
    /// The addresses under which it was listed.
    pub addresses: Vec<SocketAddr>,
}

/// Why a ban that an operator requested is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OperatorInputError {
    /// No subject was given, or more than one.
    #[error("expected one of address, network and name")]
    Subject,
    /// Not an address or network.
    #[error(transparent)]
    Network(#[from] ParseNetworkError),
    /// The network is so large that it is most likely a mistake.
    #[error(
        "the network is too wide: at least /{MIN_PREFIX_V4} (IPv4) or /{MIN_PREFIX_V6} (IPv6) is required; wider networks \
         can be banned in the configuration file"
    )]
    TooWide,
    /// The pattern would match nearly every name.
    #[error("the pattern needs at least three characters besides * and ?")]
    TooVague,
    /// A text is too long, or has control or invisible characters.
    #[error("expected one line of at most {MAX_OPERATOR_TEXT} visible characters")]
    Text,
}

impl Ban {
    /// Whether the ban has not ended.
    #[must_use]
    pub fn is_in_force(&self, utc: SystemTime) -> bool {
        self.until.is_none_or(|until| utc < until)
    }

    /// The reason, if there is one.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        (!self.reason.is_empty()).then(|| Arc::clone(&self.reason))
    }

    /// When the ban ends on the monotonic clock; `None` if it does not end while the program runs.
    fn deadline(&self, now: Instant, utc: SystemTime) -> Option<Instant> {
        let left = self.until?.duration_since(utc).unwrap_or(Duration::ZERO);
        // An end beyond the range of the clock is not reached.
        now.checked_add(left)
    }
}

/// The subject, followed by the reason in parentheses if there is one.
impl fmt::Display for Ban {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, " ({})", self.reason) }
    }
}

impl BanSubject {
    /// A network, unless it is too wide for a ban by hand.
    pub fn network(network: CanonicalNetwork) -> Result<Self, OperatorInputError> {
        let min_prefix = if network.0.addr().is_ipv4() { MIN_PREFIX_V4 } else { MIN_PREFIX_V6 };
        (network.0.prefix_len() >= min_prefix).then_some(Self::Network(network)).ok_or(OperatorInputError::TooWide)
    }

    /// A name pattern, unless it would match nearly all names.
    pub fn name(pattern: &str) -> Result<Self, OperatorInputError> {
        let pattern = operator_text(pattern)?;
        let letters = pattern.chars().filter(|c| !matches!(c, '*' | '?' | ' ')).count();
        (letters >= MIN_LETTERS).then(|| Self::Name(NamePattern::new(&pattern))).ok_or(OperatorInputError::TooVague)
    }

    /// Whether both denote the same network, pattern or server, even if more is known about one of them.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(one), Self::Server(other)) => one.id == other.id,
            _ => self == other,
        }
    }
}

impl fmt::Display for BanSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Name(pattern) => write!(f, "name {pattern}"),
            Self::Server(server) => write!(f, "server {}", server.id),
        }
    }
}

/// Trims and validates a text written by the operator: a reason, a pattern or a note.
///
/// Characters that would be replaced in a text from the network (L5) are rejected here: they would garble a log or a
/// terminal, and a pattern that contains them matches no name as it is displayed.
pub fn operator_text(text: &str) -> Result<String, OperatorInputError> {
    let text = text.trim();
    let is_valid = text.chars().count() <= MAX_OPERATOR_TEXT && sanitize(text) == text;
    is_valid.then(|| text.to_owned()).ok_or(OperatorInputError::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<BanSubject, OperatorInputError> {
        BanSubject::network(text.parse()?)
    }

    #[test]
    fn subjects_are_validated() {
        for (text, shown) in [
            ("203.0.113.9", "203.0.113.9"),
            ("203.0.113.9/24", "203.0.113.0/24"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1/128", "192.0.2.1"),
            ("::ffff:192.0.2.1/120", "192.0.2.0/24"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), shown);
        }
        assert_eq!(network("0.0.0.0/0"), Err(OperatorInputError::TooWide));
        assert_eq!(network("2001::/15"), Err(OperatorInputError::TooWide));
        assert_eq!(network("::ffff:0:0/96"), Err(OperatorInputError::TooWide), "all of IPv4");
        assert_eq!(network("example.org"), Err(OperatorInputError::Network(ParseNetworkError)));
        assert_eq!(BanSubject::name(" *casino* ").unwrap().to_string(), "name *casino*");
        assert_eq!(BanSubject::name("*a?*"), Err(OperatorInputError::TooVague));
    }

    #[test]
    fn operator_texts_with_invisible_characters_are_rejected() {
        for hidden in ["evil\u{1b}[2J", "evil\u{202e}gnp", "ev\u{200b}il", "evil\nname"] {
            assert_eq!(BanSubject::name(hidden), Err(OperatorInputError::Text), "{hidden:?}");
            assert_eq!(operator_text(hidden), Err(OperatorInputError::Text), "{hidden:?}");
        }
        assert_eq!(operator_text(&"x".repeat(501)), Err(OperatorInputError::Text));
        assert_eq!(operator_text(" Größe 七 👩\u{200d}🚀 "), Ok("Größe 七 👩\u{200d}🚀".into()));
    }

    #[test]
    fn a_ban_ends_at_its_end_in_utc() {
        let now = Instant::now();
        let utc = SystemTime::UNIX_EPOCH + Duration::from_secs(940);
        let subject = network("203.0.113.0/24").unwrap();
        let ban = Ban { subject, reason: "".into(), until: Some(utc + Duration::from_secs(60)) };
        assert!(ban.is_in_force(utc) && !ban.is_in_force(utc + Duration::from_secs(60)));
        assert_eq!(ban.deadline(now, utc), Some(now + Duration::from_secs(60)));
        assert_eq!(Ban { until: None, ..ban }.deadline(now, utc), None);
    }
}
