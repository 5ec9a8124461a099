//! Packet captures in the classic pcap format with nanoseconds: datagrams with raw IP and UDP headers.
//!
//! ```text
//! file    magic a1b23c4d, version 2.4, 0, 0, snapshot length, link type 101 (raw IP); all little-endian
//! packet  seconds, nanoseconds, length, length; IP header, UDP header, bytes
//! ```

use alloc::vec::Vec;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: u32 = 2 | 4 << 16;
const SNAPSHOT_LENGTH: u32 = 0x4_0000;
const LINK_TYPE_RAW_IP: u32 = 101;
const UDP: u8 = 17;

/// Maximum payload of a UDP datagram over IPv4, in bytes.
const MAX_PAYLOAD: usize = 65_507;

/// Appends the file header.
pub fn emit_header(out: &mut Vec<u8>) {
    for word in [NANOSECOND_MAGIC, VERSION, 0, 0, SNAPSHOT_LENGTH, LINK_TYPE_RAW_IP] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Appends a datagram; `at` is the time since 1970, or since any other epoch. Bytes beyond the maximum of a UDP datagram are
/// left out.
pub fn emit_datagram(at: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(MAX_PAYLOAD)];
    let udp_length = (8 + bytes.len()) as u16;
    let ip_header = if from.is_ipv4() && to.is_ipv4() { 20 } else { 40 };
    let length = (ip_header + 8 + bytes.len()) as u32;
    for word in [at.as_secs() as u32, at.subsec_nanos(), length, length] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let start = out.len();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = (udp_length + 20).to_be_bytes();
            out.extend_from_slice(&[0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let sum = checksum(&[&out[start..]]);
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        }
        (from, to) => {
            let octets = |ip| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            let [high, low] = udp_length.to_be_bytes();
            out.extend_from_slice(&[0x60, 0, 0, 0, high, low, UDP, 64]);
            out.extend_from_slice(&octets(from));
            out.extend_from_slice(&octets(to));
        }
    }
    let udp = out.len();
    for word in [from.port(), to.port(), udp_length, 0] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(bytes);
    let addresses = if ip_header == 20 { 12 } else { 8 };
    let pseudo = &out[start + addresses..udp];
    let sum = match checksum(&[pseudo, &[0, UDP], &udp_length.to_be_bytes(), &out[udp..]]) {
        0 => u16::MAX, // zero means no checksum
        sum => sum,
    };
    out[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071) over parts of even length; the last may be odd.
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
        emit_header(&mut file);
        emit_datagram(Duration::new(7, 8), from.parse().unwrap(), to.parse().unwrap(), bytes, &mut file);
        file
    }

    #[test]
    fn a_packet_has_correct_lengths_and_checksums() {
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
                // The sum over data that includes its checksum is zero.
                let addresses = if header == 20 { &packet[12..20] } else { &packet[8..40] };
                let length = (8 + payload.len() as u16).to_be_bytes();
                assert_eq!(checksum(&[addresses, &[0, UDP], &length, &packet[header..]]), 0);
                assert!(header == 40 || checksum(&[&packet[..20]]) == 0);
            }
        }
    }
}
