//! A machine in a game loop: it is driven once per frame, and nothing happens in between.

use rallypoint_machine::{Machine, Transmit};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A machine that receives, handles timers and sends once per frame.
pub struct Framed<M> {
    pub machine: M,
    interval: Duration,
    next_frame: Instant,
    arrived: Vec<(SocketAddr, Vec<u8>)>,
    is_in_frame: bool,
}

impl<M> Framed<M> {
    pub fn new(now: Instant, machine: M, interval: Duration) -> Self {
        Self { machine, interval, next_frame: now + interval, arrived: Vec::new(), is_in_frame: false }
    }
}

impl<M: Machine> Machine for Framed<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.arrived.push((from, bytes.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now < self.next_frame {
            return;
        }
        self.next_frame += self.interval;
        self.is_in_frame = true;
        for (from, bytes) in std::mem::take(&mut self.arrived) {
            self.machine.handle_datagram(now, from, &bytes);
        }
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = if self.is_in_frame { self.machine.poll_transmit(now, out) } else { None };
        self.is_in_frame = transmit.is_some();
        transmit
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_frame)
    }
}
