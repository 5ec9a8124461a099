//! Sends datagrams, over a socket per address family.

use crate::failure::{Failure, complain};
use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tokio::net::UdpSocket;

/// The sockets, and what went wrong with whom: a trouble is told once, not every 30 seconds.
#[derive(Debug)]
pub struct Sender {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    troubles: HashMap<SocketAddr, String>,
}

impl Sender {
    /// Opens a socket for each family that this machine has.
    pub fn open() -> Result<Self, Failure> {
        let bind = |addr: SocketAddr| {
            let socket = std::net::UdpSocket::bind(addr)?;
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        };
        let (v4, v6) = (bind((Ipv4Addr::UNSPECIFIED, 0).into()), bind((Ipv6Addr::UNSPECIFIED, 0).into()));
        match (v4, v6) {
            (Err(error), Err(_)) => Err(Failure::failed(format!("cannot open a UDP socket: {error}"))),
            (v4, v6) => Ok(Self { v4: v4.ok(), v6: v6.ok(), troubles: HashMap::new() }),
        }
    }

    /// Sends a datagram. Says whether it left this machine.
    pub async fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> bool {
        let (socket, family) = if to.is_ipv4() { (&self.v4, "IPv4") } else { (&self.v6, "IPv6") };
        let result = match socket {
            Some(socket) => socket.send_to(datagram, to).await.map(drop),
            None => Err(io::ErrorKind::NetworkUnreachable.into()),
        };
        let trouble = match result {
            Ok(()) => {
                self.troubles.remove(&to);
                return true;
            }
            Err(error) => match error.kind() {
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                    format!("this machine has no way to it by {family}")
                }
                io::ErrorKind::HostUnreachable => "there is no way to that machine".into(),
                io::ErrorKind::PermissionDenied => "this machine's firewall does not let it through".into(),
                _ => error.to_string(),
            },
        };
        if self.troubles.insert(to, trouble.clone()).as_ref() != Some(&trouble) {
            complain(format_args!("cannot send to {to}: {trouble}"));
        }
        false
    }
}
