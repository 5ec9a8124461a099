//! Packet captures in the classic format (with nanoseconds), for tools that show them: raw IP and UDP around the bytes.

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Writes a packet capture.
#[derive(Debug)]
pub struct Capture<W>(W);

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: u32 = 2 | 4 << 16;
const SNAP_LENGTH: u32 = 0x4_0000;
const LINK_TYPE_RAW_IP: u32 = 101;
const UDP: u8 = 17;

impl<W: Write> Capture<W> {
    /// Writes the header of the file.
    pub fn new(mut writer: W) -> io::Result<Self> {
        for word in [NANOSECOND_MAGIC, VERSION, 0, 0, SNAP_LENGTH, LINK_TYPE_RAW_IP] {
            writer.write_all(&word.to_le_bytes())?;
        }
        Ok(Self(writer))
    }

    /// Writes a datagram; `at` is the time since 1970.
    pub fn write(&mut self, at: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        // No UDP datagram is longer.
        let bytes = &bytes[..bytes.len().min(65_507)];
        let udp_length = (8 + bytes.len()) as u16;
        let (addresses, start) = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let addresses = [from.octets(), to.octets()].concat();
                let [high, low] = (udp_length + 20).to_be_bytes();
                let mut start = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0];
                let sum = checksum(&[&start, &addresses]);
                start[10..].copy_from_slice(&sum.to_be_bytes());
                (addresses, start)
            }
            (from, to) => {
                let octets = |ip| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                };
                let [high, low] = udp_length.to_be_bytes();
                ([octets(from), octets(to)].concat(), vec![0x60, 0, 0, 0, high, low, UDP, 64])
            }
        };
        let ports: Vec<u8> = [from.port(), to.port(), udp_length].iter().flat_map(|word| word.to_be_bytes()).collect();
        let sum = match checksum(&[&addresses, &[0, UDP], &udp_length.to_be_bytes(), &ports, bytes]) {
            0 => u16::MAX, // zero means: no checksum
            sum => sum,
        };
        let length = (start.len() + addresses.len() + ports.len() + 2 + bytes.len()) as u32;
        for word in [at.as_secs() as u32, at.subsec_nanos(), length, length] {
            self.0.write_all(&word.to_le_bytes())?;
        }
        for part in [&start, &addresses, &ports, &sum.to_be_bytes()[..], bytes] {
            self.0.write_all(part)?;
        }
        self.0.flush()
    }
}

/// The sum of IP and UDP over parts of even length (the last may be odd).
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(from: &str, to: &str, bytes: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file).unwrap();
        capture.write(Duration::new(7, 8), from.parse().unwrap(), to.parse().unwrap(), bytes).unwrap();
        file
    }

    #[test]
    fn a_packet_has_right_lengths_and_sums() {
        for (from, to, header) in [("192.0.2.1:7", "192.0.2.2:9", 20), ("[2001:db8::1]:7", "[2001:db8::2]:9", 40)] {
            for payload in [&b"x"[..], b"hello!"] {
                let file = captured(from, to, payload);
                assert_eq!(file[..4], NANOSECOND_MAGIC.to_le_bytes());
                let packet = &file[24 + 16..];
                assert_eq!(packet.len(), header + 8 + payload.len());
                assert_eq!(
                    file[24..40],
                    [7u32, 8, packet.len() as u32, packet.len() as u32].map(u32::to_le_bytes).concat()
                );
                assert_eq!(packet[header..header + 4], [0, 7, 0, 9]);
                assert!(packet.ends_with(payload));
                // What is summed up with its own sum is zero.
                let addresses = if header == 20 { &packet[12..20] } else { &packet[8..40] };
                let length = (8 + payload.len() as u16).to_be_bytes();
                assert_eq!(checksum(&[addresses, &[0, UDP], &length, &packet[header..]]), 0);
                assert!(header == 40 || checksum(&[&packet[..20]]) == 0);
            }
        }
    }
}
