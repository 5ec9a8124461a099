//! A node that the test controls by hand.

use rallypoint_machine::{Machine, Transmit};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// A machine that sends what the test hands to it, and whose events are the datagrams that it receives.
#[derive(Debug, Default)]
pub struct ManualPeer {
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl ManualPeer {
    /// Queues a datagram, which is sent when the network polls the machine, as [`Network::with`](crate::Network::with) does.
    pub fn send(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.outbox.push_back((to, bytes.to_vec()));
    }
}

impl Machine for ManualPeer {
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
