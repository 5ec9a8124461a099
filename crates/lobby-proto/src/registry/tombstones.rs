//! Servers that have just unregistered (L11).

use crate::hash::{KeyedHash, KeyedMap};
use std::{
    collections::VecDeque,
    hash::Hash,
    time::{Duration, Instant},
};

/// How long after an unregistration a registration with the same ID is taken for a reordered datagram.
pub(super) const REORDERING_TIME: Duration = Duration::from_secs(3);

/// IDs, secret or public, of servers that have just unregistered. Only registered servers leave one, so their number is bounded
/// by the number of servers that can register within the lifetime.
#[derive(Debug)]
pub(super) struct Tombstones<K> {
    by_id: KeyedMap<K, Instant>,
    /// In the order in which they expire.
    queue: VecDeque<(Instant, K)>,
    /// How long each is kept.
    lifetime: Duration,
}

impl<K: Copy + Eq + Hash> Tombstones<K> {
    pub fn new(keyed: KeyedHash, lifetime: Duration) -> Self {
        Self { by_id: keyed.map(), queue: VecDeque::new(), lifetime }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Number of insertions that are remembered, also those of servers that were removed or inserted again.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn insert(&mut self, now: Instant, id: K) {
        self.forget_expired(now);
        let end = now + self.lifetime;
        self.by_id.insert(id, end);
        self.queue.push_back((end, id));
    }

    pub fn contains(&self, now: Instant, id: K) -> bool {
        self.by_id.get(&id).is_some_and(|&end| now < end)
    }

    /// When a server unregistered, if it is known.
    pub fn unregistered_at(&self, now: Instant, id: K) -> Option<Instant> {
        let end = self.by_id.get(&id).filter(|&&end| now < end)?;
        end.checked_sub(self.lifetime)
    }

    /// Forgets a server that has registered again.
    pub fn remove(&mut self, id: K) {
        self.by_id.remove(&id);
    }

    pub fn forget_expired(&mut self, now: Instant) {
        while let Some((end, id)) = self.queue.pop_front_if(|&mut (end, _)| end <= now) {
            if self.by_id.get(&id) == Some(&end) {
                self.by_id.remove(&id);
            }
        }
    }
}
