//! The random number generator: xoshiro256++ of Blackman and Vigna, seeded by SplitMix64.
//!
//! It is written here rather than taken from a library because a run must stay the same when a dependency is updated:
//! otherwise a seed in a bug report would be useless.

use std::time::Duration;

/// A small, fast, seeded random number generator. It is not suitable for secrets.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The generator of a seed; every seed is equally good.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| split_mix(&mut state)))
    }

    /// One of many independent generators of the same seed, so that draws from one do not change the others.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut seed = seed;
        let mut stream = !stream;
        Self::new(split_mix(&mut seed) ^ split_mix(&mut stream).rotate_left(32))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number in `0..end`; 0 if `end` is 0. The bias of at most `end` in 2^64 does not matter here.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability. Probabilities of 0 and 1 draw no number; values outside `0.0..=1.0` count as the nearest
    /// end.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability >= 1.0 {
            true
        } else if probability > 0.0 {
            self.unit() < probability
        } else {
            false
        }
    }

    /// A time in `0..=max`.
    pub fn duration(&mut self, max: Duration) -> Duration {
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// Fills a slice with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// A new generator, seeded by this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

/// SplitMix64 of Steele, Lea and Flood.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the authors' reference programs.
    #[test]
    fn matches_the_reference() {
        let mut rng = Rng([1, 2, 3, 4]);
        let expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205];
        assert_eq!(expected, std::array::from_fn(|_| rng.next_u64()));
        let mut state = 1234567;
        let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!(expected, std::array::from_fn(|_| split_mix(&mut state)));
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let firsts: std::collections::BTreeSet<u64> =
            (0..100).flat_map(|seed| (0..100).map(move |stream| Rng::stream(seed, stream).next_u64())).collect();
        assert_eq!(firsts.len(), 10_000);
    }

    #[test]
    fn stays_in_range() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.below(0), 0);
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
        assert_eq!(rng.duration(Duration::ZERO), Duration::ZERO);
        let _ = rng.duration(Duration::MAX);
        assert!(rng.chance(7.0) && !rng.chance(-1.0) && !rng.chance(f64::NAN));
        let mut bytes = [0; 13];
        rng.fill(&mut bytes);
        assert!(bytes.iter().any(|&byte| byte != 0));
    }
}
