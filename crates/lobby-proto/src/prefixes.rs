//! Networks that can be looked up: thousands of them cost an address a dozen comparisons.

use ipnet::{IpNet, Ipv4Net};
use std::net::IpAddr;

/// Values by network. All networks that an address is in can be found in logarithmic time.
///
/// Networks either lie within each other or have nothing in common. Sorted by their first address (and the larger one
/// before those in it), the one before an address is therefore the smallest that the address can be in, or lies within it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prefixes<T>([Vec<Row<T>>; 2]);

#[derive(Clone, Debug, PartialEq)]
struct Row<T> {
    first: u128,
    last: u128,
    /// The smallest network around this one.
    around: Option<usize>,
    value: T,
}

impl<T> Default for Prefixes<T> {
    fn default() -> Self {
        Self([Vec::new(), Vec::new()])
    }
}

impl<T> Prefixes<T> {
    /// The values of all networks that an address is in, the smallest first.
    pub fn around(&self, ip: IpAddr) -> impl Iterator<Item = &T> {
        let (family, bits) = bits(ip.to_canonical());
        let rows = &self.0[family];
        let mut next = rows.partition_point(|row| row.first <= bits).checked_sub(1);
        std::iter::from_fn(move || {
            while let Some(row) = next.map(|at| &rows[at]) {
                next = row.around;
                if bits <= row.last {
                    return Some(&row.value);
                }
            }
            None
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }
}

impl<T> FromIterator<(IpNet, T)> for Prefixes<T> {
    fn from_iter<I: IntoIterator<Item = (IpNet, T)>>(networks: I) -> Self {
        let mut families = [Vec::new(), Vec::new()];
        for (network, value) in networks {
            let network = unmapped(network);
            let (family, first) = bits(network.network());
            let (_, last) = bits(network.broadcast());
            families[family].push(Row { first, last, around: None, value });
        }
        Self(families.map(nest))
    }
}

fn nest<T>(mut rows: Vec<Row<T>>) -> Vec<Row<T>> {
    rows.sort_by_key(|row| (row.first, std::cmp::Reverse(row.last)));
    let mut open: Vec<usize> = Vec::new();
    for at in 0..rows.len() {
        while open.last().is_some_and(|&outer| rows[outer].last < rows[at].first) {
            open.pop();
        }
        rows[at].around = open.last().copied();
        open.push(at);
    }
    rows
}

fn bits(ip: IpAddr) -> (usize, u128) {
    match ip {
        IpAddr::V4(ip) => (0, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (1, ip.to_bits()),
    }
}

/// A network of IPv4-mapped addresses is meant as the IPv4 network (L9).
fn unmapped(network: IpNet) -> IpNet {
    let v4 = match network {
        IpNet::V6(v6) => v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96)),
        IpNet::V4(_) => None,
    };
    v4.and_then(|(ip, length)| Ipv4Net::new(ip, length).ok()).map_or(network, IpNet::V4)
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
        let prefixes: Prefixes<u8> = [(net("::ffff:203.0.113.0/120"), 1)].into_iter().collect();
        assert_eq!(prefixes.around("203.0.113.9".parse().unwrap()).count(), 1);
        assert_eq!(prefixes.around("::ffff:203.0.113.9".parse().unwrap()).count(), 1);
    }

    #[test]
    fn families_do_not_meet() {
        let prefixes: Prefixes<u8> = [(net("::/0"), 6), (net("0.0.0.0/0"), 4)].into_iter().collect();
        assert_eq!(prefixes.around("1.2.3.4".parse().unwrap()).collect::<Vec<_>>(), [&4]);
        assert_eq!(prefixes.around("2001:db8::1".parse().unwrap()).collect::<Vec<_>>(), [&6]);
    }

    proptest! {
        #[test]
        fn the_same_networks_are_found_as_by_asking_each(
            networks in proptest::collection::vec((any::<bool>(), 0u32..64, 0u8..=32), 0..40),
            addresses in proptest::collection::vec((any::<bool>(), 0u32..64), 1..20),
        ) {
            // Few different bits at the top and bottom, so that networks often lie within each other.
            let spread = |n: u32| (n & 0b111) << 29 | n >> 3;
            let ip = |is_v6: bool, n: u32| -> IpAddr {
                if is_v6 { (u128::from(spread(n)) << 96).to_be_bytes().into() } else { spread(n).to_be_bytes().into() }
            };
            let networks: Vec<IpNet> =
                networks.into_iter().map(|(is_v6, n, length)| IpNet::new(ip(is_v6, n), length).unwrap()).collect();
            let prefixes: Prefixes<IpNet> = networks.iter().map(|&net| (net, net)).collect();
            for (is_v6, n) in addresses {
                let ip = ip(is_v6, n);
                let found: Vec<IpNet> = prefixes.around(ip).copied().collect();
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
