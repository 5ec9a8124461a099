//! The link model: one direction of a path, independent of the simulator.
//!
//! A datagram first waits in the queue of the bottleneck (or is dropped because the queue is full), then is lost or not, then
//! is delayed, and may arrive twice or corrupted. So a datagram that is lost has used the link's capacity, as over radio.

use crate::Rng;
use std::time::{Duration, Instant};

/// Properties of one direction of a path. The default is perfect: no delay, no loss, no limit.
///
/// Probabilities are in `0.0..=1.0`; values outside count as the nearest end.
///
/// ```
/// use rallypoint_netsim::Link;
/// use std::time::Duration;
///
/// let dsl = Link::default().delay(Duration::from_millis(25)).loss(0.01).bottleneck(16_000_000, 64_000);
/// # let _ = dsl;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// Delay of every datagram.
    pub delay: Duration,
    /// Maximum additional delay, uniformly distributed.
    pub jitter: Duration,
    /// Whether jitter reorders datagrams; if not, a faster one waits for those before it.
    pub jitter_reorders: bool,
    /// Probability that a datagram is lost, independently of others.
    pub loss: f64,
    /// Losses in bursts, in addition to `loss`.
    pub burst: Option<BurstLoss>,
    /// Probability that a datagram arrives twice.
    pub duplicate: f64,
    /// Probability that a datagram is held back by `reorder_by`, so that later ones arrive before it.
    pub reorder: f64,
    /// Additional delay of a datagram that is held back.
    pub reorder_by: Duration,
    /// Probability that a copy of a datagram arrives with one bit flipped.
    pub corrupt: f64,
    /// Limit of the rate; `None` is no limit.
    pub bottleneck: Option<Bottleneck>,
}

/// A limited rate, and a queue before it that drops what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Rate in bits of payload per second. With 0 nothing gets through.
    pub bits_per_second: u64,
    /// Maximum number of bytes in the queue, including the rest of the datagram being sent. An idle link takes any datagram.
    pub queue: usize,
}

/// Losses in bursts, after Gilbert and Elliott: the link is in a good or a bad state, which may change with every datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLoss {
    /// Probability that a good link turns bad with the next datagram.
    pub start: f64,
    /// Probability that a bad link turns good with the next datagram.
    pub end: f64,
    /// Probability that a bad link loses a datagram.
    pub loss: f64,
}

/// Why a link lost a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// By [`Link::loss`], independently of others.
    Random,
    /// In a burst.
    Burst,
    /// The queue of the bottleneck was full.
    Queue,
}

/// The effect of a link on one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkResult {
    /// It never arrives.
    Lost(Loss),
    /// It arrives, possibly twice.
    Arrives(Arrival, Option<Arrival>),
}

/// When and how one copy of a datagram arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of arrival.
    pub at: Instant,
    /// When it leaves the bottleneck, or was sent if there is none.
    pub departs: Instant,
    /// The bit that is flipped, counted from the lowest of the first byte.
    pub flipped_bit: Option<usize>,
}

/// A [`Link`] in use, with its queue, its state and its own random number generator.
#[derive(Clone, Debug)]
pub struct LinkState {
    link: Link,
    rng: Rng,
    /// State of the burst model.
    is_bad: bool,
    queue: BottleneckQueue,
    /// Latest arrival of the datagrams that keep their order.
    last_arrival: Option<Instant>,
}

/// The queue before a [`Bottleneck`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BottleneckQueue {
    /// When the bottleneck has sent everything in its queue.
    free_at: Option<Instant>,
}

/// The rate of a bottleneck has changed, and with it the time that what is in its queue takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateChange {
    now: Instant,
    before: u64,
    /// Without a limit, the queue is empty at once.
    after: Option<u64>,
}

impl RateChange {
    /// When a datagram leaves that would have left at `departs`. As long as there is a queue the bottleneck is never idle, so all
    /// times change in the same proportion.
    pub(crate) fn departs(&self, departs: Instant) -> Instant {
        let Some(after) = self.after else { return departs.min(self.now) };
        let left = departs.saturating_duration_since(self.now).as_nanos();
        if left == 0 {
            return departs;
        }
        let nanos = left.saturating_mul(u128::from(self.before)) / u128::from(after);
        let left = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.now.checked_add(left).unwrap_or(departs)
    }
}

