//! Addresses of the IANA special-purpose registries are not public, at both ends of every block; IPv6 addresses that contain
//! IPv4 addresses are judged by those.

use rallypoint_limit::is_public;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The registries, with multicast and what is reserved beside global unicast space. IPv6 blocks that contain IPv4 addresses are
/// tested separately.
const SPECIAL: [&str; 52] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.9/32",
    "192.0.0.10/32",
    "192.0.0.170/31",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::/128",
    "::1/128",
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "200::/7",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:1ff::/32",
    "2001:db8::/32",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "4000::/3",
    "fc00::/7",
    "fe00::/9",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The first and the last address of a block, and one in between.
fn addresses_of(block: &str) -> [IpAddr; 3] {
    let (start, length) = block.split_once('/').unwrap();
    let length: u32 = length.parse().unwrap();
    match ip(start) {
        IpAddr::V4(start) => {
            let last = start.to_bits() | u32::MAX.checked_shr(length).unwrap_or(0);
            [start.to_bits(), start.to_bits().midpoint(last), last].map(|bits| Ipv4Addr::from_bits(bits).into())
        }
        IpAddr::V6(start) => {
            let last = start.to_bits() | u128::MAX.checked_shr(length).unwrap_or(0);
            [start.to_bits(), start.to_bits().midpoint(last), last].map(|bits| Ipv6Addr::from_bits(bits).into())
        }
    }
}

#[test]
fn blocks_of_the_registries_are_not_public() {
    for block in SPECIAL {
        for address in addresses_of(block) {
            assert!(!is_public(address), "{address} of {block}");
        }
    }
}

#[test]
fn addresses_beside_the_blocks_are_public() {
    for public in [
        "1.0.0.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2620:4f:7fff::1",
        "2a01:4f8::1",
        "3ffe::1",
        "3fff:1000::1",
    ] {
        assert!(is_public(ip(public)), "{public}");
    }
}

#[test]
fn inner_ipv4_addresses_decide() {
    let forms: [fn(Ipv4Addr) -> u128; 5] = [
        |inner| inner.to_ipv6_mapped().to_bits(),
        |inner| 0x0064_ff9b << 96 | u128::from(inner.to_bits()),
        |inner| 0x2002 << 112 | u128::from(inner.to_bits()) << 80 | 1,
        // Teredo: of the server, and of the client.
        |inner| 0x2001_0000 << 96 | u128::from(inner.to_bits()) << 64 | u128::from(!0x0909_0909_u32),
        |inner| 0x2001_0000 << 96 | 0x0909_0909 << 64 | u128::from(!inner.to_bits()),
    ];
    for form in forms {
        let outer = |inner: &str| IpAddr::V6(Ipv6Addr::from_bits(form(inner.parse().unwrap())));
        for inner in ["127.0.0.1", "10.1.2.3", "192.168.1.1", "169.254.169.254", "198.18.0.1", "224.0.0.1", "0.0.0.0"] {
            assert!(!is_public(outer(inner)), "{} contains {inner}", outer(inner));
        }
        assert!(is_public(outer("8.8.4.4")), "{}", outer("8.8.4.4"));
    }
}
