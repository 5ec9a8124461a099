//! Who is not welcome.

use crate::prefixes::Prefixes;
use ipnet::IpNet;
use rallypoint_wire::text;
use std::{net::IpAddr, sync::Arc, time::Instant};

/// The operator's ban list: addresses, networks and patterns of names, each with a reason and perhaps an end.
///
/// Ten thousand networks cost a datagram a dozen comparisons. Patterns are tried one by one, on names that are new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bans {
    networks: Prefixes<Ban>,
    names: Vec<Ban>,
}

/// One line of the ban list.
#[derive(Clone, Debug, PartialEq)]
pub struct Ban {
    /// Who.
    pub who: Banned,
    /// Why: for the operator, and for the banned.
    pub reason: Arc<str>,
    /// Until when; for good if not set.
    pub until: Option<Instant>,
}

/// Who is banned.
#[derive(Clone, Debug, PartialEq)]
pub enum Banned {
    /// An address or network.
    Network(IpNet),
    /// Servers whose shown name fits a pattern.
    Name(NamePattern),
}

/// A pattern for names: `*` stands for anything, `?` for one character; upper and lower case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(Vec<char>);

impl NamePattern {
    /// A pattern from its text.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(folded(pattern))
    }

    /// Whether a name fits. Takes time in proportion to the product of both lengths at worst.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.matches_folded(&folded(name))
    }

    fn matches_folded(&self, name: &[char]) -> bool {
        let (mut p, mut n) = (0, 0);
        // Where to go on if what follows the last `*` does not fit: behind that `*`, one character later.
        let mut retry: Option<(usize, usize)> = None;
        while n < name.len() {
            match self.0.get(p) {
                Some('*') => {
                    p += 1;
                    retry = Some((p, n));
                }
                Some(&c) if c == '?' || c == name[n] => {
                    p += 1;
                    n += 1;
                }
                _ => match retry {
                    Some((star, from)) => {
                        p = star;
                        n = from + 1;
                        retry = Some((star, n));
                    }
                    None => return false,
                },
            }
        }
        self.0[p..].iter().all(|&c| c == '*')
    }
}

fn folded(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

impl Bans {
    /// The ban that an address is under now, if any; that of the smallest network, if there are several.
    #[must_use]
    pub fn of_address(&self, now: Instant, ip: IpAddr) -> Option<&Ban> {
        self.networks.around(ip).find(|ban| ban.is_in_force(now))
    }

    /// The ban that a name is under now, if any.
    #[must_use]
    pub fn of_name(&self, now: Instant, name: &[u8]) -> Option<&Ban> {
        if self.names.is_empty() {
            return None;
        }
        let name = folded(&text::display(name));
        let fits = |ban: &&Ban| matches!(&ban.who, Banned::Name(pattern) if pattern.matches_folded(&name));
        self.names.iter().filter(|ban| ban.is_in_force(now)).find(fits)
    }

    /// Why a server with this address, and this name if it is known, is banned now: nothing if it is not, or if the
    /// operator has not said.
    pub(crate) fn reason(&self, now: Instant, ip: IpAddr, name: Option<&[u8]>) -> Option<Arc<str>> {
        let ban = self.of_address(now, ip).or_else(|| self.of_name(now, name?))?;
        (!ban.reason.is_empty()).then(|| ban.reason.clone())
    }

    /// Whether nobody is banned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.names.is_empty()
    }
}

impl Ban {
    fn is_in_force(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl FromIterator<Ban> for Bans {
    fn from_iter<I: IntoIterator<Item = Ban>>(bans: I) -> Self {
        let (mut networks, mut names) = (Vec::new(), Vec::new());
        for ban in bans {
            match ban.who {
                Banned::Network(network) => networks.push((network, ban)),
                Banned::Name(_) => names.push(ban),
            }
        }
        Self { networks: networks.into_iter().collect(), names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn patterns_match_whole_names_without_regard_to_case() {
        for (pattern, name, fits) in [
            ("*casino*", "Best CASINO in town", true),
            ("casino", "casino royale", false),
            ("b?con", "Bacon", true),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxbxxd", false),
            ("*", "", true),
            ("", "x", false),
            ("größe*", "GRÖSSE", false),
            ("grö*", "GRÖSSE", true),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_name_cannot_make_matching_slow() {
        assert!(!NamePattern::new("*a*a*a*a*a*a*a*b").matches(&"a".repeat(4_000)));
    }

    #[test]
    fn a_ban_ends() {
        let now = Instant::now();
        let who = Banned::Network("203.0.113.0/24".parse().unwrap());
        let ban = Ban { who, reason: "spam".into(), until: Some(now + Duration::from_secs(60)) };
        let bans: Bans = [ban].into_iter().collect();
        let ip = "203.0.113.77".parse().unwrap();
        assert_eq!(bans.of_address(now, ip).map(|ban| &*ban.reason), Some("spam"));
        assert!(bans.of_address(now + Duration::from_secs(60), ip).is_none());
        assert!(bans.of_address(now, "203.0.114.77".parse().unwrap()).is_none());
    }
}
