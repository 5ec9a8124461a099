//! The game servers that the suites play.

use std::{net::Ipv4Addr, ops::Range};

/// What Gang Garrison 2 sends: seven entries, 224 bytes.
const REGISTRATION: &[u8] = include_bytes!("../../fuzz/corpus/lobby/a-full-registration-as-gang-garrison-2-sends-it");

/// Where its parts are.
const ID: Range<usize> = 16..32;
const TRANSPORT: usize = 48;
const PLAYERS: Range<usize> = 53..55;

/// How long a registration of these servers is, in bytes.
pub const REGISTRATION_SIZE: usize = REGISTRATION.len();

/// The registration of the server with this number. The transport is UDP, so a lobby lists it without a check.
#[must_use]
pub fn registration(server: u32, players: u16) -> [u8; REGISTRATION_SIZE] {
    let mut datagram = *REGISTRATION.first_chunk().expect("its own length");
    let id = u128::from(mixed(u64::from(server))) << 64 | u128::from(mixed(!u64::from(server)));
    datagram[ID].copy_from_slice(&id.to_be_bytes());
    datagram[TRANSPORT] = 1;
    datagram[PLAYERS].copy_from_slice(&players.to_be_bytes());
    datagram
}

/// Where the server with this number is: each has an address of its own in 127.0.0.0/8, up to 15 million of them.
#[must_use]
pub fn address(server: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 0).to_bits() + server)
}

/// Numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Other numbers for every seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed << 32)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0)
    }

    /// The next number, less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u32
    }
}

/// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
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
    fn a_registration_is_one_and_every_server_has_its_own() {
        let (one, other) = (registration(1, 7), registration(2, 7));
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