/// Maximum time that a datagram is in flight. It keeps time arithmetic away from overflow.
const MAX_DELAY: Duration = Duration::from_secs(86_400);

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

    /// Sets a jitter that reorders datagrams.
    #[must_use]
    pub fn jitter_reordering(self, jitter: Duration) -> Self {
        Self { jitter, jitter_reorders: true, ..self }
    }

    /// Loses this share of the datagrams, independently of each other.
    #[must_use]
    pub fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// Loses this share of the datagrams in bursts of this mean length, in datagrams.
    #[must_use]
    pub fn bursts(self, share: f64, mean_length: f64) -> Self {
        Self { burst: Some(BurstLoss::averaging(share, mean_length)), ..self }
    }

    /// Duplicates this share of the datagrams.
    #[must_use]
    pub fn duplicate(self, duplicate: f64) -> Self {
        Self { duplicate, ..self }
    }

    /// Holds this share of the datagrams back for this time, so that later ones arrive before them.
    #[must_use]
    pub fn reorder(self, reorder: f64, reorder_by: Duration) -> Self {
        Self { reorder, reorder_by, ..self }
    }

    /// Flips one bit in this share of the datagrams.
    #[must_use]
    pub fn corrupt(self, corrupt: f64) -> Self {
        Self { corrupt, ..self }
    }

    /// Limits the rate, with a queue of this size in bytes.
    #[must_use]
    pub fn bottleneck(self, bits_per_second: u64, queue: usize) -> Self {
        Self { bottleneck: Some(Bottleneck { bits_per_second, queue }), ..self }
    }

    /// A link with random faults that still delivers some datagrams.
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
            link = link.bottleneck(64_000 << rng.below(9), 4_000 << rng.below(5));
        }
        link
    }
}

impl BurstLoss {
    /// Loses `share` of all datagrams, in bursts that are `mean_length` datagrams long on average.
    ///
    /// A large share in short bursts is impossible, since two bursts would touch: then the bursts are longer.
    #[must_use]
    pub fn averaging(share: f64, mean_length: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        let end = 1.0 / mean_length.max(1.0);
        if share > (1.0 - share) / end {
            Self { start: 1.0, end: (1.0 - share) / share, loss: 1.0 }
        } else {
            Self { start: end * share / (1.0 - share), end, loss: 1.0 }
        }
    }
}

impl Bottleneck {
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
    /// Corrupts the bytes of this copy, if it is to arrive corrupted.
    pub fn apply(&self, bytes: &mut [u8]) {
        if let Some(bit) = self.flipped_bit
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
        Self { link, rng, is_bad: false, queue: BottleneckQueue::default(), last_arrival: None }
    }

    /// Its properties.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Changes its properties. Datagrams in flight are not affected, except that those in the queue pass the bottleneck at its new
    /// rate: how it changes the times at which they leave is returned.
    pub(crate) fn set_link(&mut self, now: Instant, link: Link) -> Option<RateChange> {
        let before = std::mem::replace(&mut self.link, link).bottleneck?;
        self.queue.change_rate(now, before, link.bottleneck)
    }

    /// The datagram that arrives last of those that keep their order arrives at another time.
    pub(crate) fn on_rescheduled(&mut self, before: Instant, after: Instant) {
        if self.last_arrival == Some(before) {
            self.last_arrival = Some(after);
        }
    }

    /// Sends a datagram of `len` bytes now, and returns what becomes of it. `now` never goes backwards.
    pub fn send(&mut self, now: Instant, len: usize) -> LinkResult {
        let departs = match self.link.bottleneck {
            None => now,
            Some(bottleneck) => match self.queue.pass(bottleneck, now, len) {
                Some(departs) => departs,
                None => return LinkResult::Lost(Loss::Queue),
            },
        };
        if let Some(loss) = self.lose() {
            return LinkResult::Lost(loss);
        }
        let first = self.arrival(departs, len);
        let second = self.rng.chance(self.link.duplicate).then(|| self.arrival(departs, len));
        LinkResult::Arrives(first, second)
    }

    fn lose(&mut self) -> Option<Loss> {
        if let Some(burst) = self.link.burst {
            self.is_bad ^= self.rng.chance(if self.is_bad { burst.end } else { burst.start });
            if self.is_bad && self.rng.chance(burst.loss) {
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
        let is_corrupted = len > 0 && self.rng.chance(self.link.corrupt);
        Arrival { at, departs, flipped_bit: is_corrupted.then(|| self.rng.below(len as u64 * 8) as usize) }
    }
}

impl BottleneckQueue {
    /// When a datagram of `len` bytes leaves the bottleneck; `None` if it does not fit into the queue.
    pub(crate) fn pass(&mut self, bottleneck: Bottleneck, now: Instant, len: usize) -> Option<Instant> {
        let begins = self.free_at.map_or(now, |free_at| free_at.max(now));
        let waiting = bottleneck.bytes_in(begins - now);
        if bottleneck.bits_per_second == 0 || (begins > now && waiting.saturating_add(len) > bottleneck.queue) {
            return None;
        }
        let departs = later(begins, bottleneck.time_for(len));
        self.free_at = Some(departs);
        Some(departs)
    }

    /// What is in the queue passes at another rate from now on. Returns nothing if that changes nothing. A datagram that entered
    /// before the rate became zero waits until it is another.
    pub(crate) fn change_rate(
        &mut self,
        now: Instant,
        before: Bottleneck,
        after: Option<Bottleneck>,
    ) -> Option<RateChange> {
        let free_at = self.free_at.filter(|free_at| *free_at > now)?;
        let rate = |bottleneck: Bottleneck| bottleneck.bits_per_second.max(1);
        let change = RateChange { now, before: rate(before), after: after.map(rate) };
        self.free_at = Some(change.departs(free_at));
        (change.after != Some(change.before)).then_some(change)
    }
}

fn later(at: Instant, by: Duration) -> Instant {
    at.checked_add(by.min(MAX_DELAY)).unwrap_or(at)
}
