//! Packet captures in the classic format (with nanoseconds), for tools that show them: raw IP and UDP around the bytes.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Writes a packet capture.
#[derive(Debug)]
pub struct Pcap<W>(W);

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const LINK_TYPE_RAW_IP: u32 = 101;
const UDP: u8 = 17;

impl<W: io::Write> Pcap<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(mut writer: W) -> io::Result<Self> {
        // Version 2.4, no time zone, no accuracy, no limit on packets.
        let version = 2 | 4 << 16;
        for word in [NANOSECOND_MAGIC, version, 0, 0, 0x4_0000, LINK_TYPE_RAW_IP] {
            writer.write_all(&word.to_le_bytes())?;
        }
        Ok(Self(writer))
    }

    /// Writes a datagram; `at` is the time since 1970, or since any other start. Bytes that no UDP datagram can hold are left
    /// out.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&mut self, at: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let bytes = &bytes[..bytes.len().min(65_000)];
        let udp_len = (8 + bytes.len()) as u16;
        let mut udp: Vec<u8> =
            [from.port(), to.port(), udp_len, 0].iter().flat_map(|word| word.to_be_bytes()).collect();
        udp.extend_from_slice(bytes);

        let (addresses, mut ip) = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let addresses = [from.octets(), to.octets()].concat();
                let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0];
                ip[2..4].copy_from_slice(&(udp_len + 20).to_be_bytes());
                let checksum = checksum(&[&ip, &addresses]);
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
                (addresses, ip)
            }
            (from, to) => {
                let addresses = [from, to].map(|ip| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                });
                let [high, low] = udp_len.to_be_bytes();
                (addresses.concat(), vec![0x60, 0, 0, 0, high, low, UDP, 64])
            }
        };
        ip.extend_from_slice(&addresses);
        let sum = match checksum(&[&addresses, &[0, UDP], &udp_len.to_be_bytes(), &udp]) {
            0 => u16::MAX, // zero means: no checksum
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());

        let len = (ip.len() + udp.len()) as u32;
        for word in [at.as_secs() as u32, at.subsec_nanos(), len, len] {
            self.0.write_all(&word.to_le_bytes())?;
        }
        self.0.write_all(&ip)?;
        self.0.write_all(&udp)
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// What the writer says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The sum of IP and UDP over parts of even length (the last may be odd).
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
