//! Addresses that the peer has left (S31, W53).
//!
//! A NAT may alternate between several addresses. A session that returns to an address where it has shown a moment ago that it
//! receives what is sent there needs no new challenge.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Number of addresses that are remembered.
const MAX_REMEMBERED: usize = 16;

/// Time after its last use for which an address is remembered. Later, another host may have it.
const LIFETIME: Duration = Duration::from_secs(60);

/// Addresses that the peer has left, and when.
#[derive(Debug, Default)]
pub(super) struct FormerAddresses {
    left: Vec<(SocketAddr, Instant)>,
}

impl FormerAddresses {
    /// The peer leaves an address. The one that was left longest ago is forgotten if there is no room.
    pub fn insert(&mut self, now: Instant, addr: SocketAddr) {
        self.left.retain(|(known, _)| *known != addr);
        if self.left.len() >= MAX_REMEMBERED {
            self.left.remove(0);
        }
        self.left.push((addr, now));
    }

    /// When the peer left this address, if that was not long ago.
    pub fn left_at(&self, now: Instant, addr: SocketAddr) -> Option<Instant> {
        let (_, left_at) = self.left.iter().find(|(known, _)| *known == addr)?;
        (now.saturating_duration_since(*left_at) < LIFETIME).then_some(*left_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w53_the_last_sixteen_addresses_are_remembered_for_a_minute() {
        let now = Instant::now();
        let addr = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let mut addresses = FormerAddresses::default();
        for port in 0..17 {
            addresses.insert(now + Duration::from_secs(u64::from(port)), addr(port));
        }
        let later = now + Duration::from_secs(17);
        addresses.insert(later, addr(1));
        assert_eq!(addresses.left_at(later, addr(0)), None);
        assert!((1..17).all(|port| addresses.left_at(later, addr(port)).is_some()));
        assert_eq!(addresses.left_at(later, addr(1)), Some(later));
        assert_eq!(addresses.left_at(later + LIFETIME, addr(1)), None);
    }
}
