//! Address prefixes as keys: a single address, or the network that a customer, a LAN or an organisation has.
//!
//! An IPv4-mapped IPv6 address counts as the IPv4 address that it stands for.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// An address prefix by which [`TokenBuckets`](crate::TokenBuckets) can be keyed.
pub trait BucketKey: Copy {
    /// The key as a number: two keys are equal exactly if their numbers are.
    fn bits(self) -> u128;
}

/// The leading bits of an address: `V4` bits of an IPv4 address (1 to 32), `V6` bits of an IPv6 address (1 to 95).
///
/// IPv6 prefixes are shorter than 96 bits so that no IPv6 prefix equals an IPv4 one; [`Host`], the whole address, is the
/// exception, for which that holds as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<const V4: u8, const V6: u8>(u128);

/// One address: an IPv4 /32 or an IPv6 /128.
pub type Host = Prefix<32, 128>;

/// One local network: an IPv4 address (commonly of a router that translates addresses), or an IPv6 /64, in which one machine
/// can have any number of addresses.
pub type Lan = Prefix<32, 64>;

/// The usual assignment of one customer of a provider: an IPv4 address or an IPv6 /56.
pub type Customer = Prefix<32, 56>;

/// A small network: an IPv4 /24 or an IPv6 /56.
pub type Net = Prefix<24, 56>;

/// The usual assignment of one organisation: an IPv4 /24 or an IPv6 /48.
pub type Site = Prefix<24, 48>;

impl<const V4: u8, const V6: u8> Prefix<V4, V6> {
    /// The prefix of an address.
    ///
    /// ```
    /// # use rallypoint_limit::{Customer, Lan, Net, Site};
    /// let v4 = "192.0.2.77".parse().unwrap();
    /// assert_eq!(Lan::of(v4).to_string(), "192.0.2.77");
    /// assert_eq!(Net::of(v4).to_string(), "192.0.2.0/24");
    ///
    /// let v6 = "2001:db8:1:234::1".parse().unwrap();
    /// assert_eq!(Lan::of(v6).to_string(), "2001:db8:1:234::/64");
    /// assert_eq!(Customer::of(v6).to_string(), "2001:db8:1:200::/56");
    /// assert_eq!(Site::of(v6).to_string(), "2001:db8:1::/48");
    /// ```
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let bits = mapped(address);
        // A mapped IPv4 network keeps the ones of its mapping, which a shorter IPv6 prefix has cleared.
        let length = if is_mapped(bits) { 96 + V4 } else { V6 };
        Self(bits & u128::MAX << (128 - length))
    }
}

impl<const V4: u8, const V6: u8> BucketKey for Prefix<V4, V6> {
    fn bits(self) -> u128 {
        self.0
    }
}

impl BucketKey for u64 {
    fn bits(self) -> u128 {
        self.into()
    }
}

impl BucketKey for u128 {
    fn bits(self) -> u128 {
        self
    }
}

/// In the common notation; the length is left out where the prefix is a single address.
impl<const V4: u8, const V6: u8> fmt::Display for Prefix<V4, V6> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not `IpAddr::to_canonical`, which takes the network ::ffff:0:0/96 itself for IPv4.
        match is_mapped(self.0) {
            true if V4 == 32 => write!(f, "{}", Ipv4Addr::from_bits(self.0 as u32)),
            true => write!(f, "{}/{V4}", Ipv4Addr::from_bits(self.0 as u32)),
            false if V6 == 128 => write!(f, "{}", Ipv6Addr::from_bits(self.0)),
            false => write!(f, "{}/{V6}", Ipv6Addr::from_bits(self.0)),
        }
    }
}

impl<const V4: u8, const V6: u8> fmt::Debug for Prefix<V4, V6> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefix({self})")
    }
}

/// An address as 128 bits, IPv4 in its IPv4-mapped form.
fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn is_mapped(bits: u128) -> bool {
    bits >> 32 == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_are_displayed_in_the_common_notation() {
        let v6 = "2001:db8:aa:bbcc:1:2:3:4";
        for (address, host, lan, customer, net, site) in [
            ("198.51.100.7", "198.51.100.7", "198.51.100.7", "198.51.100.7", "198.51.100.0/24", "198.51.100.0/24"),
            (
                "::ffff:198.51.100.7",
                "198.51.100.7",
                "198.51.100.7",
                "198.51.100.7",
                "198.51.100.0/24",
                "198.51.100.0/24",
            ),
            ("0.0.0.0", "0.0.0.0", "0.0.0.0", "0.0.0.0", "0.0.0.0/24", "0.0.0.0/24"),
            (v6, v6, "2001:db8:aa:bbcc::/64", "2001:db8:aa:bb00::/56", "2001:db8:aa:bb00::/56", "2001:db8:aa::/48"),
            ("::1", "::1", "::/64", "::/56", "::/56", "::/48"),
        ] {
            assert_eq!(Host::of(ip(address)).to_string(), host);
            assert_eq!(Lan::of(ip(address)).to_string(), lan);
            assert_eq!(Customer::of(ip(address)).to_string(), customer);
            assert_eq!(Net::of(ip(address)).to_string(), net);
            assert_eq!(Site::of(ip(address)).to_string(), site);
        }
        assert_eq!(format!("{:?}", Net::of(ip("198.51.100.7"))), "Prefix(198.51.100.0/24)");
    }

    #[test]
    fn an_ipv4_network_never_equals_an_ipv6_one() {
        assert_ne!(Net::of(ip("0.0.0.0")).bits(), Net::of(ip("::")).bits());
        assert_ne!(Net::of(ip("255.255.255.255")).bits(), Net::of(ip("::fffe:0:0")).bits());
    }
}
