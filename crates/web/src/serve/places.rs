//! How many connections there are, in total and per visitor.

use crate::WebLimits;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// The places that there are. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    per_party: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_party: HashMap<u128, usize>,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    /// `None` for who is not counted by party.
    party: Option<u128>,
}

/// What one customer is commonly given: an IPv4 address or an IPv6 /56.
pub(crate) fn party(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits() & (u128::MAX << (128 - 56)),
    }
}

impl Places {
    pub fn new(limits: &WebLimits) -> Self {
        Self::with(limits.connections, limits.per_address)
    }

    pub fn with(most: usize, per_party: usize) -> Self {
        Self(Arc::new(Inner { most, per_party, taken: Mutex::default() }))
    }

    /// A place, if there is one.
    pub fn take(&self, ip: IpAddr, is_exempt: bool) -> Option<Place> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.all >= self.0.most {
            return None;
        }
        let party = (!is_exempt).then(|| party(ip));
        if let Some(party) = party {
            let count = taken.by_party.entry(party).or_default();
            if *count >= self.0.per_party {
                return None;
            }
            *count += 1;
        }
        taken.all += 1;
        drop(taken);
        Some(Place { places: self.clone(), party })
    }

    /// How many are taken.
    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(party) = self.party
            && let std::collections::hash_map::Entry::Occupied(mut count) = taken.by_party.entry(party)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let places = Places::with(3, 2);
        let first = places.take(ip("192.0.2.1"), false);
        let second = places.take(ip("::ffff:192.0.2.1"), false);
        assert!(first.is_some() && second.is_some());
        assert!(places.take(ip("192.0.2.1"), false).is_none(), "the address has two");
        let exempt = places.take(ip("192.0.2.1"), true);
        assert!(exempt.is_some(), "who is exempt counts only in total");
        assert!(places.take(ip("192.0.2.2"), false).is_none(), "all three are taken");
        drop((first, exempt));
        assert_eq!(places.taken(), 1);
        assert!(places.take(ip("192.0.2.1"), false).is_some());
        drop(second);
        assert!(places.0.taken.lock().unwrap().by_party.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_party() {
        let of = |text: &str| party(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:200::1"), of("2001:db8:1:2ff::9"));
        assert_ne!(of("2001:db8:1:200::1"), of("2001:db8:1:300::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
