//! Sends datagrams of simulated game servers.

use crate::sys::{self, BATCH};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
};

/// Sends datagrams to one destination in batches, each from any address of this machine.
pub struct Sender {
    socket: UdpSocket,
    batch: Vec<(Ipv4Addr, Vec<u8>)>,
    filled: usize,
    /// Number of datagrams sent.
    pub sent: u64,
}

impl Sender {
    pub fn new(to: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(to)?;
        let batch = vec![(Ipv4Addr::UNSPECIFIED, Vec::new()); BATCH];
        Ok(Self { socket, batch, filled: 0, sent: 0 })
    }

    /// Adds a datagram to the batch, which is sent when it is full.
    pub fn push(&mut self, from: Ipv4Addr, bytes: &[u8]) -> io::Result<()> {
        let (source, datagram) = &mut self.batch[self.filled];
        *source = from;
        datagram.clear();
        datagram.extend_from_slice(bytes);
        self.filled += 1;
        if self.filled == BATCH { self.flush() } else { Ok(()) }
    }

    /// Sends the batch.
    pub fn flush(&mut self) -> io::Result<()> {
        let none: (_, &[u8]) = (Ipv4Addr::UNSPECIFIED, &[]);
        let mut datagrams = [none; BATCH];
        for ((source, bytes), datagram) in self.batch[..self.filled].iter().zip(&mut datagrams) {
            *datagram = (*source, bytes);
        }
        sys::send_from(&self.socket, &datagrams[..self.filled])?;
        self.sent += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}
