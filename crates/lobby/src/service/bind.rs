//! The sockets of a lobby: UDP and TCP at the same port.

use super::{ListenAddrs, LobbyOptions, LobbyStartError};
use crate::list::{self, ListProtocol};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use socket2::Socket;
use std::{net::SocketAddr, sync::Arc};

/// Maximum number of ports that are tried if any port will do: one that is free for TCP may be in use for UDP.
const MAX_TRIES: usize = 16;

/// The bound sockets of a lobby.
pub(super) struct Bound {
    /// UDP sockets; those of the legacy lobby come last.
    pub udp: Vec<Arc<UdpSocket>>,
    /// Listening TCP sockets.
    pub tcp: Vec<(Socket, ListProtocol)>,
    /// Local addresses of the sockets.
    pub addrs: ListenAddrs,
}

/// Binds all sockets, or none.
pub(super) fn bind(options: &LobbyOptions) -> Result<Bound, LobbyStartError> {
    let mut bound = Bound { udp: Vec::new(), tcp: Vec::new(), addrs: ListenAddrs::default() };
    let modern = options.listen.iter().map(|addr| (*addr, ListProtocol::Modern));
    let legacy = options.legacy.iter().map(|addr| (*addr, ListProtocol::Legacy));
    for (addr, protocol) in modern.chain(legacy) {
        let (udp, tcp) = match bind_both(addr, options.receive_buffer) {
            Ok(both) => both,
            Err(BindError::FamilyNotSupported { addr, .. }) if addr.is_ipv6() && !options.require_ipv6 => {
                tracing::warn!(%addr, "this machine has no IPv6: the lobby serves IPv4 only");
                continue;
            }
            Err(error) => {
                return Err(match protocol {
                    ListProtocol::Modern => LobbyStartError::BindLobby(error),
                    ListProtocol::Legacy => LobbyStartError::BindLegacy(error),
                });
            }
        };
        let addrs = match protocol {
            ListProtocol::Modern => &mut bound.addrs.lobby,
            ListProtocol::Legacy => &mut bound.addrs.legacy,
        };
        addrs.push(udp.local_addr());
        bound.udp.push(Arc::new(udp));
        bound.tcp.push((tcp, protocol));
    }
    if bound.addrs.lobby.is_empty() {
        return Err(LobbyStartError::NoAddress);
    }
    Ok(bound)
}

/// Binds a UDP and a TCP socket to the same port.
fn bind_both(addr: SocketAddr, recv_buffer_size: usize) -> Result<(UdpSocket, Socket), BindError> {
    let mut tries = if addr.port() == 0 { MAX_TRIES } else { 1 };
    loop {
        tries -= 1;
        let tcp_error = |error| BindError::new(SocketKind::Tcp, addr, error);
        let tcp = list::listen(addr).map_err(tcp_error)?;
        let local_addr = tcp.local_addr().map_err(tcp_error)?.as_socket().unwrap_or(addr);
        match UdpSocket::bind(local_addr, recv_buffer_size) {
            Ok(udp) => return Ok((udp, tcp)),
            Err(BindError::InUse { .. }) if tries > 0 => {}
            Err(error) => return Err(error),
        }
    }
}
