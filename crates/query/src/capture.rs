//! Observing the datagrams of a scan, and writing them to a file for packet analysers.

use crate::route::local_address_for;
use rallypoint_wire::pcap;
use std::{
    collections::HashMap,
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    time::{Duration, SystemTime},
};

/// Receives a copy of every datagram of a scan, on the thread that probes.
pub trait PacketObserver: Send {
    /// Called for every datagram. `local` may be unspecified: see [`PcapWriter`].
    fn observe(&mut self, direction: Direction, local: SocketAddr, remote: SocketAddr, bytes: &[u8]);
}

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sent by this machine.
    Sent,
    /// Received by this machine.
    Received,
}

/// Writes a packet capture in the pcap format.
#[derive(Debug)]
pub struct PcapWriter<W> {
    writer: W,
    /// The local address from which each remote address is reached: a socket bound to all addresses does not say.
    local_addresses: HashMap<IpAddr, IpAddr>,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn new(mut writer: W) -> io::Result<Self> {
        let mut header = Vec::new();
        pcap::emit_header(&mut header);
        writer.write_all(&header)?;
        Ok(Self { writer, local_addresses: HashMap::new() })
    }

    /// Writes a datagram with the current time, and flushes it: the program may be ended at any time. An unspecified local
    /// address is replaced by the one that the remote address is reached from.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn write(
        &mut self,
        direction: Direction,
        local: SocketAddr,
        remote: SocketAddr,
        bytes: &[u8],
    ) -> io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.write_at(now, direction, local, remote, bytes)
    }

    fn write_at(
        &mut self,
        since_1970: Duration,
        direction: Direction,
        local: SocketAddr,
        remote: SocketAddr,
        bytes: &[u8],
    ) -> io::Result<()> {
        let mut ip = local.ip();
        if ip.is_unspecified() {
            let known = self.local_addresses.entry(remote.ip());
            ip = *known.or_insert_with(|| local_address_for(remote).unwrap_or(ip));
        }
        let local = SocketAddr::new(ip, local.port());
        let (from, to) = match direction {
            Direction::Sent => (local, remote),
            Direction::Received => (remote, local),
        };
        let mut packet = Vec::new();
        pcap::emit_datagram(since_1970, from, to, bytes, &mut packet);
        self.writer.write_all(&packet)?;
        self.writer.flush()
    }
}
