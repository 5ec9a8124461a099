//! The game servers that the bench plays, each at an address of its own in 127.0.0.0/8, and how their datagrams are sent.

use crate::sys::{self, BATCH};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
};

/// What Gang Garrison 2 sends: seven entries, 224 bytes.
const REGISTRATION: &[u8] =
    include_bytes!("../../../../fuzz/corpus/lobby/a-full-registration-as-gang-garrison-2-sends-it");

/// Where its parts are.
const ID: std::ops::Range<usize> = 16..32;
const TRANSPORT: usize = 48;
const PLAYERS: std::ops::Range<usize> = 53..55;

/// How long a registration is.
pub const SIZE: usize = REGISTRATION.len();

/// The registration of a server. The transport is UDP, so the lobby lists it without a check.
pub fn registration(server: u32, players: u16) -> [u8; SIZE] {
    let mut datagram = *REGISTRATION.first_chunk().expect("its own length");
    let id = u128::from(mixed(u64::from(server))) << 64 | u128::from(mixed(!u64::from(server)));
    datagram[ID].copy_from_slice(&id.to_be_bytes());
    datagram[TRANSPORT] = 1;
    datagram[PLAYERS].copy_from_slice(&players.to_be_bytes());
    datagram
}

/// Where a server is.
pub fn address(server: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 0).to_bits() + server)
}

/// Numbers that look random and are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed << 32)
    }

    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        mixed(self.0)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        (u128::from(self.next()) * u128::from(end) >> 64) as u32
    }
}

/// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Sends datagrams to one place, many at a time, each from whatever address of this machine.
pub struct Sender {
    socket: UdpSocket,
    waiting: Vec<(Ipv4Addr, Vec<u8>)>,
    filled: usize,
    /// How many datagrams were sent.
    pub sent: u64,
}

impl Sender {
    pub fn new(to: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(to)?;
        let waiting = vec![(Ipv4Addr::UNSPECIFIED, Vec::new()); BATCH];
        Ok(Self { socket, waiting, filled: 0, sent: 0 })
    }

    /// Sends a datagram, or keeps it until there are more of them.
    pub fn push(&mut self, from: Ipv4Addr, bytes: &[u8]) -> io::Result<()> {
        let (source, datagram) = &mut self.waiting[self.filled];
        *source = from;
        datagram.clear();
        datagram.extend_from_slice(bytes);
        self.filled += 1;
        if self.filled == BATCH { self.flush() } else { Ok(()) }
    }

    /// Sends what was kept.
    pub fn flush(&mut self) -> io::Result<()> {
        let none: (_, &[u8]) = (Ipv4Addr::UNSPECIFIED, &[]);
        let mut datagrams = [none; BATCH];
        for ((source, bytes), datagram) in self.waiting[..self.filled].iter().zip(&mut datagrams) {
            *datagram = (*source, bytes);
        }
        sys::send_from(&self.socket, &datagrams[..self.filled])?;
        self.sent += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}
