//! Properties of single addresses.
//!
//! The blocks are those of the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890), as of November 2026. The
//! standard library covers only a part of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 block: its address and prefix length.
type V4Block = ([u8; 4], u8);

/// An IPv6 block: the first 64 bits of its address, and its prefix length (at most 64).
type V6Block = (u64, u8);

/// Special-purpose IPv4 blocks. Those that are globally reachable are anycast services: no game server has such an address, and
/// 192.0.0.9 (Port Control Protocol) leads to a router of the network it is sent from.
const SPECIAL_V4: [V4Block; 17] = [
    ([0, 0, 0, 0], 8),       // this network
    ([10, 0, 0, 0], 8),      // private use
    ([100, 64, 0, 0], 10),   // shared by the customers of a provider behind its address translation
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local
    ([172, 16, 0, 0], 12),   // private use
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 31, 196, 0], 24), // AS112, anycast
    ([192, 52, 193, 0], 24), // automatic multicast tunnelling
    ([192, 88, 99, 0], 24),  // 6to4 relays, anycast
    ([192, 168, 0, 0], 16),  // private use
    ([192, 175, 48, 0], 24), // AS112, anycast
    ([198, 18, 0, 0], 15),   // benchmarks
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 3),     // multicast; reserved, with the broadcast address
];

/// Special-purpose IPv6 blocks within global unicast space.
const SPECIAL_V6: [V6Block; 4] = [
    (0x2001_0000_0000_0000, 23), // protocol assignments: benchmarks, ORCHID, anycast; Teredo is examined before
    (0x2001_0db8_0000_0000, 32), // documentation
    (0x2620_004f_8000_0000, 48), // AS112, anycast
    (0x3fff_0000_0000_0000, 20), // documentation
];

/// Global unicast space. What is outside is reserved or special: unspecified, loopback, IPv4-compatible, local-use translation
/// (64:ff9b:1::/48), discard-only (100::/64), segment routing, unique local, link-local, site-local, multicast.
const GLOBAL_UNICAST: V6Block = (0x2000_0000_0000_0000, 3);

/// IPv4 addresses translated by NAT64 (RFC 6052); a /96, whose last 32 bits are the address.
const NAT64: u128 = 0x0064_ff9b << 96;

/// 6to4 (RFC 3056): the next 32 bits are the IPv4 address of the router.
const SIX_TO_FOUR: V6Block = (0x2002_0000_0000_0000, 16);

/// Teredo (RFC 4380): the next 32 bits are the address of the server, the last 32 bits the inverted address of the client.
const TEREDO: V6Block = (0x2001_0000_0000_0000, 32);

/// Whether an address is publicly routable, so that players anywhere could reach it.
///
/// All blocks of the IANA special-purpose address registries are not. An IPv6 address that a gateway translates to IPv4 (mapped,
/// NAT64, 6to4, Teredo) is as public as the IPv4 addresses it contains.
///
/// ```
/// use rallypoint_limit::is_public;
///
/// assert!(is_public("9.9.9.9".parse().unwrap()));
/// assert!(!is_public("192.168.0.1".parse().unwrap()));
/// assert!(!is_public("64:ff9b::192.168.0.1".parse().unwrap()), "192.168.0.1 behind a NAT64 gateway");
/// ```
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let is_within = |&(block, length): &V4Block| (ip.to_bits() ^ u32::from_be_bytes(block)) >> (32 - length) == 0;
    !SPECIAL_V4.iter().any(is_within)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let bits = ip.to_bits();
    let high = (bits >> 64) as u64;
    let is_within = |&(block, length): &V6Block| (high ^ block) >> (64 - length) == 0;
    let last = Ipv4Addr::from_bits(bits as u32);
    if (bits ^ NAT64) >> 32 == 0 {
        return is_public_v4(last);
    }
    if is_within(&SIX_TO_FOUR) {
        return is_public_v4(Ipv4Addr::from_bits((high >> 16) as u32));
    }
    if is_within(&TEREDO) {
        let client = Ipv4Addr::from_bits(!last.to_bits());
        return is_public_v4(Ipv4Addr::from_bits(high as u32)) && is_public_v4(client);
    }
    is_within(&GLOBAL_UNICAST) && !SPECIAL_V6.iter().any(is_within)
}

/// Whether a datagram can come from this address at all: it belongs to a single machine.
#[must_use]
pub fn is_possible_source(ip: IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}
