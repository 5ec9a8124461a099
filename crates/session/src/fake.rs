//! A bad network, made on purpose: for testing a game on the network that its players have.

use rallypoint_machine::{Machine, Transmit};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How bad the network is to be, in each direction. The default is the network as it is.
///
/// Both directions pass through it: with a `delay` of 50 ms on one side, an answer takes 100 ms longer. Probabilities are
/// from 0 to 1; what lies outside counts as the nearest end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FakeNetwork {
    /// The probability that a datagram is lost.
    pub loss: f64,
    /// How long every datagram takes; at most 10 s.
    pub delay: Duration,
    /// Up to this is added to the delay, so that datagrams overtake each other; at most 10 s.
    pub jitter: Duration,
    /// The probability that a datagram arrives twice.
    pub duplicate: f64,
    /// The probability that a datagram is held back for [`reorder_by`](Self::reorder_by), while others overtake it.
    pub reorder: f64,
    /// How long such a datagram is held back; at most 10 s.
    pub reorder_by: Duration,
    /// What chance begins with: the same seed is the same chance.
    pub seed: u64,
}

/// No datagram is held back for longer by any one setting.
const LONGEST: Duration = Duration::from_secs(10);

/// So many bytes may be held back in each direction; beyond that datagrams are lost, as in any queue.
const MOST_BYTES: usize = 64 << 20;

impl FakeNetwork {
    /// Whether it is the network as it is.
    #[must_use]
    pub fn is_transparent(&self) -> bool {
        let nothing = Self { seed: self.seed, ..Self::default() };
        *self == Self { reorder_by: self.reorder_by, ..nothing }
    }
}

/// A machine behind a [`FakeNetwork`]; itself a machine.
///
/// Without a fake network it costs nothing. With one, what arrives and what is sent is held back, lost and doubled here.
#[derive(Debug)]
pub struct Faked<M> {
    /// The machine behind it.
    pub machine: M,
    network: Option<Box<Network>>,
}

#[derive(Debug)]
struct Network {
    fake: FakeNetwork,
    chance: Chance,
    coming: Queue,
    going: Queue,
    /// What the machine wants to send, before its fate is known.
    fresh: Vec<u8>,
}

/// Datagrams that are held back, by the time at which they go on.
#[derive(Debug, Default)]
struct Queue {
    heap: BinaryHeap<Reverse<Held>>,
    bytes: usize,
    count: u64,
}

/// Ordered by time, and then by who was first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at: Instant,
    number: u64,
    peer: SocketAddr,
    bytes: Vec<u8>,
}

/// splitmix64: good enough for dice, and the same everywhere.
#[derive(Debug)]
struct Chance(u64);

impl<M: Machine> Faked<M> {
    /// A machine on the network as it is.
    pub fn new(machine: M) -> Self {
        Self { machine, network: None }
    }

    /// Makes the network as bad as this from now on, or as it is again. What is held back goes on at its time, with
    /// whatever the machine is told next; with `None` it is lost.
    pub fn set_fake(&mut self, fake: Option<FakeNetwork>) {
        let fake = fake.filter(|fake| !fake.is_transparent());
        match (&mut self.network, fake) {
            (Some(network), Some(fake)) => (network.fake, network.chance) = (fake, Chance(fake.seed)),
            (network, fake) => *network = fake.map(|fake| Box::new(Network::new(fake))),
        }
    }
}

impl Network {
    fn new(fake: FakeNetwork) -> Self {
        let (coming, going) = (Queue::default(), Queue::default());
        Self { fake, chance: Chance(fake.seed), coming, going, fresh: Vec::new() }
    }

    /// When the copies of a datagram go on: none if it is lost.
    fn fate(&mut self, now: Instant) -> [Option<Instant>; 2] {
        let copies = match (self.chance.is(self.fake.loss), self.chance.is(self.fake.duplicate)) {
            (true, _) => 0,
            (false, is_double) => 1 + usize::from(is_double),
        };
        std::array::from_fn(|copy| (copy < copies).then(|| now + self.hold()))
    }

    fn hold(&mut self) -> Duration {
        let FakeNetwork { delay, jitter, reorder, reorder_by, .. } = self.fake;
        let held = if self.chance.is(reorder) { reorder_by.min(LONGEST) } else { Duration::ZERO };
        delay.min(LONGEST) + jitter.min(LONGEST).mul_f64(self.chance.unit()) + held
    }
}

impl Queue {
    fn push(&mut self, at: Instant, peer: SocketAddr, bytes: &[u8]) {
        if self.bytes + bytes.len() <= MOST_BYTES {
            self.bytes += bytes.len();
            self.count += 1;
            self.heap.push(Reverse(Held { at, number: self.count, peer, bytes: bytes.to_vec() }));
        }
    }

    fn pop(&mut self, now: Instant) -> Option<Held> {
        self.next().filter(|at| *at <= now)?;
        let Reverse(held) = self.heap.pop()?;
        self.bytes -= held.bytes.len();
        Some(held)
    }

    fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(held)| held.at)
    }
}

impl Chance {
    /// From 0 up to, but not including, 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Every question takes one number, whatever the probability: so that one setting does not change what another does.
    fn is(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

impl<M: Machine> Machine for Faked<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let Some(network) = &mut self.network else { return self.machine.handle_datagram(now, from, bytes) };
        for at in network.fate(now).into_iter().flatten() {
            network.coming.push(at, from, bytes);
        }
        while let Some(held) = network.coming.pop(now) {
            self.machine.handle_datagram(now, held.peer, &held.bytes);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(network) = &mut self.network {
            while let Some(held) = network.coming.pop(now) {
                self.machine.handle_datagram(now, held.peer, &held.bytes);
            }
        }
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let Some(network) = &mut self.network else { return self.machine.poll_transmit(now, out) };
        network.fresh.clear();
        while let Some(transmit) = self.machine.poll_transmit(now, &mut network.fresh) {
            let fresh = std::mem::take(&mut network.fresh);
            for datagram in transmit.datagrams(&fresh) {
                for at in network.fate(now).into_iter().flatten() {
                    network.going.push(at, transmit.to, datagram);
                }
            }
            network.fresh = fresh;
            network.fresh.clear();
        }
        let held = network.going.pop(now)?;
        out.extend_from_slice(&held.bytes);
        Some(Transmit::one(held.peer, held.bytes.len()))
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        self.machine.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let held = self.network.as_ref().map(|network| [network.coming.next(), network.going.next()]);
        held.into_iter().flatten().chain([self.machine.poll_timeout()]).flatten().min()
    }
}

#[cfg(test)]
mod tests;
