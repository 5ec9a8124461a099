//! Endpoints at which a server was listed or refused some time ago, and the evidence that this is for a registration (W45).

use super::{Evidence, seen_filter::SeenFilter};
use crate::{entry::EndpointKey, hash::KeyedHash, wheel::Tick};
use rallypoint_limit::Lan;
use rallypoint_wire::lobby::ServerId;
use std::{hash::BuildHasher, time::Duration};

/// Endpoints and servers that were seen some time ago.
#[derive(Debug)]
pub(super) struct SeenEndpoints {
    keyed: KeyedHash,
    /// Endpoints of servers that were removed from the list.
    listed: SeenFilter,
    /// Endpoints of servers that were refused because of a cap.
    refused: SeenFilter,
    /// Servers that were listed at an address, by endpoint and by ID. A full address has to take them back, also after a
    /// night; elsewhere only `listed` counts.
    residents: SeenFilter,
    /// Servers that were admitted beyond the budget of their address.
    admitted: SeenFilter,
    /// Until when every server counts as a resident: which ones were listed before a restart is not saved.
    all_reside_until: Tick,
}

/// Bits per period of the filters that every datagram of a flood can fill, at most. At 50,000 endpoints per second, a period of
/// 15 s sets a sixth of them.
const MAX_LOG_BITS: u32 = 23;

/// Bits per period of the other filters, and the least for those that a flood can fill.
const MIN_LOG_BITS: u32 = 19;

/// The part of the memory cap (1/512) that the bits of one period may take: there are up to 17 of them.
const MEMORY_SHARE: usize = 512;

/// Periods of [`SeenEndpoints::refused`] after which a server has returned: 15 to 30 seconds.
const RETURNED: u32 = 2;

impl SeenEndpoints {
    /// `memory` is the cap on the memory of all servers, to which that of the filters is in proportion.
    pub fn new(keyed: KeyedHash, memory: usize) -> Self {
        const MINUTE: u64 = 60;
        let log_bits = (8 * memory / MEMORY_SHARE).max(1).ilog2().clamp(MIN_LOG_BITS, MAX_LOG_BITS);
        let filter = |log_bits, seconds, kept| SeenFilter::new(log_bits, Duration::from_secs(seconds), kept);
        Self {
            keyed,
            listed: filter(log_bits, MINUTE, 10),
            refused: filter(log_bits, 15, 5),
            residents: filter(MIN_LOG_BITS, 4 * 60 * MINUTE, 6),
            admitted: filter(MIN_LOG_BITS, 5, 1),
            all_reside_until: Tick::default(),
        }
    }

    /// Frees the memory of endpoints that are not remembered any more.
    pub fn forget_expired(&mut self, now: Tick) {
        [&mut self.listed, &mut self.refused, &mut self.residents, &mut self.admitted]
            .into_iter()
            .for_each(|filter| filter.advance(now));
    }

    pub fn note_listed(&mut self, now: Tick, key: EndpointKey) {
        self.listed.insert(now, now, self.keyed.hash_one(key));
    }

    pub fn note_refused(&mut self, now: Tick, first_seen: Tick, key: EndpointKey) {
        self.refused.insert(now, first_seen, self.keyed.hash_one(key));
    }

    pub fn evidence(&mut self, now: Tick, key: EndpointKey) -> Evidence {
        let hash = self.keyed.hash_one(key);
        if self.listed.contains(now, hash, 0) {
            Evidence::Known
        } else if self.refused.contains(now, hash, RETURNED) {
            Evidence::Returned
        } else {
            Evidence::First
        }
    }

    /// Records that a server was listed at an address.
    pub fn note_resident(&mut self, now: Tick, key: EndpointKey, lan: Lan, id: ServerId) {
        self.residents.insert(now, now, self.keyed.hash_one(key));
        self.residents.insert(now, now, self.keyed.hash_one((lan, id)));
    }

    /// Records that the registry was restored: who was listed before, and gone when it was saved, is not known.
    pub fn note_restored(&mut self, until: Tick) {
        self.all_reside_until = until;
    }

    /// Whether a server was listed at this endpoint, or the server with this ID at this address.
    pub fn is_resident(&mut self, now: Tick, key: EndpointKey, lan: Lan, id: Option<ServerId>) -> bool {
        now < self.all_reside_until
            || self.residents.contains(now, self.keyed.hash_one(key), 0)
            || id.is_some_and(|id| self.was_listed_with_id(now, lan, id))
    }

    /// Whether the server with this secret ID was listed at this address.
    pub fn was_listed_with_id(&mut self, now: Tick, lan: Lan, id: ServerId) -> bool {
        self.residents.contains(now, self.keyed.hash_one((lan, id)), 0)
    }

    /// Whether a server may be admitted beyond the budget of its address: not if it was in the last 5 seconds.
    pub fn may_admit(&mut self, now: Tick, id: ServerId) -> bool {
        !self.admitted.contains(now, self.keyed.hash_one(id), 0)
    }

    /// Records that a server is admitted beyond the budget of its address, which is always true then.
    pub fn note_admitted(&mut self, now: Tick, id: ServerId) -> bool {
        self.admitted.insert(now, now, self.keyed.hash_one(id));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Addr;
    use rallypoint_wire::lobby::Transport;
    use std::{net::IpAddr, num::NonZeroU16};

    fn at(seconds: u64) -> Tick {
        Tick::default().plus(Duration::from_secs(seconds))
    }

    fn key(last: u8) -> EndpointKey {
        (Addr { ip: IpAddr::from([203, 0, 113, last]), port: NonZeroU16::MIN }, Transport::Udp)
    }

    fn seen() -> SeenEndpoints {
        SeenEndpoints::new(KeyedHash::new(7), 1 << 20)
    }

    #[test]
    fn a_refused_server_has_returned_after_a_while_and_a_listed_one_is_known() {
        let mut seen = seen();
        seen.note_refused(at(0), at(0), key(1));
        seen.note_listed(at(0), key(2));
        let evidence = |seen: &mut SeenEndpoints, time| [1, 2, 3].map(|last| seen.evidence(at(time), key(last)));
        assert_eq!(evidence(&mut seen, 10), [Evidence::First, Evidence::Known, Evidence::First]);
        assert_eq!(evidence(&mut seen, 30), [Evidence::Returned, Evidence::Known, Evidence::First]);
        assert_eq!(evidence(&mut seen, 11 * 60), [Evidence::First; 3]);
    }

    #[test]
    fn a_resident_is_known_by_its_endpoint_or_by_its_id() {
        let mut seen = seen();
        let lan = Lan::of(IpAddr::from([203, 0, 113, 1]));
        let id = |byte| Some(ServerId::from_bytes([byte; 16]));
        seen.note_resident(at(0), key(1), lan, ServerId::from_bytes([1; 16]));
        assert!(seen.is_resident(at(9), key(1), lan, id(2)) && seen.is_resident(at(9), key(2), lan, id(1)));
        assert!(!seen.is_resident(at(9), key(2), lan, id(2)));
        seen.note_restored(at(60));
        assert!(seen.is_resident(at(59), key(2), lan, id(2)) && !seen.is_resident(at(60), key(2), lan, id(2)));
    }
}
