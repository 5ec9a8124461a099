//! Where a web server listens.

use crate::WebOptions;
use socket2::{Domain, Protocol, Socket, Type};
use std::{io, net::SocketAddr};
use thiserror::Error;
use tokio::net::TcpListener;

/// Connections that wait to be accepted: the system's own limit is usually lower.
const BACKLOG: i32 = 4_096;

/// What the system keeps for a client that does not take it: the most that Linux gives unless it is told otherwise, since a
/// list of a thousand servers costs a third more if it leaves in smaller pieces. Linux doubles this, for what it needs itself.
const SEND_BUFFER: usize = 208 << 10;

/// Why a web server cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Somebody else listens there.
    #[error("TCP {0} is used by another program: stop that program, or choose another port with --http")]
    PortInUse(SocketAddr),
    /// Ports below 1024 are for the privileged.
    #[error(
        "no permission to listen on TCP {0}: choose a port above 1023 with --http, or run with the right to bind it"
    )]
    NoPermission(SocketAddr),
    /// The address is another machine's.
    #[error("this machine does not have the address {}: choose one that it has with --http", .0.ip())]
    NoSuchAddress(SocketAddr),
    /// There is no IPv6 here.
    #[error("this machine has no IPv6, so {0} cannot be used: choose an IPv4 address with --http")]
    NoIpv6(SocketAddr),
    /// Another reason not to listen there.
    #[error("cannot listen on TCP {addr}: {source}")]
    Listen {
        /// Where.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoEntropy,
}

/// Opens all sockets, or none.
pub(crate) fn bind(options: &WebOptions) -> Result<Vec<TcpListener>, StartError> {
    let mut listeners = Vec::new();
    for &addr in &options.listen {
        match listen(addr).map_err(|error| explain(error, addr)) {
            Ok(listener) => listeners.push(listener),
            Err(StartError::NoIpv6(_)) if !options.require_ipv6 => {
                tracing::warn!(%addr, "this machine has no IPv6: the web server serves IPv4 only");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listeners)
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        // IPv4 has a socket of its own.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // Connections inherit it. Otherwise it grows to megabytes, for every client that does not read.
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn explain(source: io::Error, addr: SocketAddr) -> StartError {
    let is_any_v6 = addr.is_ipv6() && addr.ip().is_unspecified();
    match source.kind() {
        io::ErrorKind::AddrInUse => StartError::PortInUse(addr),
        io::ErrorKind::PermissionDenied => StartError::NoPermission(addr),
        io::ErrorKind::AddrNotAvailable if is_any_v6 => StartError::NoIpv6(addr),
        io::ErrorKind::AddrNotAvailable => StartError::NoSuchAddress(addr),
        // The system says that it does not know the family at all.
        io::ErrorKind::Unsupported => StartError::NoIpv6(addr),
        _ if addr.is_ipv6() && source.raw_os_error() == Some(97) => StartError::NoIpv6(addr),
        _ => StartError::Listen { addr, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_keeps_little_for_a_client_that_does_not_read() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
        let (accepted, _client) = tokio::join!(listener.accept(), client);
        let (tcp, _) = accepted.unwrap();
        let size = socket2::SockRef::from(&tcp).send_buffer_size().unwrap();
        assert!((SEND_BUFFER..=2 * SEND_BUFFER).contains(&size), "{size}");
    }
}
