//! Binds the listening sockets.

use crate::WebOptions;
use rallypoint_udp::{BindError, EntropyError, SocketKind, prepare_listener};
use socket2::{Domain, Protocol, Socket, Type};
use std::{io, net::SocketAddr};
use thiserror::Error;
use tokio::net::TcpListener;

/// Maximum number of connections waiting to be accepted; the limit of the system is usually lower.
const BACKLOG: i32 = 4_096;

/// Size in bytes of the send buffer of a connection: the default maximum of Linux, because a list of a thousand servers costs
/// a third more CPU time in smaller pieces. Linux doubles the value for its own bookkeeping.
const SEND_BUFFER: usize = 208 << 10;

/// Why a web server cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebStartError {
    /// A socket cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The operating system gives no random bytes for hash seeds.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Binds all sockets, or none.
pub(crate) fn bind(options: &WebOptions) -> Result<Vec<TcpListener>, WebStartError> {
    let mut listeners = Vec::new();
    for &addr in &options.listen {
        match listen(addr).map_err(|error| BindError::new(SocketKind::Tcp, addr, error)) {
            Ok(listener) => listeners.push(listener),
            Err(BindError::FamilyNotSupported { .. }) if addr.is_ipv6() && !options.require_ipv6 => {
                tracing::warn!(%addr, "this machine has no IPv6: the web server serves IPv4 only");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(listeners)
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        // IPv4 has a separate socket.
        socket.set_only_v6(true)?;
    }
    prepare_listener(&socket)?;
    socket.set_nonblocking(true)?;
    // Connections inherit the size. Without it the buffer grows to megabytes for every client that does not read.
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_send_buffer_of_a_connection_is_bounded() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
        let (accepted, _client) = tokio::join!(listener.accept(), client);
        let (tcp, _) = accepted.unwrap();
        let size = socket2::SockRef::from(&tcp).send_buffer_size().unwrap();
        assert!((SEND_BUFFER..=2 * SEND_BUFFER).contains(&size), "{size}");
    }
}
