//! Messages from one side of a session to the other without sockets, for counting instructions: of both sides, and of each alone.

use crate::{library::ms, peers::Peer};
use rallypoint_machine::{Machine, Transmit};
use std::{net::SocketAddr, time::Instant};

pub const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 45_555);
pub const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 1], 1_000);

/// Two sides that take turns.
pub struct Exchange<S, R> {
    now: Instant,
    sender: S,
    receiver: R,
    message: Vec<u8>,
    /// Messages per turn of the sender.
    batch: u64,
    to_receiver: InFlight,
    to_sender: InFlight,
    received: u64,
}

/// Datagrams from one side to the other.
#[derive(Default)]
struct InFlight {
    bytes: Vec<u8>,
    transmits: Vec<Transmit>,
}

impl InFlight {
    /// Collects what a side has to send.
    fn fill(&mut self, from: &mut impl Machine, now: Instant) {
        while let Some(transmit) = from.poll_transmit(now, &mut self.bytes) {
            self.transmits.push(transmit);
        }
    }

    /// Hands it to the other side. Events are left.
    fn deliver(&mut self, to: &mut impl Machine, now: Instant, source: SocketAddr) {
        let mut rest = &self.bytes[..];
        for transmit in self.transmits.drain(..) {
            let (bytes, after) = rest.split_at(transmit.len);
            transmit.datagrams(bytes).for_each(|datagram| to.handle_datagram(now, source, datagram));
            rest = after;
        }
        self.bytes.clear();
        if to.poll_timeout().is_some_and(|at| at <= now) {
            to.handle_timeout(now);
        }
    }
}

/// Passes datagrams between a server and a client until they are connected. Returns the time.
pub fn log_in<S: Machine, C: Machine>(
    start: Instant,
    server: &mut S,
    client: &mut C,
    is_connected: impl Fn(&S, &C) -> bool,
) -> Instant {
    let mut now = start;
    let mut in_flight = InFlight::default();
    while !is_connected(server, client) {
        now += ms(1);
        in_flight.fill(client, now);
        in_flight.deliver(server, now, CLIENT.into());
        while server.poll_event().is_some() {}
        in_flight.fill(server, now);
        in_flight.deliver(client, now, SERVER.into());
        while client.poll_event().is_some() {}
    }
    now
}

impl<S: Peer, R: Peer> Exchange<S, R> {
    /// Messages of `size` bytes, `batch` per turn.
    pub fn new(now: Instant, sender: S, receiver: R, size: usize, batch: u64) -> Self {
        Self {
            now,
            sender,
            receiver,
            message: vec![7; size],
            batch,
            to_receiver: InFlight::default(),
            to_sender: InFlight::default(),
            received: 0,
        }
    }

    /// Sends at least this many messages.
    pub fn run(&mut self, count: u64) {
        let end = self.received + count;
        while self.received < end {
            self.sender_turn();
            self.receiver_turn();
        }
    }

    /// The sender handles acks, and sends a batch of messages.
    #[inline(never)]
    fn sender_turn(&mut self) {
        let Self { now, sender, message, batch, to_receiver, to_sender, .. } = self;
        *now += ms(1);
        to_sender.deliver(sender.machine(), *now, R::address());
        // Credits are messages of the peer's layer.
        if sender.poll_readable() {
            while sender.recv(*now) {}
        }
        for _ in 0..*batch {
            sender.send(*now, message);
        }
        to_receiver.fill(sender.machine(), *now);
    }

    /// The receiver reads messages, and acks them.
    #[inline(never)]
    fn receiver_turn(&mut self) {
        let Self { now, receiver, to_receiver, to_sender, received, .. } = self;
        *now += ms(1);
        to_receiver.deliver(receiver.machine(), *now, S::address());
        if receiver.poll_readable() {
            while receiver.recv(*now) {
                *received += 1;
            }
        }
        to_sender.fill(receiver.machine(), *now);
    }
}
