//! Which session the datagrams of an address belong to.

use foldhash::quality::FixedState;
use rallypoint_wire::session::SlotIndex;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// Time after a change of its port for which control datagrams from any port of a session's IP address belong to the session.
const MOVED_LIFETIME: Duration = Duration::from_secs(10);

/// The addresses of all sessions.
pub(super) struct AddressTable {
    /// The session at each address: at most one.
    pub owners: HashMap<SocketAddr, SlotIndex, FixedState>,
    /// Further addresses that sessions send from (W53).
    pub alternates: HashMap<SocketAddr, SlotIndex, FixedState>,
    /// Sessions that have changed their port lately. Each is here at most once.
    moved: HashMap<IpAddr, MovedSession, FixedState>,
}

/// The session at an IP address that has changed its port lately.
#[derive(Clone, Copy, Debug)]
struct MovedSession {
    index: SlotIndex,
    until: Instant,
    /// Whether no other session at this IP address has changed its port lately.
    is_only: bool,
}

impl AddressTable {
    pub fn new(seeds: [u64; 2]) -> Self {
        Self {
            owners: HashMap::with_hasher(FixedState::with_seed(seeds[0])),
            alternates: HashMap::with_hasher(FixedState::with_seed(seeds[1])),
            moved: HashMap::with_hasher(FixedState::with_seed(seeds[0])),
        }
    }

    /// The session whose control datagrams come from an address.
    ///
    /// An ack names no session. A NAT that alternates its ports may send messages from some of them, and acks from others; so
    /// those from unknown ports belong to the session that has changed its port lately, if there is only one at that IP address.
    pub fn session_at(&self, now: Instant, from: SocketAddr) -> Option<SlotIndex> {
        let known = self.owners.get(&from).or_else(|| self.alternates.get(&from)).copied();
        known.or_else(|| {
            let moved = self.moved.get(&from.ip())?;
            (moved.is_only && now < moved.until).then_some(moved.index)
        })
    }

    /// A session has changed its port.
    pub fn on_moved(&mut self, now: Instant, index: SlotIndex, ip: IpAddr) {
        let is_only =
            self.moved.get(&ip).is_none_or(|moved| now >= moved.until || (moved.is_only && moved.index == index));
        self.forget_moved(index);
        self.moved.retain(|_, moved| now < moved.until);
        self.moved.insert(ip, MovedSession { index, until: now + MOVED_LIFETIME, is_only });
    }

    /// A session has ended, or has another IP address.
    pub fn forget_moved(&mut self, index: SlotIndex) {
        self.moved.retain(|_, moved| moved.index != index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w53_unknown_ports_belong_to_the_only_session_that_has_changed_its_port_lately() {
        let now = Instant::now();
        let mut table = AddressTable::new([1, 2]);
        let addr = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let index = |index| SlotIndex::new(index).unwrap();
        table.owners.insert(addr(1), index(1));
        table.owners.insert(addr(2), index(2));
        assert_eq!(table.session_at(now, addr(3)), None);
        table.on_moved(now, index(1), addr(1).ip());
        assert_eq!(table.session_at(now, addr(3)), Some(index(1)));
        assert_eq!(table.session_at(now, addr(2)), Some(index(2)), "known");
        assert_eq!(table.session_at(now, ([192, 0, 2, 2], 3).into()), None);
        assert_eq!(table.session_at(now + MOVED_LIFETIME, addr(3)), None);
        table.on_moved(now, index(2), addr(1).ip());
        assert_eq!(table.session_at(now, addr(3)), None, "one of two");
        table.on_moved(now, index(2), addr(1).ip());
        assert_eq!(table.session_at(now, addr(3)), None, "still");
        table.on_moved(now + MOVED_LIFETIME, index(2), addr(1).ip());
        assert_eq!(table.session_at(now + MOVED_LIFETIME, addr(3)), Some(index(2)));
        table.forget_moved(index(2));
        assert_eq!(table.session_at(now + MOVED_LIFETIME, addr(3)), None);
        assert!(table.moved.is_empty());
    }
}
