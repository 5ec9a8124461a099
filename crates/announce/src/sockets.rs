//! One UDP socket per address family, for sending only.

use crate::SendFailure;
use rallypoint_udp::{BindError, UdpSocket};
use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Size of the receive buffers in bytes: lobbies do not answer, so nothing is received.
const RECEIVE_BUFFER: usize = 4_096;

/// The sockets, and the current failure of each destination.
#[derive(Debug)]
pub(crate) struct Sockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    failures: HashMap<SocketAddr, SendFailure>,
}

impl Sockets {
    /// Opens a socket for each family that this machine has.
    pub fn open() -> Result<Self, BindError> {
        let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), RECEIVE_BUFFER);
        let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0).into(), RECEIVE_BUFFER);
        match (v4, v6) {
            (Err(error), Err(_)) => Err(error),
            (v4, v6) => Ok(Self { v4: v4.ok(), v6: v6.ok(), failures: HashMap::new() }),
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// If it did not leave this machine: the reason if it is not the same as for the last datagram to this address,
    /// otherwise `None`.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> Result<(), Option<SendFailure>> {
        let socket = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        let result = match socket {
            Some(socket) => socket.send_to(datagram, to),
            None => Err(io::ErrorKind::NetworkUnreachable.into()),
        };
        match result {
            Ok(()) => {
                self.failures.remove(&to);
                Ok(())
            }
            Err(error) => {
                let failure = SendFailure::new(to, &error);
                let previous = self.failures.insert(to, failure.clone());
                Err(Some(failure).filter(|failure| previous.as_ref() != Some(failure)))
            }
        }
    }

    /// Forgets failures of addresses that are no longer used.
    pub fn retain_failures(&mut self, is_used: impl Fn(&SocketAddr) -> bool) {
        self.failures.retain(|to, _| is_used(to));
    }
}
