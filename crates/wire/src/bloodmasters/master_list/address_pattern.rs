//! Ban patterns, as the master list sends them to servers.
//!
//! ```text
//! 192.0.2.7       an IPv4 address
//! 192.0.*.*       an asterisk matches any octet (L17)
//! ```

use crate::{DecodeError, DecodeErrorKind};
use core::{fmt, net::Ipv4Addr, str::FromStr};

/// An IPv4 address in which some octets may be wildcards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressPattern([Option<u8>; 4]);

impl AddressPattern {
    /// A pattern with these octets; `None` matches any.
    #[must_use]
    pub const fn new(octets: [Option<u8>; 4]) -> Self {
        Self(octets)
    }

    /// The octets; `None` matches any.
    #[must_use]
    pub const fn octets(&self) -> [Option<u8>; 4] {
        self.0
    }

    /// Whether the pattern matches this address.
    #[must_use]
    pub fn matches(&self, address: Ipv4Addr) -> bool {
        self.0.iter().zip(address.octets()).all(|(banned, octet)| banned.is_none_or(|banned| banned == octet))
    }
}

impl From<Ipv4Addr> for AddressPattern {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.octets().map(Some))
    }
}

impl FromStr for AddressPattern {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        let mut octets = [None; 4];
        let mut parts = text.split('.');
        for octet in &mut octets {
            *octet = parts.next().and_then(parse_octet).ok_or(INVALID)?;
        }
        if parts.next().is_some() { Err(INVALID) } else { Ok(Self(octets)) }
    }
}

const INVALID: DecodeError = DecodeError::new("ban", DecodeErrorKind::Invalid);

/// Parses an octet of an address, or an asterisk.
fn parse_octet(text: &str) -> Option<Option<u8>> {
    match text.as_bytes() {
        b"*" => Some(None),
        // `u8::from_str` accepts a sign and leading zeros, and some programs read 010 as eight.
        b"0" | [b'1'..=b'9', ..] => text.parse().ok().map(Some),
        _ => None,
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, octet) in self.0.iter().enumerate() {
            let dot = if place == 0 { "" } else { "." };
            match octet {
                Some(octet) => write!(f, "{dot}{octet}")?,
                None => write!(f, "{dot}*")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressPattern({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn l17_an_asterisk_matches_any_octet() {
        let ban: AddressPattern = "192.*.2.*".parse().unwrap();
        assert!(ban.matches(Ipv4Addr::new(192, 0, 2, 7)));
        assert!(ban.matches(Ipv4Addr::new(192, 255, 2, 0)));
        assert!(!ban.matches(Ipv4Addr::new(192, 0, 3, 7)));
        assert!(!ban.matches(Ipv4Addr::new(193, 0, 2, 7)));
        assert_eq!(ban.to_string(), "192.*.2.*");
        assert!("*.*.*.*".parse::<AddressPattern>().unwrap().matches(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn l17_invalid_addresses_are_not_bans() {
        let bad = [
            "",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.+4",
            "1.2.3.04",
            "1.2.3.",
            "1.2.3.4*",
            "1.2.3.**",
            "a.b.c.d",
        ];
        for text in bad {
            assert_eq!(text.parse::<AddressPattern>(), Err(INVALID), "{text}");
        }
        assert_eq!("0.0.0.0".parse(), Ok(AddressPattern::from(Ipv4Addr::UNSPECIFIED)));
    }
}
