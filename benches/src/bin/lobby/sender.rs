//! Sends what game servers send.

use crate::sys::{self, BATCH};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
};

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
