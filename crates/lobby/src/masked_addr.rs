//! Masked addresses for logs.

use std::{fmt, net::IpAddr};

/// An address that displays only its network: `203.0.113.x`, `2001:db8:1::x`. Logs contain whole addresses only at level debug.
///
/// ```
/// use rallypoint_lobby::MaskedAddr;
///
/// assert_eq!(MaskedAddr([203, 0, 113, 77].into()).to_string(), "203.0.113.x");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedAddr(pub IpAddr);

impl fmt::Display for MaskedAddr {
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
    fn only_the_network_is_displayed() {
        for (ip, shown) in [
            ("203.0.113.77", "203.0.113.x"),
            ("::ffff:203.0.113.77", "203.0.113.x"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::x"),
            ("::1", "0:0:0::x"),
        ] {
            assert_eq!(MaskedAddr(ip.parse().unwrap()).to_string(), shown);
        }
    }
}
