//! External endpoints behind an address map that stay reserved for the inside host that had them (W44).
//!
//! An endpoint belongs to the inside host that has it until its lease ends. A forger can make that host's entry leave earlier:
//! it replaces it by an ID of its own (L8), and unregisters or moves that one. Without this, it could then give the endpoint to
//! another inside host, from which the former one would never get it back.

use crate::{
    entry::EndpointKey,
    hash::{KeyedHash, KeyedMap},
    wheel::Tick,
};
use std::net::IpAddr;

/// Maximum number of reservations. Only endpoints that the address map lists have one, and for a lease at most.
const MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct ReservedEndpoints {
    /// The inside host, and when its lease would have ended.
    by_key: KeyedMap<EndpointKey, (IpAddr, Tick)>,
}

impl ReservedEndpoints {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { by_key: keyed.map() }
    }

    /// Reserves an endpoint for a host, unless it is reserved for another one.
    pub fn reserve(&mut self, now: Tick, key: EndpointKey, host: IpAddr, until: Tick) {
        let is_free = self.owner(now, key).is_none_or(|owner| owner == host);
        if is_free && (self.by_key.len() < MAX || self.by_key.contains_key(&key)) {
            self.by_key.insert(key, (host, until));
        }
    }

    /// The inside host for which an endpoint is reserved.
    pub fn owner(&self, now: Tick, key: EndpointKey) -> Option<IpAddr> {
        self.by_key.get(&key).filter(|(_, until)| now < *until).map(|&(host, _)| host)
    }

    pub fn forget_expired(&mut self, now: Tick) {
        self.by_key.retain(|_, (_, until)| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Addr;
    use rallypoint_wire::lobby::Transport;
    use std::{num::NonZeroU16, time::Duration};

    #[test]
    fn an_endpoint_stays_reserved_for_its_first_host_until_the_lease_ends() {
        let at = |seconds| Tick::default().plus(Duration::from_secs(seconds));
        let host = |last| IpAddr::from([192, 168, 0, last]);
        let key = (Addr { ip: IpAddr::from([203, 0, 113, 9]), port: NonZeroU16::MIN }, Transport::Udp);
        let mut reserved = ReservedEndpoints::new(KeyedHash::new(7));
        reserved.reserve(at(0), key, host(1), at(70));
        reserved.reserve(at(10), key, host(2), at(90));
        assert_eq!(reserved.owner(at(69), key), Some(host(1)));
        assert_eq!(reserved.owner(at(70), key), None);
        reserved.reserve(at(70), key, host(2), at(90));
        reserved.forget_expired(at(80));
        assert_eq!(reserved.owner(at(80), key), Some(host(2)));
        reserved.forget_expired(at(90));
        assert!(reserved.by_key.is_empty());
    }
}
