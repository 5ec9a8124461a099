//! Hashing of what strangers choose.
//!
//! Server IDs, lobby IDs and source addresses come out of datagrams. With a fast hash somebody who knows its constants can
//! choose a hundred thousand keys that all fall on one place of a table, whatever its seed is; SipHash with a secret key has
//! no such keys. It costs some nanoseconds more.

use foldhash::fast::FixedState;
use rallypoint_wire::lobby::ServerId;
use siphasher::sip::SipHasher13;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    hash::BuildHasher,
};

/// A map whose keys come from the network.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, Keyed>;

/// A set whose members come from the network.
pub(crate) type KeyedSet<K> = HashSet<K, Keyed>;

/// SipHash-1-3 with a secret key.
#[derive(Clone, Copy)]
pub(crate) struct Keyed(u64);

impl Keyed {
    pub fn new(key: u64) -> Self {
        Self(key)
    }

    pub fn map<K, V>(self) -> KeyedMap<K, V> {
        HashMap::with_hasher(self)
    }

    pub fn set<K>(self) -> KeyedSet<K> {
        HashSet::with_hasher(self)
    }

    /// A hash for fingerprints of registrations, which nobody but the owner of a server can make meet: it may be a fast one.
    /// Each number gives one that has nothing in common with the others.
    pub fn fingerprints(self, number: u64) -> FixedState {
        FixedState::with_seed(self.hash_one(number))
    }

    /// The hash that a refresh needs, in one go.
    #[inline]
    pub fn id(self, id: ServerId) -> u64 {
        self.build_hasher().hash(id.expose())
    }
}

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, !self.0)
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyed(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constant of the hash that was used here before: IDs with this half had the same hash under every seed.
    const WEAK: u64 = 0xc0ac_29b7_c97c_50dd;

    #[test]
    fn nobody_can_choose_ids_that_meet() {
        let hashes = |key: u64| -> HashSet<u64> {
            let ids = (0..1_000u64).map(|n| (u128::from(WEAK) << 64) | u128::from(n));
            ids.map(|id| Keyed::new(key).id(ServerId::from_bytes(id.to_ne_bytes()))).collect()
        };
        assert_eq!(hashes(1).len(), 1_000);
        assert!(hashes(1).is_disjoint(&hashes(2)));
    }

    /// The seed of the fast hash is merely mixed into the first bytes, so neighbouring seeds would undo each other.
    #[test]
    fn fingerprints_of_different_numbers_have_nothing_in_common() {
        let prints = |number: u64| -> HashSet<u64> {
            (0..1_000u128).map(|n| Keyed::new(0x5eed).fingerprints(number).hash_one(n)).collect()
        };
        assert!(prints(0).is_disjoint(&prints(1)));
    }
}
