//! The addresses at which the peer has shown that it receives what is sent there (S31, W53).
//!
//! A NAT may alternate between two addresses. A session that returns to an address which it has used a moment ago needs no
//! new challenge.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Number of addresses that are remembered.
const MAX_REMEMBERED: usize = 4;

/// Time after its last use for which an address is remembered. Later, another host may have it.
const LIFETIME: Duration = Duration::from_secs(60);

/// Proven addresses that the peer has left, and when.
#[derive(Debug, Default)]
pub(super) struct ProvenAddresses {
    left: [Option<(SocketAddr, Instant)>; MAX_REMEMBERED],
}

impl ProvenAddresses {
    /// The peer leaves an address that it has proven. The one that was left longest ago is forgotten if there is no room.
    pub fn insert(&mut self, now: Instant, addr: SocketAddr) {
        let is_same = |slot: &Option<(SocketAddr, Instant)>| slot.is_some_and(|(known, _)| known == addr);
        let slot = match self.left.iter().position(is_same) {
            Some(position) => self.left.get_mut(position),
            None => self.left.iter_mut().min_by_key(|slot| slot.map(|(_, left_at)| left_at)),
        };
        if let Some(slot) = slot {
            *slot = Some((addr, now));
        }
    }

    /// When the peer left this address, if that was not long ago.
    pub fn left_at(&self, now: Instant, addr: SocketAddr) -> Option<Instant> {
        let (_, left_at) = self.left.iter().flatten().find(|(known, _)| *known == addr)?;
        (now.saturating_duration_since(*left_at) < LIFETIME).then_some(*left_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w53_the_last_four_addresses_are_remembered_for_a_minute() {
        let now = Instant::now();
        let addr = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let mut proven = ProvenAddresses::default();
        for port in 0..5 {
            proven.insert(now + Duration::from_secs(u64::from(port)), addr(port));
        }
        let later = now + Duration::from_secs(5);
        proven.insert(later, addr(1));
        assert_eq!(proven.left_at(later, addr(0)), None);
        assert!((1..5).all(|port| proven.left_at(later, addr(port)).is_some()));
        assert_eq!(proven.left_at(later, addr(1)), Some(later));
        assert_eq!(proven.left_at(later + LIFETIME, addr(1)), None);
    }
}
