//! The sockets of a lobby: UDP and TCP at the same port.

use super::{LobbyOptions, LocalAddrs, StartError};
use crate::list::{self, Protocol};
use rallypoint_udp::UdpSocket;
use socket2::Socket;
use std::{io, net::SocketAddr, sync::Arc};

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
        let (udp, tcp) = match bind_both(addr, protocol, options.receive_buffer) {
            Ok(both) => both,
            Err(StartError::NoIpv6 { addr, .. }) if !options.require_ipv6 => {
                tracing::warn!(%addr, "this machine has no IPv6: the lobby serves IPv4 only");
                continue;
            }
            Err(error) => return Err(error),
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

fn bind_both(addr: SocketAddr, protocol: Protocol, buffer: usize) -> Result<(UdpSocket, Socket), StartError> {
    let flag = match protocol {
        Protocol::Modern => "--lobby",
        Protocol::Legacy => "--legacy",
    };
    let mut tries = if addr.port() == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        let fail = |transport| move |error| explain(error, transport, addr, flag);
        let tcp = list::listen(addr).map_err(fail("TCP"))?;
        let real = tcp.local_addr().map_err(fail("TCP"))?.as_socket().unwrap_or(addr);
        match UdpSocket::bind(real, buffer) {
            Ok(udp) => return Ok((udp, tcp)),
            Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(explain(error, "UDP", real, flag)),
        }
    }
}

/// What a person should know about an error.
fn explain(source: io::Error, protocol: &'static str, addr: SocketAddr, flag: &'static str) -> StartError {
    let is_any_v6 = addr.is_ipv6() && addr.ip().is_unspecified();
    match source.kind() {
        io::ErrorKind::AddrInUse => StartError::PortInUse { protocol, addr, flag },
        io::ErrorKind::PermissionDenied => StartError::NoPermission { protocol, addr, flag },
        io::ErrorKind::AddrNotAvailable if is_any_v6 => StartError::NoIpv6 { addr, flag },
        io::ErrorKind::AddrNotAvailable => StartError::NoSuchAddress { addr, flag },
        _ if source.raw_os_error() == Some(libc::EAFNOSUPPORT) => StartError::NoIpv6 { addr, flag },
        _ => StartError::Listen { protocol, addr, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        let (v4, v6) = ("192.0.2.1:80", "[::]:80");
        for (code, addr, said) in [
            (
                libc::EADDRINUSE,
                v4,
                "UDP 192.0.2.1:80 is used by another program: stop that program, or choose another port with --lobby",
            ),
            (
                libc::EACCES,
                v4,
                "no permission to listen on UDP 192.0.2.1:80: choose a port above 1023 with --lobby, or run with the right to bind it",
            ),
            (
                libc::EADDRNOTAVAIL,
                v4,
                "this machine does not have the address 192.0.2.1: choose one that it has with --lobby",
            ),
            (
                libc::EADDRNOTAVAIL,
                v6,
                "this machine has no IPv6, so [::]:80 cannot be used: choose an IPv4 address with --lobby",
            ),
            (
                libc::EAFNOSUPPORT,
                v6,
                "this machine has no IPv6, so [::]:80 cannot be used: choose an IPv4 address with --lobby",
            ),
        ] {
            let error = explain(io::Error::from_raw_os_error(code), "UDP", addr.parse().unwrap(), "--lobby");
            assert_eq!(error.to_string(), said);
        }
    }
}
