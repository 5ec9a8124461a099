//! The sockets of a lobby's doors.

use super::{LobbyOptions, LobbyStartError};
use crate::{DoorAddrs, list};
use rallypoint_lobby_proto::doors::{Door, DoorSockets, LOBBY};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use socket2::Socket;
use std::{net::SocketAddr, sync::Arc};

/// Maximum number of ports that are tried if any port will do: one that is free for TCP may be in use for UDP.
const MAX_TRIES: usize = 16;

/// The bound sockets of a lobby.
#[derive(Default)]
pub(super) struct Bound {
    /// UDP sockets.
    pub udp: Vec<Arc<UdpSocket>>,
    /// The door of each UDP socket.
    pub udp_doors: Vec<&'static Door>,
    /// Listening TCP sockets.
    pub tcp: Vec<(Socket, &'static Door)>,
    /// Local addresses of the sockets.
    pub addrs: DoorAddrs,
}

/// Binds all sockets, or none.
pub(super) fn bind(options: &LobbyOptions) -> Result<Bound, LobbyStartError> {
    let mut bound = Bound::default();
    for (door, addr) in options.doors.iter() {
        let Some(sockets) = &door.sockets else { continue };
        let (udp, tcp) = match bind_both(sockets, addr, options.receive_buffer) {
            Ok(both) => both,
            Err(BindError::FamilyNotSupported { addr, .. }) if addr.is_ipv6() && !options.require_ipv6 => {
                tracing::warn!(%addr, "this machine has no IPv6: the lobby serves IPv4 only");
                continue;
            }
            Err(error) => return Err(LobbyStartError::Bind { door, error }),
        };
        let local_addr =
            udp.as_ref().map(UdpSocket::local_addr).or_else(|| tcp.as_ref()?.local_addr().ok()?.as_socket());
        bound.addrs[door].extend(local_addr);
        if let Some(udp) = udp {
            bound.udp.push(Arc::new(udp));
            bound.udp_doors.push(door);
        }
        bound.tcp.extend(tcp.map(|tcp| (tcp, door)));
    }
    if bound.addrs[&LOBBY].is_empty() {
        return Err(LobbyStartError::NoAddress);
    }
    Ok(bound)
}

/// Binds the sockets that a door has, to the same port.
fn bind_both(
    door: &DoorSockets,
    addr: SocketAddr,
    recv_buffer_size: usize,
) -> Result<(Option<UdpSocket>, Option<Socket>), BindError> {
    let mut tries = if addr.port() == 0 { MAX_TRIES } else { 1 };
    loop {
        tries -= 1;
        let tcp_error = |error| BindError::new(SocketKind::Tcp, addr, error);
        let (local_addr, tcp) = match door.requests {
            None => (addr, None),
            Some(_) => {
                let tcp = list::listen(addr).map_err(tcp_error)?;
                (tcp.local_addr().map_err(tcp_error)?.as_socket().unwrap_or(addr), Some(tcp))
            }
        };
        if door.datagrams.is_none() {
            return Ok((None, tcp));
        }
        match UdpSocket::bind(local_addr, recv_buffer_size) {
            Ok(udp) => return Ok((Some(udp), tcp)),
            Err(BindError::InUse { .. }) if tries > 0 => {}
            Err(error) => return Err(error),
        }
    }
}
