//! Properties of single addresses.

use std::net::{IpAddr, Ipv4Addr};

/// Whether an address is publicly routable, so that players anywhere could reach it.
///
/// ```
/// use rallypoint_limit::is_public;
///
/// assert!(is_public("203.0.113.9".parse().unwrap()));
/// assert!(!is_public("192.168.0.1".parse().unwrap()));
/// ```
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            // 100.64.0.0/10 is shared by the customers of a provider, behind its own address translation (RFC 6598).
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_reserved = a == 0 || a >= 240;
            !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || is_shared || is_reserved)
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local())
        }
    }
}

/// Whether a datagram can come from this address at all: it belongs to a single machine.
#[must_use]
pub fn is_possible_source(ip: IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_reserved_addresses_are_not_public() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.9.9",
            "169.254.1.1",
            "100.64.0.1",
            "::1",
            "fe80::1",
            "fd00::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in ["203.0.113.9", "8.8.8.8", "100.128.0.1", "2001:db8::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
