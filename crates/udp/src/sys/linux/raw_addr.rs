//! Socket addresses in the system's form.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Default)]
#[repr(C, align(4))]
pub(crate) struct RawAddr([u8; 28]);

impl RawAddr {
    /// The address, if it is of one of the two families.
    #[inline]
    pub(crate) fn parse(&self) -> Option<SocketAddr> {
        let [f, g, p, q, ..] = self.0;
        let port = u16::from_be_bytes([p, q]);
        match i32::from(u16::from_ne_bytes([f, g])) {
            libc::AF_INET => {
                let [_, _, _, _, a, b, c, d, ..] = self.0;
                Some((Ipv4Addr::new(a, b, c, d), port).into())
            }
            libc::AF_INET6 => {
                let (ip, scope) = self.0[8..].split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(scope.try_into().ok()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// The address in the system's form, and its size in bytes.
    pub(super) fn emit(addr: SocketAddr) -> (Self, usize) {
        let mut raw = Self::default();
        let (family, size) = match addr {
            SocketAddr::V4(v4) => {
                raw.0[4..8].copy_from_slice(&v4.ip().octets());
                (libc::AF_INET, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                raw.0[8..24].copy_from_slice(&v6.ip().octets());
                raw.0[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (libc::AF_INET6, size_of::<libc::sockaddr_in6>())
            }
        };
        raw.0[0..2].copy_from_slice(&(family as u16).to_ne_bytes());
        raw.0[2..4].copy_from_slice(&addr.port().to_be_bytes());
        (raw, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reverses_emit() {
        for text in ["203.0.113.9:29944", "[2001:db8::1]:1", "[fe80::1%7]:65535", "0.0.0.0:0"] {
            let addr = text.parse().unwrap();
            assert_eq!(RawAddr::emit(addr).0.parse(), Some(addr));
        }
        assert_eq!(RawAddr::default().parse(), None);
    }

    #[test]
    fn size_and_alignment_are_those_of_the_system() {
        assert!(size_of::<libc::sockaddr_in6>() == size_of::<RawAddr>());
        assert!(align_of::<libc::sockaddr_in6>() <= align_of::<RawAddr>());
    }
}
