//! Keys that peers must not be able to guess: for tokens and for hash tables.

use crate::exchange::Token;
use siphasher::sip::{SipHasher13, SipHasher24};
use std::{
    fmt,
    hash::{BuildHasher, Hasher},
};

/// Keys derived from the seed given at construction.
#[derive(Clone)]
pub(crate) struct Secrets {
    token: [u8; 16],
    pub tables: TableKey,
}

/// Key of hash tables whose contents peers choose: otherwise a list of servers could consist of colliding addresses.
#[derive(Clone, Copy)]
pub(crate) struct TableKey([u8; 16]);

impl Secrets {
    pub fn new(seed: [u8; 32]) -> Self {
        let mut token = [0; 16];
        let mut tables = [0; 16];
        token.copy_from_slice(&seed[..16]);
        tables.copy_from_slice(&seed[16..]);
        Self { token, tables: TableKey(tables) }
    }

    /// The token of one attempt: a keyed hash of its probe and number, so that it does not have to be stored (B7).
    pub fn token(&self, serial: u64, attempt: u8) -> Token {
        let mut hasher = SipHasher24::new_with_key(&self.token);
        hasher.write_u64(serial);
        hasher.write_u8(attempt);
        Token(hasher.finish().to_le_bytes())
    }
}

impl TableKey {
    pub fn hash(self, bytes: &[u8]) -> u64 {
        let mut hasher = self.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }
}

impl BuildHasher for TableKey {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(hidden)")
    }
}

impl fmt::Debug for TableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn b7_echo_values_differ_by_query_and_by_seed() {
        let secrets = [[1; 32], [2; 32]].map(Secrets::new);
        let echoes: HashSet<[u8; 4]> = (0..2_000)
            .flat_map(|which| secrets.iter().map(move |secrets| secrets.token(which / 4, (which % 4) as u8).short()))
            .collect();
        // Among 4,000 values of 32 bits a collision is expected for one seed in 500; these two seeds have none.
        assert_eq!(echoes.len(), 4_000);
    }
}
