//! The bans that a registry enforces.

use super::{Ban, BanSubject, name_pattern::fold_case};
use crate::{PublicId, entry::EndpointEntry};
use rallypoint_limit::PrefixMap;
use rallypoint_wire::{lobby::Transport, text};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Instant, SystemTime},
};

/// Bans in the form in which a registry looks them up: by address, name, server and endpoint.
///
/// With ten thousand networks, a datagram costs a dozen comparisons. Name patterns are tried one by one, on names that are
/// new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BanList {
    networks: PrefixMap<Timed>,
    names: Vec<Timed>,
    servers: BTreeMap<PublicId, Arc<Timed>>,
    endpoints: BTreeMap<(SocketAddr, Transport), Arc<Timed>>,
}

/// A server that may be banned, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate<'a> {
    /// The source address of its registrations.
    pub ip: Option<IpAddr>,
    pub name: Option<&'a [u8]>,
    pub id: Option<PublicId>,
    /// Where it is listed.
    pub endpoint: Option<(SocketAddr, Transport)>,
}

/// A ban and its end on the monotonic clock, which is the only clock that a registry knows.
type Timed = (Ban, Option<Instant>);

impl Candidate<'_> {
    /// A server of which only the source address is known.
    pub fn at(ip: IpAddr) -> Self {
        Self { ip: Some(ip), ..Self::default() }
    }

    /// A server of which only the endpoint is known.
    pub fn at_endpoint(endpoint: EndpointEntry, transport: Transport) -> Self {
        let EndpointEntry { internal, external } = endpoint;
        Self { ip: Some(internal.ip), endpoint: Some((external.into(), transport)), ..Self::default() }
    }
}

impl BanList {
    /// The bans that are in force at `utc`, which is the same moment as `now`. Each of them ends by itself.
    pub fn new(bans: impl IntoIterator<Item = Ban>, now: Instant, utc: SystemTime) -> Self {
        let mut list = Self::default();
        let mut networks = Vec::new();
        for ban in bans.into_iter().filter(|ban| ban.is_in_force(utc)) {
            let active: Timed = (ban.clone(), ban.deadline(now, utc));
            match &ban.subject {
                BanSubject::Network(network) => networks.push((network.0, active)),
                BanSubject::Name(_) => list.names.push(active),
                BanSubject::Server(server) => {
                    let id = server.id;
                    let keys: Vec<_> =
                        server.addresses.iter().map(|addr| endpoint_key(*addr, server.transport)).collect();
                    let active = Arc::new(active);
                    list.endpoints.extend(keys.into_iter().map(|key| (key, Arc::clone(&active))));
                    list.servers.insert(id, active);
                }
            }
        }
        list.networks = networks.into_iter().collect();
        list
    }

    /// The ban that applies to an address now; that of the smallest network if there are several.
    #[must_use]
    pub fn by_address(&self, now: Instant, ip: IpAddr) -> Option<&Ban> {
        self.networks.containing(ip).find_map(|ban| in_force(ban, now))
    }

    /// The ban of this name that is in force, if there is one.
    #[must_use]
    pub fn by_name(&self, now: Instant, name: &[u8]) -> Option<&Ban> {
        if self.names.is_empty() {
            return None;
        }
        let name = fold_case(&text::display(name));
        let matches = |ban: &&Ban| matches!(&ban.subject, BanSubject::Name(pattern) if pattern.matches_folded(&name));
        self.names.iter().filter_map(|ban| in_force(ban, now)).find(matches)
    }

    /// The ban that applies to a server now, by any of what is known about it. A ban of a single server also applies to any other
    /// server that is listed at the same endpoint.
    pub(crate) fn ban_for(&self, now: Instant, candidate: &Candidate<'_>) -> Option<&Ban> {
        let Candidate { ip, name, id, endpoint } = *candidate;
        if let Some(ban) = ip.and_then(|ip| self.by_address(now, ip)) {
            return Some(ban);
        }
        let server = || in_force(self.servers.get(&id?)?, now);
        let endpoint = || {
            let (addr, transport) = endpoint?;
            in_force(self.endpoints.get(&endpoint_key(addr, transport))?, now)
        };
        name.and_then(|name| self.by_name(now, name)).or_else(server).or_else(endpoint)
    }

    /// Whether there are no bans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.names.is_empty() && self.servers.is_empty()
    }
}

fn in_force((ban, deadline): &Timed, now: Instant) -> Option<&Ban> {
    deadline.is_none_or(|deadline| now < deadline).then_some(ban)
}

/// An endpoint as it is looked up: without the flow label and scope of an IPv6 socket address.
fn endpoint_key(addr: SocketAddr, transport: Transport) -> (SocketAddr, Transport) {
    (SocketAddr::new(addr.ip().to_canonical(), addr.port()), transport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnlistedServer;
    use std::time::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    fn list_of_one(subject: BanSubject, now: Instant) -> BanList {
        let utc = SystemTime::now();
        BanList::new([Ban { subject, reason: "spam".into(), until: Some(utc + MINUTE) }], now, utc)
    }

    #[test]
    fn a_ban_ends() {
        let now = Instant::now();
        let bans = list_of_one(BanSubject::Network("203.0.113.0/24".parse().unwrap()), now);
        let ip = "203.0.113.77".parse().unwrap();
        assert_eq!(bans.by_address(now, ip).map(|ban| &*ban.reason), Some("spam"));
        assert!(bans.by_address(now + MINUTE, ip).is_none());
        assert!(bans.by_address(now, "203.0.114.77".parse().unwrap()).is_none());
    }

    #[test]
    fn a_ban_that_has_ended_is_left_out() {
        let utc = SystemTime::now();
        let subject = BanSubject::Name("casino".parse().unwrap());
        let ban = Ban { subject, reason: "".into(), until: Some(utc) };
        assert!(BanList::new([ban], Instant::now(), utc).is_empty());
    }

    #[test]
    fn a_server_is_banned_by_its_id_and_by_its_endpoints() {
        let now = Instant::now();
        let later = now + MINUTE;
        let id = PublicId::from_bytes([7; 16]);
        let addr = |text: &str| text.parse::<SocketAddr>().unwrap();
        let addresses = vec![addr("[::ffff:203.0.113.9]:8190"), addr("[2001:db8::9%3]:8190")];
        let server = UnlistedServer { id, name: String::new(), transport: Transport::Udp, addresses };
        let bans = list_of_one(BanSubject::Server(server), now);
        assert!(!bans.is_empty());
        let by_id = |id| Candidate { id: Some(id), ..Candidate::default() };
        assert!(bans.ban_for(now, &by_id(id)).is_some() && bans.ban_for(later, &by_id(id)).is_none());
        assert!(bans.ban_for(now, &by_id(PublicId::from_bytes([8; 16]))).is_none());
        for (at, transport, is_banned) in [
            ("203.0.113.9:8190", Transport::Udp, true),
            ("[2001:db8::9]:8190", Transport::Udp, true),
            ("203.0.113.9:8190", Transport::Tcp, false),
            ("203.0.113.9:8191", Transport::Udp, false),
        ] {
            let candidate = Candidate { endpoint: Some((addr(at), transport)), ..Candidate::default() };
            assert_eq!(bans.ban_for(now, &candidate).is_some(), is_banned, "{at} {transport:?}");
            assert!(bans.ban_for(later, &candidate).is_none());
        }
    }
}
