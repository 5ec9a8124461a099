//! Unpredictable numbers from one seed that is handed in: HMAC-SHA256 in counter mode.
//!
//! Only logins and new addresses draw from it, so its speed does not matter.

use crate::crypto::{Secret, StaticKey, hmac_sha256};
use rallypoint_wire::session::{Rand, Uid};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

pub(crate) struct Entropy {
    key: Zeroizing<[u8; 32]>,
    drawn: u64,
}

impl Entropy {
    pub fn new(seed: [u8; 32]) -> Self {
        Self { key: Zeroizing::new(seed), drawn: 0 }
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= 32) };
        let mut block = hmac_sha256(&self.key[..], &[&self.drawn.to_le_bytes()]);
        self.drawn += 1;
        let mut out = [0; N];
        out.copy_from_slice(&block[..N]);
        block.zeroize();
        out
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    pub fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.bytes())
    }

    /// A UID without a zero byte (S17).
    pub fn uid(&mut self) -> Uid {
        loop {
            if let Some(uid) = Uid::draw(self.bytes()) {
                return uid;
            }
        }
    }

    /// A rand without a zero byte (S17).
    pub fn rand(&mut self) -> Rand {
        loop {
            if let Some(rand) = Rand::draw(self.bytes()) {
                return rand;
            }
        }
    }

    pub fn secret(&mut self) -> Secret {
        Secret::new(self.bytes())
    }

    /// A fresh key pair. Every 32 bytes are a valid X25519 key, so this loop ends at once.
    pub fn key(&mut self) -> StaticKey {
        loop {
            if let Ok(key) = StaticKey::from_bytes(self.bytes()) {
                return key;
            }
        }
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(secret)")
    }
}
