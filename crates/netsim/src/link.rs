//! What happens to datagrams on the way: one direction of a path, without knowledge of the simulator.
//!
//! A datagram first waits for its turn on a link with a rate (or finds the queue full), then is lost or not, then
//! takes its time, and maybe arrives twice or damaged. So what is lost on the way has used the link, as in the air.

use crate::Rng;
use std::time::{Duration, Instant};

/// How one direction of a path behaves. The default is perfect: no delay, no loss, no limit.
///
/// Probabilities are meant to be in `0.0..=1.0`; what lies outside counts as the nearest end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// How long every datagram takes.
    pub delay: Duration,
    /// Up to this is added to the delay, equally distributed.
    pub jitter: Duration,
    /// Whether jitter lets datagrams overtake each other; if not, one that is faster waits for the ones before it.
    pub jitter_reorders: bool,
    /// The probability that a datagram is lost, each by itself.
    pub loss: f64,
    /// Losses in a row, in addition to `loss`.
    pub burst: Option<Burst>,
    /// The probability that a datagram arrives twice.
    pub duplicate: f64,
    /// The probability that a datagram is held back by `reorder_by`, while others overtake it.
    pub reorder: f64,
    /// How long such a datagram is held back.
    pub reorder_by: Duration,
    /// The probability that a datagram arrives with one bit flipped; each copy by itself.
    pub corrupt: f64,
    /// How much fits through, if that is limited.
    pub rate: Option<Rate>,
}

/// A bottleneck: a rate, and a queue before it that drops what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second of datagrams, headers not counted. With 0 nothing gets through.
    pub bits_per_second: u64,
    /// How many bytes may wait, what is left of the one being sent included. An idle link takes any datagram.
    pub queue: usize,
}

/// Losses in bursts, after Gilbert and Elliott: the link is good or bad, and may change with every datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The probability that a good link turns bad with the next datagram.
    pub start: f64,
    /// The probability that a bad link turns good with the next datagram.
    pub end: f64,
    /// The probability that a bad link loses a datagram.
    pub loss: f64,
}

/// Why a link lost a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// By `loss`: each datagram by itself.
    Random,
    /// In a burst.
    Burst,
    /// The queue before the bottleneck was full.
    Queue,
}

/// What a link makes of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It never arrives.
    Lost(Loss),
    /// It arrives, maybe twice.
    Arrives(Arrival, Option<Arrival>),
}

/// When and how one copy of a datagram arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time of arrival.
    pub at: Instant,
    /// The bit that is flipped, counted from the first byte's lowest.
    pub flipped: Option<usize>,
}

/// A [`Link`] in use: its queue, its state and its own stream of chance.
#[derive(Clone, Debug)]
pub struct LinkState {
    link: Link,
    rng: Rng,
    bad: bool,
    /// When the bottleneck has sent all that waits.
    free_at: Option<Instant>,
    /// Nothing in order arrives before this.
    last_arrival: Option<Instant>,
}

/// No datagram is under way for longer; keeps the arithmetic of time away from its ends.
const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

impl Link {
    /// Sets the delay.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Sets a jitter that keeps the order.
    #[must_use]
    pub fn jitter(self, jitter: Duration) -> Self {
        Self { jitter, jitter_reorders: false, ..self }
    }

    /// Sets a jitter that lets datagrams overtake each other.
    #[must_use]
    pub fn jitter_reordering(self, jitter: Duration) -> Self {
        Self { jitter, jitter_reorders: true, ..self }
    }

    /// Loses this share of the datagrams, each by itself.
    #[must_use]
    pub fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// Loses this share of the datagrams in bursts of this mean length (in datagrams).
    #[must_use]
    pub fn bursts(self, share: f64, mean_length: f64) -> Self {
        Self { burst: Some(Burst::averaging(share, mean_length)), ..self }
    }

    /// Lets this share of the datagrams arrive twice.
    #[must_use]
    pub fn duplicate(self, duplicate: f64) -> Self {
        Self { duplicate, ..self }
    }

    /// Holds this share of the datagrams back for so long, while others overtake them.
    #[must_use]
    pub fn reorder(self, reorder: f64, reorder_by: Duration) -> Self {
        Self { reorder, reorder_by, ..self }
    }

    /// Flips a bit in this share of the datagrams.
    #[must_use]
    pub fn corrupt(self, corrupt: f64) -> Self {
        Self { corrupt, ..self }
    }

    /// Limits the rate, with a queue of so many bytes.
    #[must_use]
    pub fn rate(self, bits_per_second: u64, queue: usize) -> Self {
        Self { rate: Some(Rate { bits_per_second, queue }), ..self }
    }

