//! Who is not welcome.

use crate::{PublicId, addresses::canonical, prefixes::Prefixes};
use ipnet::IpNet;
use rallypoint_wire::{lobby::Transport, text};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};

/// The operator's ban list: addresses, networks, patterns of names and single servers, each with a reason and perhaps an
/// end.
///
/// Ten thousand networks cost a datagram a dozen comparisons. Patterns are tried one by one, on names that are new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bans {
    networks: Prefixes<Ban>,
    names: Vec<Ban>,
    servers: BTreeMap<PublicId, Arc<Ban>>,
    places: BTreeMap<(SocketAddr, Transport), Arc<Ban>>,
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
    /// One server: by its ID, and by where it is listed, because a server that is started again has another ID.
    Server {
        /// What it is called in public.
        id: PublicId,
        /// How players reach it.
        transport: Transport,
        /// Where players reach it.
        addresses: Vec<SocketAddr>,
    },
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

    /// The ban that a single server is under now, if any.
    #[must_use]
    pub fn of_server(&self, now: Instant, id: PublicId) -> Option<&Ban> {
        self.servers.get(&id).map(|ban| &**ban).filter(|ban| ban.is_in_force(now))
    }

    /// The ban of a single server that whoever is listed there now is under, too.
    #[must_use]
    pub fn of_place(&self, now: Instant, addr: SocketAddr, transport: Transport) -> Option<&Ban> {
        self.places.get(&place(addr, transport)).map(|ban| &**ban).filter(|ban| ban.is_in_force(now))
    }

    /// Whether nobody is banned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.names.is_empty() && self.servers.is_empty()
    }
}

impl Ban {
    fn is_in_force(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl FromIterator<Ban> for Bans {
    fn from_iter<I: IntoIterator<Item = Ban>>(bans: I) -> Self {
        let (mut all, mut networks) = (Self::default(), Vec::new());
        for ban in bans {
            match &ban.who {
                Banned::Network(network) => networks.push((*network, ban)),
                Banned::Name(_) => all.names.push(ban),
                Banned::Server { id, transport, addresses } => {
                    let (id, places) = (*id, addresses.iter().map(|addr| place(*addr, *transport)).collect::<Vec<_>>());
                    let ban = Arc::new(ban);
                    all.places.extend(places.into_iter().map(|place| (place, Arc::clone(&ban))));
                    all.servers.insert(id, ban);
                }
            }
        }
        all.networks = networks.into_iter().collect();
        all
    }
}

/// A place as it is looked up: whatever else an IPv6 socket address has does not count.
fn place(addr: SocketAddr, transport: Transport) -> (SocketAddr, Transport) {
    (SocketAddr::new(canonical(addr.ip()), addr.port()), transport)
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

    #[test]
    fn a_server_is_known_by_its_id_and_by_its_places() {
        let (now, id) = (Instant::now(), PublicId::from_bytes([7; 16]));
        let addr = |text: &str| text.parse::<SocketAddr>().unwrap();
        let addresses = vec![addr("[::ffff:203.0.113.9]:8190"), addr("[2001:db8::9%3]:8190")];
        let who = Banned::Server { id, transport: Transport::Udp, addresses };
        let ban = Ban { who, reason: "test".into(), until: Some(now + Duration::from_secs(60)) };
        let bans: Bans = [ban].into_iter().collect();
        assert!(!bans.is_empty());
        let later = now + Duration::from_secs(60);
        assert!(bans.of_server(now, id).is_some() && bans.of_server(later, id).is_none());
        assert!(bans.of_server(now, PublicId::from_bytes([8; 16])).is_none());
        for (at, transport, is_banned) in [
            ("203.0.113.9:8190", Transport::Udp, true),
            ("[2001:db8::9]:8190", Transport::Udp, true),
            ("203.0.113.9:8190", Transport::Tcp, false),
            ("203.0.113.9:8191", Transport::Udp, false),
        ] {
            assert_eq!(bans.of_place(now, addr(at), transport).is_some(), is_banned, "{at} {transport:?}");
            assert!(bans.of_place(later, addr(at), transport).is_none());
        }
    }
}
