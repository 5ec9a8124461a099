//! From where an address can be reached.

use rallypoint_limit::is_public;
use std::net::IpAddr;

/// From where an address is reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressScope {
    /// Reachable from the internet.
    Public,
    /// Only within the same local network.
    Private,
    /// Only from the same machine.
    Loopback,
    /// From nowhere: it is reserved for examples (RFC 5737, RFC 3849, RFC 9637).
    Documentation,
}

impl AddressScope {
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::Loopback,
            ip if is_documentation(ip) => Self::Documentation,
            ip if is_public(ip) => Self::Public,
            _ => Self::Private,
        }
    }
}

fn is_documentation(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_documentation(),
        IpAddr::V6(ip) => matches!(ip.segments(), [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_scopes() {
        for (ip, scope) in [
            ("127.0.0.1", AddressScope::Loopback),
            ("::1", AddressScope::Loopback),
            ("10.1.2.3", AddressScope::Private),
            ("100.64.0.1", AddressScope::Private),
            ("100.128.0.1", AddressScope::Public),
            ("fd00::1", AddressScope::Private),
            ("fe80::1", AddressScope::Private),
            ("fec0::1", AddressScope::Private),
            ("192.0.2.1", AddressScope::Documentation),
            ("2001:db8::1", AddressScope::Documentation),
            ("3fff:fff::1", AddressScope::Documentation),
            ("64:ff9b::192.168.0.1", AddressScope::Private),
            ("2620:fe::9", AddressScope::Public),
        ] {
            assert_eq!(AddressScope::of(ip.parse().unwrap()), scope, "{ip}");
        }
    }
}
