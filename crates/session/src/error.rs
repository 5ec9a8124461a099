//! Why a server cannot start, and why a client does not get in.

use rallypoint_session_proto::{ConfigError, LoginError};
use std::{io, net::SocketAddr};
use thiserror::Error;

/// Why there is no socket to play on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The addresses to listen at cannot be used together.
    #[error("a server listens at one address, or at one of IPv4 and one of IPv6")]
    Listen,
    /// The longest message of a stream is out of range.
    #[error("the longest message of a stream is {length}: use 1 to 268435455")]
    Stream {
        /// What was asked for.
        length: usize,
    },
    /// A stream is in order, or it is none.
    #[error("a stream needs messages in order: set `ordered`")]
    Unordered,
    /// Somebody else is there.
    #[error("UDP {0} is used by another program: stop that program, or choose another port")]
    InUse(SocketAddr),
    /// The machine does not have that address, or no IPv6.
    #[error("this machine does not have the address {}", .0.ip())]
    NoSuchAddress(SocketAddr),
    /// A low port.
    #[error("this user may not use UDP {0}: choose a port from 1024 on")]
    NotAllowed(SocketAddr),
    /// The system has another reason.
    #[error("cannot use UDP {addr}: {source}")]
    System {
        /// Where.
        addr: SocketAddr,
        /// What it says.
        source: io::Error,
    },
}

/// Why a client is not connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no socket, or a setting is wrong.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The name of the server has no address.
    #[error("the server's name has no address: {0}")]
    NotFound(io::Error),
    /// The server said no, or nothing.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// A client was closed before the server had acknowledged everything: the last messages may not have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server did not acknowledge everything: the last messages may not have arrived")]
pub struct NotAcknowledged;

impl BindError {
    pub(crate) fn new(addr: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse(addr),
            io::ErrorKind::PermissionDenied => Self::NotAllowed(addr),
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress(addr),
            _ if source.raw_os_error() == Some(libc::EAFNOSUPPORT) => Self::NoSuchAddress(addr),
            _ => Self::System { addr, source },
        }
    }
}
