//! Simulated game servers.

use std::{net::Ipv4Addr, ops::Range};

/// A registration of Gang Garrison 2: seven entries, 224 bytes.
const REGISTRATION: &[u8] = include_bytes!("../../fuzz/corpus/lobby/a-full-registration-as-gang-garrison-2-sends-it");

/// Offsets of its fields.
const ID: Range<usize> = 16..32;
const TRANSPORT: usize = 48;
const PLAYERS: Range<usize> = 53..55;

/// Size in bytes of a registration of these servers.
pub const REGISTRATION_SIZE: usize = REGISTRATION.len();

/// The registration of the server with this number. The transport is UDP, so a lobby lists it without a reachability check.
#[must_use]
pub fn registration(server: u32, players: u16) -> [u8; REGISTRATION_SIZE] {
    let mut datagram = *REGISTRATION.first_chunk().expect("the array has the length of the constant");
    let id = u128::from(mixed(u64::from(server))) << 64 | u128::from(mixed(!u64::from(server)));
    datagram[ID].copy_from_slice(&id.to_be_bytes());
    datagram[TRANSPORT] = 1;
    datagram[PLAYERS].copy_from_slice(&players.to_be_bytes());
    datagram
}

/// The address of the server with this number: each of up to 15 million servers has its own address in 127.0.0.0/8.
#[must_use]
pub fn address(server: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 0).to_bits() + server)
}

/// A deterministic pseudo-random number generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed << 32)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0)
    }

    /// The next number, less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u32
    }
}

/// The finalizer of SplitMix64: every input bit affects every output bit.
fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_wire::lobby::{Datagram, Transport};

    #[test]
    fn registrations_are_valid_and_distinct() {
        let one = registration(1, 7);
        let other = registration(2, 7);
        let (Ok(Datagram::Register(one)), Ok(Datagram::Register(other))) =
            (Datagram::parse(&one), Datagram::parse(&other))
        else {
            panic!("not a registration");
        };
        assert_eq!((one.transport(), one.occupancy().players), (Transport::Udp, 7));
        assert!(one.server_id() != other.server_id());
        assert!(address(15_000_000).is_loopback() && address(1) != address(2));
    }

    #[test]
    fn random_numbers_reach_their_whole_range() {
        let mut random = Random::new(1);
        let mut seen = [false; 10];
        (0..1_000).for_each(|_| seen[random.below(10) as usize] = true);
        assert_eq!(seen, [true; 10]);
    }
}
