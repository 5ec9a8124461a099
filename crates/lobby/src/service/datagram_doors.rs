//! The doors of the lobby's UDP sockets: what arrives there, and what they answer.

use rallypoint_lobby_proto::{
    HashKeys, Registry,
    doors::{DatagramDoor, Datagrams, Door, DoorStats},
};
use rallypoint_machine::{SocketIndex, Transmit};
use std::time::Instant;

/// The protocols of the UDP sockets, besides registrations of document 001, which the registry handles itself.
#[derive(Debug, Default)]
pub(super) struct DatagramDoors(Vec<Option<OpenDoor>>);

/// The protocol of one socket. Each has a state of its own, so that what it answers leaves from where it was asked.
#[derive(Debug)]
struct OpenDoor {
    door: &'static Door,
    protocol: Box<dyn DatagramDoor>,
}

impl DatagramDoors {
    /// The doors of sockets in this order.
    pub fn new(sockets: &[&'static Door], keys: &HashKeys) -> Self {
        let open = |door: &&'static Door| match door.sockets.as_ref()?.datagrams? {
            Datagrams::Protocol(start) => Some(OpenDoor { door, protocol: start(keys) }),
            Datagrams::Registrations => None,
        };
        Self(sockets.iter().map(open).collect())
    }

    /// The protocol of a socket, unless it receives registrations.
    #[inline]
    pub fn of(&mut self, socket: SocketIndex) -> Option<&mut dyn DatagramDoor> {
        let open = self.0.get_mut(socket.0)?.as_mut()?;
        Some(&mut *open.protocol)
    }

    pub fn handle_timeout(&mut self, registry: &mut Registry, now: Instant) {
        for open in self.0.iter_mut().flatten() {
            if open.protocol.poll_timeout().is_some_and(|at| at <= now) {
                open.protocol.handle_timeout(registry, now);
            }
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.0.iter().flatten().filter_map(|open| open.protocol.poll_timeout()).min()
    }

    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.0.iter_mut().enumerate().find_map(|(index, open)| {
            let transmit = open.as_mut()?.protocol.poll_transmit(now, out)?;
            Some(Transmit { from: Some(SocketIndex(index)), ..transmit })
        })
    }

    /// Size of the longest datagram that a protocol accepts, in bytes.
    pub fn max_datagram(&self) -> usize {
        self.0.iter().flatten().map(|open| open.protocol.max_datagram()).max().unwrap_or(0)
    }

    /// The counters of the doors that answer, by door.
    pub fn stats(&self) -> Vec<(&'static Door, DoorStats)> {
        let mut stats: Vec<(&'static Door, DoorStats)> = Vec::new();
        for OpenDoor { door, protocol } in self.0.iter().flatten() {
            let Some(own) = protocol.stats() else { continue };
            match stats.iter_mut().find(|(other, _)| other == door) {
                Some((_, sum)) => *sum += own,
                None => stats.push((door, own)),
            }
        }
        stats
    }
}
