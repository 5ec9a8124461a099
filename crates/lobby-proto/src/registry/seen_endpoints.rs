//! Endpoints at which a server was listed or refused some time ago, and the priority that this gives to a registration (W45).

use super::seen_filter::SeenFilter;
use crate::{entry::Addr, hash::KeyedHash, wheel::Tick};
use rallypoint_wire::lobby::Transport;
use std::{hash::BuildHasher, time::Duration};

/// An endpoint in the list.
pub(super) type EndpointKey = (Addr, Transport);

/// The priority of a registration that needs space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// The server registers for the first time.
    New,
    /// It was refused some time ago, and has returned.
    Returning,
    /// A server was listed at its endpoint before, or has replied there to a check.
    Former,
}

/// Endpoints that were seen some time ago.
#[derive(Debug)]
pub(super) struct SeenEndpoints {
    keyed: KeyedHash,
    /// Endpoints of servers that were removed from the list.
    listed: SeenFilter,
    /// Endpoints of servers that were refused because of a cap.
    refused: SeenFilter,
}

/// Periods of [`SeenEndpoints::refused`] after which a server has returned: 15 to 30 seconds.
const RETURNED: u32 = 2;

impl SeenEndpoints {
    pub fn new(keyed: KeyedHash) -> Self {
        let minute = Duration::from_secs(60);
        let quarter = Duration::from_secs(15);
        Self { keyed, listed: SeenFilter::new(minute, 10), refused: SeenFilter::new(quarter, 5) }
    }

    /// Frees the memory of endpoints that are not remembered any more.
    pub fn forget_expired(&mut self, now: Tick) {
        self.listed.advance(now);
        self.refused.advance(now);
    }

    pub fn note_listed(&mut self, now: Tick, key: EndpointKey) {
        self.listed.insert(now, now, self.keyed.hash_one(key));
    }

    pub fn note_refused(&mut self, now: Tick, first_seen: Tick, key: EndpointKey) {
        self.refused.insert(now, first_seen, self.keyed.hash_one(key));
    }

    pub fn priority(&mut self, now: Tick, key: EndpointKey) -> Priority {
        let hash = self.keyed.hash_one(key);
        if self.listed.contains(now, hash, 0) {
            Priority::Former
        } else if self.refused.contains(now, hash, RETURNED) {
            Priority::Returning
        } else {
            Priority::New
        }
    }
}
