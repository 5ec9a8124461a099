//! A node that the test plays by hand.

use rallypoint_machine::{Machine, Transmit};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// Sends what the test tells it to; its events are the datagrams that it was sent.
#[derive(Debug, Default)]
pub struct Puppet {
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Puppet {
    /// Sends a datagram as soon as the network polls it, which [`Network::with`](crate::Network::with) does.
    pub fn send(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.outbox.push_back((to, bytes.to_vec()));
    }
}

impl Machine for Puppet {
    type Event = (SocketAddr, Vec<u8>);

    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.inbox.push_back((from, bytes.to_vec()));
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.outbox.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit::one(to, bytes.len()))
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.inbox.pop_front()
    }
}
