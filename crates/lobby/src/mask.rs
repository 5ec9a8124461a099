//! Addresses in logs.

use std::{fmt, net::IpAddr};

/// An address of which only the network is shown: `203.0.113.x`, `2001:db8:1::x`. Logs have whole addresses only at the
/// level for finding faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masked(pub IpAddr);

impl fmt::Display for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                write!(f, "{a}.{b}.{c}.x")
            }
            IpAddr::V6(ip) => {
                let [a, b, c, ..] = ip.segments();
                write!(f, "{a:x}:{b:x}:{c:x}::x")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_network_is_shown() {
        for (ip, shown) in [
            ("203.0.113.77", "203.0.113.x"),
            ("::ffff:203.0.113.77", "203.0.113.x"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::x"),
            ("::1", "0:0:0::x"),
        ] {
            assert_eq!(Masked(ip.parse().unwrap()).to_string(), shown);
        }
    }
}
