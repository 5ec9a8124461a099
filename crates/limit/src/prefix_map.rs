//! Networks that an address can be looked up in: with thousands of them, a lookup costs a dozen comparisons.

use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Values by network. All networks that contain an address are found in logarithmic time.
///
/// Two networks are either nested or disjoint. Sorted by first address (and the larger one before those within it), the
/// network before an address is therefore either the smallest one that contains the address, or nested in it.
///
/// ```
/// use rallypoint_limit::PrefixMap;
///
/// let networks = [("10.0.0.0/8", "large"), ("10.1.0.0/16", "small")];
/// let map: PrefixMap<&str> = networks.map(|(net, value)| (net.parse().unwrap(), value)).into_iter().collect();
/// let values: Vec<_> = map.containing("10.1.2.3".parse().unwrap()).collect();
/// assert_eq!(values, [&"small", &"large"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PrefixMap<T>([Vec<Row<T>>; 2]);

#[derive(Clone, Debug, PartialEq)]
struct Row<T> {
    first: u128,
    last: u128,
    /// Index of the smallest network that contains this one.
    parent: Option<usize>,
    value: T,
}

impl<T> Default for PrefixMap<T> {
    fn default() -> Self {
        Self([Vec::new(), Vec::new()])
    }
}

impl<T> PrefixMap<T> {
    /// The values of all networks that contain an address, the smallest network first.
    pub fn containing(&self, ip: IpAddr) -> impl Iterator<Item = &T> {
        let (family, bits) = bits(ip.to_canonical());
        let rows = &self.0[family];
        let mut next = rows.partition_point(|row| row.first <= bits).checked_sub(1);
        std::iter::from_fn(move || {
            while let Some(row) = next.map(|at| &rows[at]) {
                next = row.parent;
                if bits <= row.last {
                    return Some(&row.value);
                }
            }
            None
        })
    }

    /// Whether there are no networks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }
}

impl<T> FromIterator<(IpNet, T)> for PrefixMap<T> {
    fn from_iter<I: IntoIterator<Item = (IpNet, T)>>(networks: I) -> Self {
        let mut families = [Vec::new(), Vec::new()];
        for (network, value) in networks {
            let network = canonical_network(network);
            let (family, first) = bits(network.network());
            let (_, last) = bits(network.broadcast());
            families[family].push(Row { first, last, parent: None, value });
        }
        Self(families.map(nest))
    }
}

/// A set of networks, such as those that are exempt from limits.
///
/// ```
/// use rallypoint_limit::NetworkSet;
///
/// let exempt: NetworkSet = ["10.0.0.0/8".parse().unwrap()].into_iter().collect();
/// assert!(exempt.contains("10.1.2.3".parse().unwrap()));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkSet(PrefixMap<()>);

impl NetworkSet {
    /// Whether one of the networks contains an address.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.containing(ip).next().is_some()
    }

    /// Loopback of both families.
    #[must_use]
    pub fn loopback() -> Self {
        // Neither can panic: 8 and 128 are valid lengths.
        let v4 = IpNet::new_assert(Ipv4Addr::new(127, 0, 0, 0).into(), 8);
        let v6 = IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128);
        [v4, v6].into_iter().collect()
    }
}

impl FromIterator<IpNet> for NetworkSet {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        Self(networks.into_iter().map(|network| (network, ())).collect())
    }
}

/// The IPv4 network that a network of IPv4-mapped addresses stands for (L9); any other network as it is.
///
/// ```
/// use rallypoint_limit::canonical_network;
///
/// let mapped = "::ffff:203.0.113.0/120".parse().unwrap();
/// assert_eq!(canonical_network(mapped).to_string(), "203.0.113.0/24");
/// ```
#[must_use]
pub fn canonical_network(network: IpNet) -> IpNet {
    let v4 = match network {
        IpNet::V6(v6) => v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96)),
        IpNet::V4(_) => None,
    };
    v4.and_then(|(ip, length)| Ipv4Net::new(ip, length).ok()).map_or(network, IpNet::V4)
}

/// Sorts the rows, and links each to the smallest network that contains it.
fn nest<T>(mut rows: Vec<Row<T>>) -> Vec<Row<T>> {
    rows.sort_by_key(|row| (row.first, std::cmp::Reverse(row.last)));
    let mut ancestors: Vec<usize> = Vec::new();
    for at in 0..rows.len() {
        while ancestors.last().is_some_and(|&outer| rows[outer].last < rows[at].first) {
            ancestors.pop();
        }
        rows[at].parent = ancestors.last().copied();
        ancestors.push(at);
    }
    rows
}

/// The index of an address's family, and its bits.
fn bits(ip: IpAddr) -> (usize, u128) {
    match ip {
        IpAddr::V4(ip) => (0, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (1, ip.to_bits()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn l9_mapped_networks_are_ipv4() {
        let map: PrefixMap<u8> = [(net("::ffff:203.0.113.0/120"), 1)].into_iter().collect();
        assert_eq!(map.containing("203.0.113.9".parse().unwrap()).count(), 1);
        assert_eq!(map.containing("::ffff:203.0.113.9".parse().unwrap()).count(), 1);
    }

    #[test]
    fn families_are_kept_apart() {
        let map: PrefixMap<u8> = [(net("::/0"), 6), (net("0.0.0.0/0"), 4)].into_iter().collect();
        assert_eq!(map.containing("1.2.3.4".parse().unwrap()).collect::<Vec<_>>(), [&4]);
        assert_eq!(map.containing("2001:db8::1".parse().unwrap()).collect::<Vec<_>>(), [&6]);
    }

    #[test]
    fn a_set_contains_the_addresses_of_its_networks() {
        let set: NetworkSet = [net("10.0.0.0/8"), net("2001:db8::/32")].into_iter().collect();
        for (address, is_in) in [("10.9.9.9", true), ("11.0.0.0", false), ("2001:db8::1", true), ("::1", false)] {
            assert_eq!(set.contains(address.parse().unwrap()), is_in, "{address}");
        }
        let loopback = NetworkSet::loopback();
        assert!(loopback.contains("127.1.2.3".parse().unwrap()) && loopback.contains("::1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn lookups_match_a_linear_scan(
            networks in proptest::collection::vec((any::<bool>(), 0u32..64, 0u8..=32), 0..40),
            addresses in proptest::collection::vec((any::<bool>(), 0u32..64), 1..20),
        ) {
            // Few different bits at the top and bottom, so that networks are often nested.
            let spread = |n: u32| (n & 0b111) << 29 | n >> 3;
            let ip = |is_v6: bool, n: u32| -> IpAddr {
                if is_v6 { (u128::from(spread(n)) << 96).to_be_bytes().into() } else { spread(n).to_be_bytes().into() }
            };
            let networks: Vec<IpNet> =
                networks.into_iter().map(|(is_v6, n, length)| IpNet::new(ip(is_v6, n), length).unwrap()).collect();
            let map: PrefixMap<IpNet> = networks.iter().map(|&net| (net, net)).collect();
            for (is_v6, n) in addresses {
                let ip = ip(is_v6, n);
                let found: Vec<IpNet> = map.containing(ip).copied().collect();
                prop_assert!(found.is_sorted_by_key(|net| std::cmp::Reverse(net.prefix_len())));
                let mut lengths: Vec<u8> = found.iter().map(IpNet::prefix_len).collect();
                let mut expected: Vec<u8> =
                    networks.iter().filter(|net| net.contains(&ip)).map(IpNet::prefix_len).collect();
                lengths.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(lengths, expected);
            }
        }
    }
}
