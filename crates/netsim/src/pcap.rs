//! Packet captures of simulated traffic, for Wireshark and similar tools.

use rallypoint_wire::pcap;
use std::{io, net::SocketAddr, time::Duration};

/// Writes a packet capture (pcap) file.
#[derive(Debug)]
pub struct Pcap<W>(W);

impl<W: io::Write> Pcap<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn new(mut writer: W) -> io::Result<Self> {
        let mut header = Vec::new();
        pcap::emit_header(&mut header);
        writer.write_all(&header)?;
        Ok(Self(writer))
    }

    /// Writes a datagram; `at` is the time since 1970, or since any other start. Bytes beyond the maximum size of a UDP
    /// datagram are left out.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn write(&mut self, at: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let mut packet = Vec::new();
        pcap::emit_datagram(at, from, to, bytes, &mut packet);
        self.0.write_all(&packet)
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
