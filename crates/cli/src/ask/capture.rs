//! A file with every datagram, for packet analysers.

use rallypoint_wire::pcap;
use std::{
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};

/// Writes a packet capture.
#[derive(Debug)]
pub struct Capture<W>(W);

impl<W: Write> Capture<W> {
    /// Writes the header of the file.
    pub fn new(mut writer: W) -> io::Result<Self> {
        let mut header = Vec::new();
        pcap::emit_header(&mut header);
        writer.write_all(&header)?;
        Ok(Self(writer))
    }

    /// Writes a datagram, at once: the program may be ended at any time. `at` is the time since 1970.
    pub fn write(&mut self, at: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let mut packet = Vec::new();
        pcap::emit_datagram(at, from, to, bytes, &mut packet);
        self.0.write_all(&packet)?;
        self.0.flush()
    }
}
