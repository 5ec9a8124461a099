//! Attempts that are repeated at their deadlines, in the order of those: the next one is found without a search.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    time::Instant,
};

/// The attempts and the deadline of each key.
#[derive(Debug)]
pub(super) struct Deadlines<K> {
    by_key: BTreeMap<K, (Instant, u8)>,
    order: BTreeSet<(Instant, K)>,
}

impl<K: Copy + Ord> Deadlines<K> {
    pub fn new() -> Self {
        Self { by_key: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Begins with the first attempt. Returns `false` if the key has a deadline already, which is kept.
    pub fn begin(&mut self, key: K, due: Instant) -> bool {
        let Entry::Vacant(vacant) = self.by_key.entry(key) else { return false };
        vacant.insert((due, 1));
        self.order.insert((due, key))
    }

    pub fn remove(&mut self, key: K) {
        if let Some((due, _)) = self.by_key.remove(&key) {
            self.order.remove(&(due, key));
        }
    }

    /// Removes the key that is due first, if one is, and returns its number of attempts.
    pub fn take_due(&mut self, now: Instant) -> Option<(K, u8)> {
        self.next().filter(|due| *due <= now)?;
        let (_, key) = self.order.pop_first()?;
        self.by_key.remove(&key).map(|(_, attempts)| (key, attempts))
    }

    /// Continues with an attempt of a key that was taken.
    pub fn repeat(&mut self, key: K, attempts: u8, due: Instant) {
        self.by_key.insert(key, (due, attempts));
        self.order.insert((due, key));
    }

    /// The first deadline.
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(due, _)| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, cmp::Ordering, time::Duration};

    const COUNT: u32 = 10_000;

    thread_local!(static COMPARISONS: Cell<u32> = const { Cell::new(0) });

    /// A key that counts how often it is compared.
    #[derive(Clone, Copy, Debug)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted {}

    /// After every turn of the event loop the next deadline is requested, and every forged heartbeat is a turn.
    #[test]
    fn ten_thousand_forged_heartbeats_cost_no_search_each() {
        let now = Instant::now();
        let mut deadlines = Deadlines::new();
        for key in 0..COUNT {
            assert!(deadlines.begin(Counted(key), now + Duration::from_micros(key.into())));
        }
        COMPARISONS.set(0);
        for key in 0..COUNT {
            assert!(!deadlines.begin(Counted(key), now));
            assert_eq!(deadlines.next(), Some(now));
        }
        // A lookup compares a few dozen keys of ten thousand.
        assert!(COMPARISONS.get() < 60 * COUNT, "{} comparisons", COMPARISONS.get());
        COMPARISONS.set(0);
        assert_eq!(deadlines.next(), Some(now));
        assert_eq!(COMPARISONS.get(), 0);
    }

    #[test]
    fn keys_are_taken_in_the_order_of_their_deadlines() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut deadlines = Deadlines::new();
        for (key, due) in [(1, 3), (2, 1), (3, 2)] {
            assert!(deadlines.begin(key, at(due)));
        }
        deadlines.remove(3);
        assert_eq!(deadlines.take_due(now), None);
        assert_eq!(deadlines.next(), Some(at(1)));
        assert_eq!(deadlines.take_due(at(1)), Some((2, 1)));
        deadlines.repeat(2, 2, at(4));
        assert_eq!(deadlines.take_due(at(9)), Some((1, 1)));
        assert_eq!(deadlines.take_due(at(9)), Some((2, 2)));
        assert_eq!((deadlines.take_due(at(9)), deadlines.next()), (None, None));
    }
}
