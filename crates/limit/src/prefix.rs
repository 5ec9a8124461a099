//! Address prefixes as keys: one address, its network, its site; and what counts as one where places are shared out.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// What a [`Buckets`](crate::Buckets) can be keyed by.
pub trait Key: Copy {
    /// The key as a number: two keys are the same exactly if their numbers are.
    fn bits(self) -> u128;
}

/// One address: an IPv4 /32 or an IPv6 /128.
///
/// An IPv4-mapped IPv6 address is the IPv4 address that it stands for, here and in the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(u128);

/// The network of an address: an IPv4 /24, or an IPv6 /56 (what one customer is commonly given).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Net(u128);

/// The site of an IPv6 address: a /48 (what one organisation is commonly given). IPv4 addresses have none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(u128);

/// What one household has: an IPv4 address, or an IPv6 /64, in which a machine can have as many addresses as it likes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home(u128);

/// What one organisation is commonly given, in either family: an IPv4 /24 or an IPv6 /48.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Area(u128);

impl Host {
    /// This address.
    pub fn of(address: IpAddr) -> Self {
        Self(mapped(address))
    }
}

impl Net {
    /// The network that this address is in.
    ///
    /// ```
    /// # use rallypoint_limit::Net;
    /// assert_eq!(Net::of("192.0.2.77".parse().unwrap()).to_string(), "192.0.2.0/24");
    /// assert_eq!(Net::of("2001:db8:1:234::1".parse().unwrap()).to_string(), "2001:db8:1:200::/56");
    /// ```
    pub fn of(address: IpAddr) -> Self {
        // A mapped IPv4 network has ones in the bits that a /56 has cleared, so the two kinds never meet.
        let keep = if is_v4(address) { 96 + 24 } else { 56 };
        Self(mapped(address) & leading(keep))
    }
}

impl Site {
    /// The site that this address is in, if it is an IPv6 address.
    pub fn of(address: IpAddr) -> Option<Self> {
        (!is_v4(address)).then(|| Self(mapped(address) & leading(48)))
    }
}

impl Home {
    /// The home that this address belongs to.
    ///
    /// ```
    /// # use rallypoint_limit::Home;
    /// assert_eq!(Home::of("192.0.2.77".parse().unwrap()).to_string(), "192.0.2.77/32");
    /// assert_eq!(Home::of("2001:db8:1:234::1".parse().unwrap()).to_string(), "2001:db8:1:234::/64");
    /// ```
    pub fn of(address: IpAddr) -> Self {
        let keep = if is_v4(address) { 128 } else { 64 };
        Self(mapped(address) & leading(keep))
    }
}

impl Area {
    /// The area that this address is in.
    ///
    /// ```
    /// # use rallypoint_limit::Area;
    /// assert_eq!(Area::of("192.0.2.77".parse().unwrap()).to_string(), "192.0.2.0/24");
    /// assert_eq!(Area::of("2001:db8:1:234::1".parse().unwrap()).to_string(), "2001:db8:1::/48");
    /// ```
    pub fn of(address: IpAddr) -> Self {
        let keep = if is_v4(address) { 96 + 24 } else { 48 };
        Self(mapped(address) & leading(keep))
    }
}

impl Key for Host {
    fn bits(self) -> u128 {
        self.0
    }
}

impl Key for Net {
    fn bits(self) -> u128 {
        self.0
    }
}

impl Key for Site {
    fn bits(self) -> u128 {
        self.0
    }
}

impl Key for u64 {
    fn bits(self) -> u128 {
        self.into()
    }
}

impl Key for u128 {
    fn bits(self) -> u128 {
        self
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unmapped(self.0).fmt(f)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match unmapped(self.0) {
            IpAddr::V4(network) => write!(f, "{network}/24"),
            IpAddr::V6(network) => write!(f, "{network}/56"),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/48", Ipv6Addr::from_bits(self.0))
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match unmapped(self.0) {
            IpAddr::V4(address) => write!(f, "{address}/32"),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match unmapped(self.0) {
            IpAddr::V4(network) => write!(f, "{network}/24"),
            IpAddr::V6(network) => write!(f, "{network}/48"),
        }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Home({self})")
    }
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Area({self})")
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({self})")
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Net({self})")
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({self})")
    }
}

fn is_v4(address: IpAddr) -> bool {
    address.to_canonical().is_ipv4()
}

/// Every address as 128 bits, IPv4 in its IPv4-mapped form.
fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The way back. Not `to_canonical`, which would not know the network of the mapped addresses themselves.
fn unmapped(bits: u128) -> IpAddr {
    match bits >> 32 {
        0xffff => Ipv4Addr::from_bits(bits as u32).into(),
        _ => Ipv6Addr::from_bits(bits).into(),
    }
}

fn leading(bits: u32) -> u128 {
    u128::MAX << (128 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_are_cut_and_shown_as_people_write_them() {
        for (address, host, net, site) in [
            ("198.51.100.7", "198.51.100.7", "198.51.100.0/24", None),
            ("::ffff:198.51.100.7", "198.51.100.7", "198.51.100.0/24", None),
            ("0.0.0.0", "0.0.0.0", "0.0.0.0/24", None),
            ("2001:db8:aa:bbcc:1:2:3:4", "2001:db8:aa:bbcc:1:2:3:4", "2001:db8:aa:bb00::/56", Some("2001:db8:aa::/48")),
            ("::1", "::1", "::/56", Some("::/48")),
        ] {
            assert_eq!(Host::of(ip(address)).to_string(), host);
            assert_eq!(Net::of(ip(address)).to_string(), net);
            assert_eq!(Site::of(ip(address)).map(|site| site.to_string()).as_deref(), site);
        }
    }

    #[test]
    fn an_ipv4_network_is_never_an_ipv6_one() {
        assert_ne!(Net::of(ip("0.0.0.0")).bits(), Net::of(ip("::")).bits());
        assert_ne!(Net::of(ip("255.255.255.255")).bits(), Net::of(ip("::fffe:0:0")).bits());
    }
}
