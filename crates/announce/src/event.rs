//! Events of an announced server, for a log.

use crate::LobbyHost;
use std::{fmt, io, net::SocketAddr};

/// Something that happened while a server is announced.
///
/// Announcing continues after each of them. The text ([`Display`](fmt::Display)) is fit for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnnounceEvent {
    /// The addresses of the lobbies were found, or have changed; registrations go there from now on.
    LobbiesResolved,
    /// A lobby's name has no address. It is resolved again later. Reported once until it has been found.
    LobbyNotFound(LobbyHost),
    /// A datagram could not be sent. Reported once per address until the reason changes.
    SendFailed {
        /// The lobby's address.
        to: SocketAddr,
        /// Why it could not be sent.
        reason: SendFailure,
    },
}

/// Why a datagram could not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendFailure {
    /// This machine has no IPv4 connection, or none that leads there.
    NoIpv4Route,
    /// This machine has no IPv6 connection, or none that leads there.
    NoIpv6Route,
    /// A router or this machine reports that the host cannot be reached.
    HostUnreachable,
    /// A firewall of this machine blocks it.
    Blocked,
    /// Another error of the system, as text.
    Other(String),
}

impl SendFailure {
    pub(crate) fn new(to: SocketAddr, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable if to.is_ipv4() => Self::NoIpv4Route,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => Self::NoIpv6Route,
            io::ErrorKind::HostUnreachable => Self::HostUnreachable,
            io::ErrorKind::PermissionDenied => Self::Blocked,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for AnnounceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LobbiesResolved => f.write_str("the addresses of the lobbies were updated"),
            Self::LobbyNotFound(host) => {
                write!(f, "cannot find the address of the lobby {host}: check the name and the network connection")
            }
            Self::SendFailed { to, reason } => write!(f, "cannot send to {to}: {reason}"),
        }
    }
}

impl fmt::Display for SendFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoIpv4Route => f.write_str("this machine has no IPv4 route to it"),
            Self::NoIpv6Route => f.write_str("this machine has no IPv6 route to it"),
            Self::HostUnreachable => f.write_str("the host is unreachable"),
            Self::Blocked => f.write_str("the firewall of this machine blocks it"),
            Self::Other(error) => f.write_str(error),
        }
    }
}
