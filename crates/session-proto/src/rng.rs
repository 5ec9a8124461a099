//! Generator of secrets: HMAC-SHA256 with a ratchet, seeded from outside.
//!
//! Every draw replaces the state by a one-way function of itself, so a state that leaks later does not reveal what was drawn
//! before; and fresh entropy is mixed in now and then, so that a state that has leaked does not reveal what is drawn after
//! that. Only logins and new addresses draw from it, so its speed does not matter.

use crate::crypto::{Secret, StaticKey, hmac_sha256};
use rallypoint_wire::session::{Rand, Uid};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// The use of a state: separate inputs of the same HMAC.
const OUTPUT: &[u8] = b"output";
const RATCHET: &[u8] = b"ratchet";
const ENTROPY: &[u8] = b"entropy";

/// Draws unpredictable numbers and keys.
pub(crate) struct SecretRng {
    state: Zeroizing<[u8; 32]>,
}

impl SecretRng {
    pub fn new(mut seed: [u8; 32]) -> Self {
        let state = Zeroizing::new(seed);
        seed.zeroize();
        Self { state }
    }

    /// What an attacker has who reads the memory.
    #[cfg(test)]
    pub fn copy(&self) -> Self {
        Self { state: self.state.clone() }
    }

    /// Mixes entropy into the state. It may be known to an attacker, as long as the state is not.
    pub fn mix(&mut self, entropy: &[u8; 32]) {
        self.state = hmac_sha256(&self.state[..], &[ENTROPY, entropy]);
    }

    /// The next bytes, which are not secret for long: identifiers and seeds of tables.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.fill(&mut out);
        out
    }

    /// Fills at most 32 bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let block = hmac_sha256(&self.state[..], &[OUTPUT]);
        self.state = hmac_sha256(&self.state[..], &[RATCHET]);
        for (out, byte) in out.iter_mut().zip(&block[..]) {
            *out = *byte;
        }
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
        let mut secret = Secret::default();
        self.fill(&mut secret[..]);
        secret
    }

    /// A new key pair. Any 32 bytes are a valid X25519 key, so the loop ends with its first iteration.
    pub fn key(&mut self) -> StaticKey {
        loop {
            if let Ok(key) = StaticKey::from_secret(self.secret()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w66_a_later_state_does_not_yield_earlier_secrets() {
        let mut rng = SecretRng::new([7; 32]);
        let earlier: Vec<Secret> = (0..20).map(|_| rng.secret()).collect();
        // An attacker reads the state, and draws and ratchets as often as it likes; the seed is gone.
        let mut stolen = SecretRng::new(*rng.state);
        for _ in 0..1_000 {
            let drawn = stolen.secret();
            assert!(earlier.iter().all(|secret| **secret != *drawn));
        }
        // Nor is an earlier secret a function of the state that the draws use.
        for label in [OUTPUT, RATCHET, ENTROPY, b""] {
            let derived = hmac_sha256(&rng.state[..], &[label]);
            assert!(earlier.iter().all(|secret| **secret != *derived));
        }
        for counter in 0..100_u64 {
            let derived = hmac_sha256(&rng.state[..], &[&counter.to_le_bytes()]);
            assert!(earlier.iter().all(|secret| **secret != *derived));
        }
    }

    #[test]
    fn w66_entropy_heals_a_state_that_has_leaked() {
        let mut rng = SecretRng::new([7; 32]);
        let mut stolen = SecretRng::new(*rng.state);
        assert_eq!(*rng.secret(), *stolen.secret());
        rng.mix(&[1; 32]);
        assert_ne!(*rng.secret(), *stolen.secret());
        stolen.mix(&[2; 32]);
        assert_ne!(*rng.secret(), *stolen.secret());
    }

    #[test]
    fn draws_differ_and_debug_hides_the_state() {
        let mut rng = SecretRng::new([7; 32]);
        let drawn: std::collections::HashSet<u64> = (0..1_000).map(|_| rng.u64()).collect();
        assert_eq!(drawn.len(), 1_000);
        assert_eq!(format!("{rng:?}"), "SecretRng(secret)");
    }
}
