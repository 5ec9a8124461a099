//! A machine in a game loop: it is driven once per frame, and nothing happens in between. With an interval of zero it is driven at
//! once, as by a thread that waits for datagrams.

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
    arrived: Vec<(Instant, SocketAddr, Vec<u8>)>,
    is_in_frame: bool,
    /// Tells the machine how long a datagram has waited, if the system reports it.
    report_wait: Option<fn(&mut M, Duration)>,
}

impl<M> Framed<M> {
    pub fn new(now: Instant, machine: M, interval: Duration) -> Self {
        Self {
            machine,
            interval,
            next_frame: now + interval,
            arrived: Vec::new(),
            is_in_frame: false,
            report_wait: None,
        }
    }

    /// The machine is told how long each datagram has waited for the frame.
    pub fn with_receive_times(self, report_wait: fn(&mut M, Duration)) -> Self {
        Self { report_wait: Some(report_wait), ..self }
    }

    /// When the next frame begins, if there are frames.
    pub fn next_frame(&self) -> Option<Instant> {
        (!self.interval.is_zero()).then_some(self.next_frame)
    }
}

impl<M: Machine> Machine for Framed<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        if self.interval.is_zero() {
            return self.machine.handle_datagram(now, from, bytes);
        }
        self.arrived.push((now, from, bytes.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.interval.is_zero() {
            return self.machine.handle_timeout(now);
        }
        if now < self.next_frame {
            return;
        }
        self.next_frame += self.interval;
        self.is_in_frame = true;
        for (arrived_at, from, bytes) in std::mem::take(&mut self.arrived) {
            if let Some(report_wait) = self.report_wait {
                report_wait(&mut self.machine, now.saturating_duration_since(arrived_at));
            }
            self.machine.handle_datagram(now, from, &bytes);
        }
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.interval.is_zero() {
            return self.machine.poll_transmit(now, out);
        }
        let transmit = if self.is_in_frame { self.machine.poll_transmit(now, out) } else { None };
        self.is_in_frame = transmit.is_some();
        transmit
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_frame().or_else(|| self.machine.poll_timeout())
    }
}
