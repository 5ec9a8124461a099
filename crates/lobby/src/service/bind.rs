//! The sockets of a lobby: UDP and TCP at the same port.

use super::{LobbyOptions, LocalAddrs, StartError};
use crate::list::{self, Protocol};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use socket2::Socket;
use std::{net::SocketAddr, sync::Arc};

/// A port that is free for TCP may be taken for UDP: then another one is tried, so many times.
const TRIES: usize = 16;

/// The sockets of a lobby.
pub(super) struct Bound {
    /// Those of the lobby of today come first.
    pub udp: Vec<Arc<UdpSocket>>,
    pub tcp: Vec<(Socket, Protocol)>,
    pub addrs: LocalAddrs,
}

/// Opens all sockets, or none.
pub(super) fn bind(options: &LobbyOptions) -> Result<Bound, StartError> {
    let mut bound = Bound { udp: Vec::new(), tcp: Vec::new(), addrs: LocalAddrs::default() };
    let modern = options.listen.iter().map(|addr| (*addr, Protocol::Modern));
    let legacy = options.legacy.iter().map(|addr| (*addr, Protocol::Legacy));
    for (addr, protocol) in modern.chain(legacy) {
        let (udp, tcp) = match bind_both(addr, options.receive_buffer) {
            Ok(both) => both,
            Err(BindError::FamilyNotSupported { addr, .. }) if addr.is_ipv6() && !options.require_ipv6 => {
                tracing::warn!(%addr, "this machine has no IPv6: the lobby serves IPv4 only");
                continue;
            }
            Err(error) => {
                return Err(match protocol {
                    Protocol::Modern => StartError::BindLobby(error),
                    Protocol::Legacy => StartError::BindLegacy(error),
                });
            }
        };
        let listed = match protocol {
            Protocol::Modern => &mut bound.addrs.lobby,
            Protocol::Legacy => &mut bound.addrs.legacy,
        };
        listed.push(udp.local_addr());
        bound.udp.push(Arc::new(udp));
        bound.tcp.push((tcp, protocol));
    }
    if bound.addrs.lobby.is_empty() {
        return Err(StartError::NoAddress);
    }
    Ok(bound)
}

fn bind_both(addr: SocketAddr, buffer: usize) -> Result<(UdpSocket, Socket), BindError> {
    let mut tries = if addr.port() == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        let tcp_error = |error| BindError::new(SocketKind::Tcp, addr, error);
        let tcp = list::listen(addr).map_err(tcp_error)?;
        let real = tcp.local_addr().map_err(tcp_error)?.as_socket().unwrap_or(addr);
        match UdpSocket::bind(real, buffer) {
            Ok(udp) => return Ok((udp, tcp)),
            Err(BindError::InUse { .. }) if tries > 0 => {}
            Err(error) => return Err(error),
        }
    }
}
