//! A simulated bad network between a state machine and its sockets, for testing a game under the conditions of its players.

use rallypoint_machine::{Machine, Transmit};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Conditions of a simulated network, for each direction. The default changes nothing.
///
/// Both directions pass through it: with a `delay` of 50 ms on one side, the round-trip time grows by 100 ms. Probabilities
/// are from 0 to 1; values outside count as the nearest bound.
///
/// ```
/// use rallypoint_session::LinkConditions;
/// use std::time::Duration;
///
/// let mobile = LinkConditions { loss: 0.02, delay: Duration::from_millis(40), ..LinkConditions::default() };
/// assert!(!mobile.is_transparent());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkConditions {
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Delay of every datagram; at most 10 s.
    pub delay: Duration,
    /// Maximum of a random extra delay, by which datagrams overtake each other; at most 10 s.
    pub jitter: Duration,
    /// Probability that a datagram is duplicated.
    pub duplicate: f64,
    /// Probability that a datagram is held back for [`reorder_by`](Self::reorder_by), so that others overtake it.
    pub reorder: f64,
    /// Extra delay of such a datagram; at most 10 s.
    pub reorder_by: Duration,
    /// Seed of the random generator: the same seed gives the same sequence of decisions.
    pub seed: u64,
}

/// Maximum of each delay.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// Maximum number of bytes that are held back in each direction. Beyond it datagrams are lost, as in any queue.
const MAX_HELD_BYTES: usize = 64 << 20;

impl LinkConditions {
    /// Whether these conditions change nothing.
    #[must_use]
    pub fn is_transparent(&self) -> bool {
        let nothing = Self { seed: self.seed, ..Self::default() };
        *self == Self { reorder_by: self.reorder_by, ..nothing }
    }
}

/// A state machine behind a simulated network; itself a state machine.
///
/// Without conditions it costs nothing. With them, received and sent datagrams are delayed, lost and duplicated here.
#[derive(Debug)]
pub struct LinkConditioner<M> {
    inner: M,
    link: Option<Box<SimulatedLink>>,
}

#[derive(Debug)]
struct SimulatedLink {
    conditions: LinkConditions,
    random: SplitMix,
    inbound: DelayQueue,
    outbound: DelayQueue,
    /// Datagrams of the machine whose fate is not decided yet.
    scratch: Vec<u8>,
}

/// Datagrams that are held back, ordered by the time of their release.
#[derive(Debug, Default)]
struct DelayQueue {
    heap: BinaryHeap<Reverse<HeldDatagram>>,
    bytes: usize,
    count: u64,
}

/// Ordered by time, and then by arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HeldDatagram {
    release_at: Instant,
    number: u64,
    peer: SocketAddr,
    bytes: Vec<u8>,
}

/// The generator splitmix64: good enough for a simulation, and the same on every platform.
#[derive(Debug)]
struct SplitMix(u64);

impl<M: Machine> LinkConditioner<M> {
    /// Wraps a machine, without conditions.
    pub fn new(inner: M) -> Self {
        Self { inner, link: None }
    }

    /// The wrapped machine.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The wrapped machine.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// Whether there are conditions.
    pub(crate) fn has_conditions(&self) -> bool {
        self.link.is_some()
    }

    /// Sets the conditions, or removes them with `None`. Datagrams that are held back are released at their time, with the
    /// next call of the machine; with `None` they are lost.
    pub fn set_conditions(&mut self, conditions: Option<LinkConditions>) {
        let conditions = conditions.filter(|conditions| !conditions.is_transparent());
        match (&mut self.link, conditions) {
            (Some(link), Some(conditions)) => {
                link.conditions = conditions;
                link.random = SplitMix(conditions.seed);
            }
            (link, conditions) => *link = conditions.map(|conditions| Box::new(SimulatedLink::new(conditions))),
        }
    }
}

impl SimulatedLink {
    fn new(conditions: LinkConditions) -> Self {
        Self {
            conditions,
            random: SplitMix(conditions.seed),
            inbound: DelayQueue::default(),
            outbound: DelayQueue::default(),
            scratch: Vec::new(),
        }
    }

    /// When the copies of a datagram are released: none if it is lost.
    fn release_times(&mut self, now: Instant) -> [Option<Instant>; 2] {
        let is_lost = self.random.chance(self.conditions.loss);
        let is_duplicated = self.random.chance(self.conditions.duplicate);
        let copies = if is_lost { 0 } else { 1 + usize::from(is_duplicated) };
        std::array::from_fn(|copy| (copy < copies).then(|| now + self.draw_delay()))
    }

    fn draw_delay(&mut self) -> Duration {
        let LinkConditions { delay, jitter, reorder, reorder_by, .. } = self.conditions;
        let held_back = if self.random.chance(reorder) { reorder_by.min(MAX_DELAY) } else { Duration::ZERO };
        delay.min(MAX_DELAY) + jitter.min(MAX_DELAY).mul_f64(self.random.unit()) + held_back
    }
}

impl DelayQueue {
    fn push(&mut self, release_at: Instant, peer: SocketAddr, bytes: &[u8]) {
        if self.bytes + bytes.len() <= MAX_HELD_BYTES {
            self.bytes += bytes.len();
            self.count += 1;
            self.heap.push(Reverse(HeldDatagram { release_at, number: self.count, peer, bytes: bytes.to_vec() }));
        }
    }

    fn pop(&mut self, now: Instant) -> Option<HeldDatagram> {
        self.next_release().filter(|at| *at <= now)?;
        let Reverse(held) = self.heap.pop()?;
        self.bytes -= held.bytes.len();
        Some(held)
    }

    fn next_release(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(held)| held.release_at)
    }
}

impl SplitMix {
    /// A number from 0 up to, but not including, 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability. Draws one number whatever the probability, so that one setting does not change the effect
    /// of another.
    fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

impl<M: Machine> Machine for LinkConditioner<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let Some(link) = &mut self.link else { return self.inner.handle_datagram(now, from, bytes) };
        for at in link.release_times(now).into_iter().flatten() {
            link.inbound.push(at, from, bytes);
        }
        while let Some(held) = link.inbound.pop(now) {
            self.inner.handle_datagram(now, held.peer, &held.bytes);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(link) = &mut self.link {
            while let Some(held) = link.inbound.pop(now) {
                self.inner.handle_datagram(now, held.peer, &held.bytes);
            }
        }
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let Some(link) = &mut self.link else { return self.inner.poll_transmit(now, out) };
        link.scratch.clear();
        while let Some(transmit) = self.inner.poll_transmit(now, &mut link.scratch) {
            let scratch = std::mem::take(&mut link.scratch);
            for datagram in transmit.datagrams(&scratch) {
                for at in link.release_times(now).into_iter().flatten() {
                    link.outbound.push(at, transmit.to, datagram);
                }
            }
            link.scratch = scratch;
            link.scratch.clear();
        }
        let held = link.outbound.pop(now)?;
        out.extend_from_slice(&held.bytes);
        Some(Transmit::one(held.peer, held.bytes.len()))
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        self.inner.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let held = self.link.as_ref().map(|link| [link.inbound.next_release(), link.outbound.next_release()]);
        held.into_iter().flatten().chain([self.inner.poll_timeout()]).flatten().min()
    }
}

#[cfg(test)]
mod tests;
