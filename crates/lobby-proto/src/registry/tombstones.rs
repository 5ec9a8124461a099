//! Servers that have just unregistered (L11).

use crate::hash::{Keyed, KeyedMap};
use rallypoint_wire::lobby::ServerId;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// For so long after an unregistration, a registration with the same ID is taken for a reordered datagram.
const TOMBSTONE: Duration = Duration::from_secs(3);

/// Only servers that were there leave one, so their number is bounded by what can register within three seconds.
#[derive(Debug)]
pub(super) struct Tombstones {
    by_id: KeyedMap<ServerId, Instant>,
    ends: VecDeque<(Instant, ServerId)>,
}

impl Tombstones {
    pub fn new(keyed: Keyed) -> Self {
        Self { by_id: keyed.map(), ends: VecDeque::new() }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn insert(&mut self, now: Instant, id: ServerId) {
        self.forget_old(now);
        let end = now + TOMBSTONE;
        self.by_id.insert(id, end);
        self.ends.push_back((end, id));
    }

    pub fn contains(&self, now: Instant, id: ServerId) -> bool {
        self.by_id.get(&id).is_some_and(|&end| now < end)
    }

    pub fn forget_old(&mut self, now: Instant) {
        while let Some((end, id)) = self.ends.pop_front_if(|&mut (end, _)| end <= now) {
            if self.by_id.get(&id) == Some(&end) {
                self.by_id.remove(&id);
            }
        }
    }
}