    /// A link that is bad in random ways, but lets something through.
    #[must_use]
    pub fn random(rng: &mut Rng) -> Self {
        const fn ms(ms: u64) -> Duration {
            Duration::from_millis(ms)
        }
        let mut link = Self::default().delay(rng.duration(ms(150)));
        if rng.chance(0.5) {
            link = link.jitter(rng.duration(ms(50)));
            link.jitter_reorders = rng.chance(0.5);
        }
        if rng.chance(0.5) {
            link = link.loss(0.3 * rng.unit());
        }
        if rng.chance(0.3) {
            link = link.bursts(0.3 * rng.unit(), 1.0 + 10.0 * rng.unit());
        }
        if rng.chance(0.5) {
            link = link.duplicate(0.2 * rng.unit());
        }
        if rng.chance(0.5) {
            link = link.reorder(0.3 * rng.unit(), rng.duration(ms(100)));
        }
        if rng.chance(0.5) {
            link = link.corrupt(0.1 * rng.unit());
        }
        if rng.chance(0.3) {
            link = link.rate(64_000 << rng.below(9), 4_000 << rng.below(5));
        }
        link
    }
}

impl Burst {
    /// Loses `share` of all datagrams, in bursts that are `mean_length` datagrams long on average.
    ///
    /// A large share in short bursts is impossible (two of them would touch): then the bursts are longer.
    #[must_use]
    pub fn averaging(share: f64, mean_length: f64) -> Self {
        let (share, end) = (share.clamp(0.0, 1.0), 1.0 / mean_length.max(1.0));
        if share > (1.0 - share) / end {
            Self { start: 1.0, end: (1.0 - share) / share, loss: 1.0 }
        } else {
            Self { start: end * share / (1.0 - share), end, loss: 1.0 }
        }
    }
}

impl Rate {
    fn time_for(self, bytes: usize) -> Duration {
        let nanos = (bytes as u128 * 8_000_000_000).div_ceil(u128::from(self.bits_per_second.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn bytes_in(self, time: Duration) -> usize {
        let bytes = time.as_nanos().saturating_mul(u128::from(self.bits_per_second)) / 8_000_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl Arrival {
    /// Damages the bytes of this copy, if it is to arrive damaged.
    pub fn apply(&self, bytes: &mut [u8]) {
        if let Some(bit) = self.flipped
            && let Some(byte) = bytes.get_mut(bit / 8)
        {
            *byte ^= 1 << (bit % 8);
        }
    }
}

impl LinkState {
    /// An idle link.
    #[must_use]
    pub fn new(link: Link, rng: Rng) -> Self {
        Self { link, rng, bad: false, free_at: None, last_arrival: None }
    }

    /// How it behaves.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Changes how it behaves. What is on the way stays on the way, and what waits in the queue still holds up what
    /// comes after it.
    pub fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    /// Says what becomes of a datagram of `len` bytes that is sent now. `now` never goes backwards.
    pub fn offer(&mut self, now: Instant, len: usize) -> Outcome {
        let Some(departs) = self.pass_queue(now, len) else {
            return Outcome::Lost(Loss::Queue);
        };
        if let Some(loss) = self.lose() {
            return Outcome::Lost(loss);
        }
        let first = self.arrival(departs, len);
        let second = self.rng.chance(self.link.duplicate).then(|| self.arrival(departs, len));
        Outcome::Arrives(first, second)
    }

    /// When the datagram has left the bottleneck, if it fits into the queue.
    fn pass_queue(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let Some(rate) = self.link.rate else {
            return Some(now);
        };
        let begins = self.free_at.map_or(now, |free_at| free_at.max(now));
        let waiting = rate.bytes_in(begins - now);
        if rate.bits_per_second == 0 || (begins > now && waiting.saturating_add(len) > rate.queue) {
            return None;
        }
        let departs = later(begins, rate.time_for(len));
        self.free_at = Some(departs);
        Some(departs)
    }

    fn lose(&mut self) -> Option<Loss> {
        if let Some(burst) = self.link.burst {
            self.bad ^= self.rng.chance(if self.bad { burst.end } else { burst.start });
            if self.bad && self.rng.chance(burst.loss) {
                return Some(Loss::Burst);
            }
        }
        self.rng.chance(self.link.loss).then_some(Loss::Random)
    }

    fn arrival(&mut self, departs: Instant, len: usize) -> Arrival {
        let mut at = later(departs, self.link.delay);
        if !self.link.jitter.is_zero() {
            at = later(at, self.rng.duration(self.link.jitter));
        }
        if self.rng.chance(self.link.reorder) {
            at = later(at, self.link.reorder_by);
        } else if !self.link.jitter_reorders {
            at = self.last_arrival.map_or(at, |last| last.max(at));
            self.last_arrival = Some(at);
        }
        let damaged = len > 0 && self.rng.chance(self.link.corrupt);
        Arrival { at, flipped: damaged.then(|| self.rng.below(len as u64 * 8) as usize) }
    }
}

fn later(at: Instant, by: Duration) -> Instant {
    at.checked_add(by.min(LONGEST_DELAY)).unwrap_or(at)
}
