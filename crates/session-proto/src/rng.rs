//! Generator of secrets: HMAC-SHA256 in counter mode, seeded from outside.
//!
//! Only logins and new addresses draw from it, so its speed does not matter.

use crate::crypto::{Secret, StaticKey, hmac_sha256};
use rallypoint_wire::session::{Rand, Uid};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Draws unpredictable numbers and keys from one seed.
pub(crate) struct SecretRng {
    key: Zeroizing<[u8; 32]>,
    counter: u64,
}

impl SecretRng {
    pub fn new(seed: [u8; 32]) -> Self {
        Self { key: Zeroizing::new(seed), counter: 0 }
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= 32) };
        let mut block = hmac_sha256(&self.key[..], &[&self.counter.to_le_bytes()]);
        self.counter += 1;
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
            if let Some(uid) = Uid::from_random(self.bytes()) {
                return uid;
            }
        }
    }

    /// A rand without a zero byte (S17).
    pub fn rand(&mut self) -> Rand {
        loop {
            if let Some(rand) = Rand::from_random(self.bytes()) {
                return rand;
            }
        }
    }

    pub fn secret(&mut self) -> Secret {
        Secret::new(self.bytes())
    }

    /// A new key pair. Any 32 bytes are a valid X25519 key, so the loop ends with its first iteration.
    pub fn key(&mut self) -> StaticKey {
        loop {
            if let Ok(key) = StaticKey::from_bytes(self.bytes()) {
                return key;
            }
        }
    }
}

impl fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretRng(secret)")
    }
}
