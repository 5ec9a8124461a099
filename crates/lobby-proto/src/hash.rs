//! Hashing of keys that come from the network.
//!
//! Server IDs, list IDs and source addresses are taken from datagrams. With a fast hash, an attacker who knows its constants
//! can choose a hundred thousand keys that all fall into the same place of a table, whatever its seed is; SipHash with a
//! secret key has no such keys. It costs a few nanoseconds more.

use foldhash::fast::FixedState;
use rallypoint_wire::lobby::ServerId;
use siphasher::sip::SipHasher13;
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    hash::{BuildHasher, Hash, Hasher},
    net::IpAddr,
};

/// Secret keys of the registry's hashes. They should come from the system's entropy; the default is for tests.
#[derive(Clone, Default)]
pub struct HashKeys {
    /// The key for hash tables, so that colliding keys cannot be chosen. New with every start.
    pub tables: u64,
    /// The key for public IDs. It is kept, so that a server has the same public ID after a restart of the lobby.
    pub public_ids: [u8; 16],
}

impl fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKeys(secret)")
    }
}

/// A map whose keys come from the network.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, KeyedHash>;

/// A set whose members come from the network.
pub(crate) type KeyedSet<K> = HashSet<K, KeyedHash>;

/// SipHash-1-3 with a secret key.
#[derive(Clone, Copy)]
pub(crate) struct KeyedHash(u64);

impl KeyedHash {
    pub fn new(key: u64) -> Self {
        Self(key)
    }

    pub fn map<K, V>(self) -> KeyedMap<K, V> {
        HashMap::with_hasher(self)
    }

    pub fn set<K>(self) -> KeyedSet<K> {
        HashSet::with_hasher(self)
    }

    /// The hash of a server ID, which every refresh needs.
    #[inline]
    pub fn server_id(self, id: ServerId) -> u64 {
        self.build_hasher().hash(id.expose())
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, !self.0)
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHash(secret)")
    }
}

/// Decrements a count; a count that reaches zero is removed.
pub(crate) fn decrement<K: Hash + Eq>(counts: &mut KeyedMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// The hash by which a registration is recognised as the same as the one before.
///
/// Only the owner of a server could make two of them collide, and only for that server, so a fast hash will do.
#[derive(Debug)]
pub(crate) struct Fingerprinter {
    keyed: KeyedHash,
    state: FixedState,
    /// Incremented to invalidate all fingerprints.
    generation: u64,
}

impl Fingerprinter {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { keyed, state: fingerprint_state(keyed, 0), generation: 0 }
    }

    /// Makes all earlier fingerprints invalid.
    pub fn invalidate(&mut self) {
        self.generation += 1;
        self.state = fingerprint_state(self.keyed, self.generation);
    }

    /// The fingerprint of a registration: never zero, which stands for none.
    #[inline]
    pub fn fingerprint(&self, source: IpAddr, bytes: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        match source {
            IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
            IpAddr::V6(ip) => hasher.write_u128(ip.to_bits()),
        }
        hasher.write(bytes);
        hasher.finish() | 1
    }
}

/// The hash of a generation, unrelated to those of other generations.
fn fingerprint_state(keyed: KeyedHash, generation: u64) -> FixedState {
    FixedState::with_seed(keyed.hash_one(generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A constant of the hash that was used here before: IDs with this half had the same hash under every seed.
    const WEAK: u64 = 0xc0ac_29b7_c97c_50dd;

    #[test]
    fn colliding_ids_cannot_be_chosen() {
        let hashes = |key: u64| -> HashSet<u64> {
            let ids = (0..1_000u64).map(|n| (u128::from(WEAK) << 64) | u128::from(n));
            ids.map(|id| KeyedHash::new(key).server_id(ServerId::from_bytes(id.to_ne_bytes()))).collect()
        };
        assert_eq!(hashes(1).len(), 1_000);
        assert!(hashes(1).is_disjoint(&hashes(2)));
    }

    /// The fast hash merely mixes its seed into the first bytes, so neighbouring seeds would cancel each other out.
    #[test]
    fn fingerprints_of_different_generations_are_unrelated() {
        let fingerprints = |generation: u64| -> HashSet<u64> {
            let state = fingerprint_state(KeyedHash::new(0x5eed), generation);
            (0..1_000u128).map(|n| state.hash_one(n)).collect()
        };
        assert!(fingerprints(0).is_disjoint(&fingerprints(1)));
    }
}
