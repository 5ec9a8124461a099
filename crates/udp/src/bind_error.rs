//! Why a socket cannot be bound: one error for every socket of the workspace.

use crate::sys;
use std::{fmt, io, net::SocketAddr};
use thiserror::Error;

/// Why a socket cannot be bound to an address: what happened, to which address, and what to do about it.
///
/// ```
/// use rallypoint_udp::{BindError, UdpSocket};
///
/// let first = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 16)?;
/// let error = UdpSocket::bind(first.local_addr(), 1 << 16).unwrap_err();
/// assert!(matches!(error, BindError::InUse { .. }));
/// assert!(error.to_string().ends_with("is used by another program: stop that program, or choose another port"));
/// # Ok::<(), BindError>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another program, or another socket of this one, is bound to the address.
    #[error("{kind} {addr} is used by another program: stop that program, or choose another port")]
    InUse {
        /// Transport protocol of the socket.
        kind: SocketKind,
        /// Requested address.
        addr: SocketAddr,
    },
    /// The address belongs to no interface of this machine.
    #[error("this machine does not have the address {}: choose one that it has", addr.ip())]
    AddressNotAvailable {
        /// Transport protocol of the socket.
        kind: SocketKind,
        /// Requested address.
        addr: SocketAddr,
    },
    /// This machine has no addresses of the family, most likely because IPv6 is switched off.
    #[error(
        "this machine has no {}, so {kind} {addr} cannot be used: choose an {} address",
        family(*addr),
        other_family(*addr)
    )]
    FamilyNotSupported {
        /// Transport protocol of the socket.
        kind: SocketKind,
        /// Requested address.
        addr: SocketAddr,
    },
    /// The user may not bind the port: ports below 1024 usually need a privilege.
    #[error("no permission to bind {kind} {addr}: run with the right to bind it, or choose a port above 1023")]
    PermissionDenied {
        /// Transport protocol of the socket.
        kind: SocketKind,
        /// Requested address.
        addr: SocketAddr,
    },
    /// Any other error of the operating system.
    #[error("cannot bind {kind} {addr}: {source}")]
    Other {
        /// Transport protocol of the socket.
        kind: SocketKind,
        /// Requested address.
        addr: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Transport protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

impl BindError {
    /// Classifies the error of a system call that was to open, bind or set up a socket.
    #[must_use]
    pub fn new(kind: SocketKind, addr: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { kind, addr },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { kind, addr },
            // "All IPv6 addresses" is not available only if there are none.
            io::ErrorKind::AddrNotAvailable if addr.is_ipv6() && addr.ip().is_unspecified() => {
                Self::FamilyNotSupported { kind, addr }
            }
            io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable { kind, addr },
            _ if sys::is_family_not_supported(&source) => Self::FamilyNotSupported { kind, addr },
            _ => Self::Other { kind, addr, source },
        }
    }

    /// Transport protocol of the socket.
    #[must_use]
    pub fn kind(&self) -> SocketKind {
        self.parts().0
    }

    /// Requested address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.parts().1
    }

    fn parts(&self) -> (SocketKind, SocketAddr) {
        match *self {
            Self::InUse { kind, addr }
            | Self::AddressNotAvailable { kind, addr }
            | Self::FamilyNotSupported { kind, addr }
            | Self::PermissionDenied { kind, addr }
            | Self::Other { kind, addr, .. } => (kind, addr),
        }
    }
}

impl fmt::Display for SocketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        })
    }
}

fn family(addr: SocketAddr) -> &'static str {
    if addr.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn other_family(addr: SocketAddr) -> &'static str {
    if addr.is_ipv4() { "IPv6" } else { "IPv4" }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_message_says_what_happened_and_what_to_do() {
        let v4 = "192.0.2.1:80";
        let v6 = "[::]:80";
        for (code, addr, message) in [
            (
                libc::EADDRINUSE,
                v4,
                "UDP 192.0.2.1:80 is used by another program: stop that program, or choose another port",
            ),
            (
                libc::EACCES,
                v4,
                "no permission to bind UDP 192.0.2.1:80: run with the right to bind it, or choose a port above 1023",
            ),
            (libc::EADDRNOTAVAIL, v4, "this machine does not have the address 192.0.2.1: choose one that it has"),
            (
                libc::EADDRNOTAVAIL,
                v6,
                "this machine has no IPv6, so UDP [::]:80 cannot be used: choose an IPv4 address",
            ),
            (libc::EAFNOSUPPORT, v6, "this machine has no IPv6, so UDP [::]:80 cannot be used: choose an IPv4 address"),
            (
                libc::EAFNOSUPPORT,
                v4,
                "this machine has no IPv4, so UDP 192.0.2.1:80 cannot be used: choose an IPv6 address",
            ),
        ] {
            let error = BindError::new(SocketKind::Udp, addr.parse().unwrap(), io::Error::from_raw_os_error(code));
            assert_eq!(error.to_string(), message);
            assert_eq!((error.kind(), error.addr().to_string().as_str()), (SocketKind::Udp, addr));
        }
        let addr = v4.parse().unwrap();
        let other = BindError::new(SocketKind::Tcp, addr, io::Error::from_raw_os_error(libc::EMFILE));
        assert!(other.to_string().starts_with("cannot bind TCP 192.0.2.1:80: "), "{other}");
    }
}
