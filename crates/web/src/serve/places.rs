//! How much is taken, in total and per visitor: connections, or bytes.

use rallypoint_limit::Customer;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// The places that there are. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    per_party: usize,
    taken: Mutex<Taken>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_party: HashMap<Customer, usize>,
}

/// A place that is taken, or several at once, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    count: usize,
    /// `None` for who is not counted by party.
    party: Option<Customer>,
}

impl Places {
    pub fn with(most: usize, per_party: usize) -> Self {
        Self(Arc::new(Inner { most, per_party, taken: Mutex::default(), refused: AtomicU64::new(0) }))
    }

    /// A place, if there is one.
    pub fn take(&self, ip: IpAddr, is_exempt: bool) -> Option<Place> {
        self.take_many(ip, is_exempt, 1)
    }

    /// So many places, if there are as many.
    pub fn take_many(&self, ip: IpAddr, is_exempt: bool, count: usize) -> Option<Place> {
        let place = self.try_take(ip, is_exempt, count);
        if place.is_none() {
            self.0.refused.fetch_add(1, Relaxed);
        }
        place
    }

    fn try_take(&self, ip: IpAddr, is_exempt: bool, count: usize) -> Option<Place> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all = taken.all.checked_add(count).filter(|all| *all <= self.0.most)?;
        let party = (!is_exempt).then(|| Customer::of(ip));
        if let Some(party) = party {
            let of_party = taken.by_party.get(&party).copied().unwrap_or_default() + count;
            if of_party > self.0.per_party {
                return None;
            }
            taken.by_party.insert(party, of_party);
        }
        taken.all = all;
        drop(taken);
        Some(Place { places: self.clone(), count, party })
    }

    /// How often there were none.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= self.count;
        if let Some(party) = self.party
            && let std::collections::hash_map::Entry::Occupied(mut count) = taken.by_party.entry(party)
        {
            *count.get_mut() -= self.count;
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
    fn several_places_are_taken_at_once_or_not_at_all() {
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let places = Places::with(10, 6);
        let first = places.take_many(one, false, 4);
        assert!(first.is_some());
        assert!(places.take_many(one, false, 3).is_none(), "the address has six");
        assert!(places.take_many(other, true, 7).is_none(), "there are ten");
        assert!(places.take_many(other, true, usize::MAX).is_none());
        assert_eq!(places.taken(), 4, "who was refused has nothing");
        drop(first);
        assert!(places.take_many(one, false, 6).is_some());
        assert_eq!(places.taken(), 0);
        assert!(places.0.taken.lock().unwrap().by_party.is_empty());
    }
}
