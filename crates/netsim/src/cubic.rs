//! A bulk transfer with CUBIC congestion control (RFC 9438), as cross traffic on a bottleneck.
//!
//! The sender never runs out of data. Every transmission has a number of its own, and an ack names the newest number and the
//! 64 before it, so that losses are known as with selective acks: three later transmissions are acked, or 9/8 of a round trip
//! has passed. Only the congestion control matters here, so no bytes are sent again: a lost segment is replaced by a new one.

use rallypoint_machine::{Machine, Transmit};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Initial window in segments (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// Smallest window in segments.
const MIN_WINDOW: f64 = 2.0;

/// Constants of RFC 9438: the scale of the cubic function in segments per cubed second, the multiplicative decrease, and the
/// growth per round trip that makes AIMD with this decrease as fast as Reno.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Number of later transmissions that have to be acked before one counts as lost.
const LOSS_THRESHOLD: u64 = 3;

/// Retransmission timeout: initial, smallest and largest.
const INITIAL_RTO: Duration = Duration::from_secs(1);
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(60);

/// The sending side of a CUBIC flow.
///
/// ```
/// use rallypoint_netsim::{CubicReceiver, CubicSender, Link, Network};
/// use std::time::Duration;
///
/// let mut net = Network::new(1);
/// net.set_default_link(Link::default().delay(Duration::from_millis(25)).bottleneck(10_000_000, 62_500));
/// let receiver = net.add(([10, 0, 0, 2], 2000), CubicReceiver::default());
/// let sender = CubicSender::new(net.now(), net.address(receiver), 1_200);
/// net.add(([10, 0, 0, 1], 1000), sender);
/// net.run_for(Duration::from_secs(10));
/// let received = net.machine(receiver).bytes();
/// assert!(received > 10_000_000, "{received}"); // of 12.5 MB
/// ```
#[derive(Debug)]
pub struct CubicSender {
    start: Instant,
    to: SocketAddr,
    segment: usize,
    /// Transmissions in flight, the oldest first.
    in_flight: VecDeque<InFlight>,
    next_number: u64,
    newest_acked: Option<u64>,
    /// Congestion window and slow-start threshold, in segments.
    window: f64,
    threshold: f64,
    /// Window at the last congestion event, and the current epoch of growth.
    max_window: f64,
    epoch: Option<Epoch>,
    /// Losses of transmissions before this one belong to the last congestion event.
    recovery_end: u64,
    smoothed: Option<Duration>,
    variation: Duration,
    backoff: u32,
    last_progress: Instant,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    number: u64,
    sent_at: Instant,
}

/// Growth since the last congestion event.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds after which the cubic function reaches the window of the last congestion event.
    k: f64,
    /// Window that Reno would have.
    reno_window: f64,
}

/// The receiving side of a CUBIC flow: acks every segment.
#[derive(Debug, Default)]
pub struct CubicReceiver {
    newest: Option<u64>,
    /// Which of the 64 transmissions before the newest were received; bit 0 is the one right before it.
    before: u64,
    bytes: u64,
    acks: VecDeque<(SocketAddr, [u8; 16])>,
}

impl CubicSender {
    /// A flow that starts at this time, with datagrams of `segment` bytes.
    #[must_use]
    pub fn new(start: Instant, to: SocketAddr, segment: usize) -> Self {
        Self {
            start,
            to,
            segment: segment.max(8),
            in_flight: VecDeque::new(),
            next_number: 0,
            newest_acked: None,
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            max_window: 0.0,
            epoch: None,
            recovery_end: 0,
            smoothed: None,
            variation: Duration::ZERO,
            backoff: 0,
            last_progress: start,
        }
    }

    /// Congestion window in bytes.
    #[must_use]
    pub fn window(&self) -> u64 {
        (self.window * self.segment as f64) as u64
    }

    fn on_acks(&mut self, now: Instant, newest: u64, before: u64) {
        let is_acked = |number: u64| match newest.checked_sub(number) {
            Some(0) => true,
            Some(distance @ 1..=64) => before >> (distance - 1) & 1 == 1,
            _ => false,
        };
        // Numbers ascend in the queue, and an ack names only the newest 65.
        let first = self.in_flight.partition_point(|segment| segment.number + 64 < newest);
        let mut end = self.in_flight.partition_point(|segment| segment.number <= newest);
        if let Some(last) = end.checked_sub(1).and_then(|last| self.in_flight.get(last))
            && last.number == newest
        {
            self.on_rtt(now.saturating_duration_since(last.sent_at));
        }
        let was_full = self.in_flight.len() as f64 + 1.0 >= self.window;
        let in_flight = self.in_flight.len();
        let mut position = first;
        while position < end {
            if self.in_flight.get(position).is_some_and(|segment| is_acked(segment.number)) {
                self.in_flight.remove(position);
                end -= 1;
            } else {
                position += 1;
            }
        }
        let acked = in_flight - self.in_flight.len();
        if acked == 0 {
            return;
        }
        self.newest_acked = self.newest_acked.max(Some(newest));
        self.last_progress = now;
        self.backoff = 0;
        if was_full && newest >= self.recovery_end {
            (0..acked).for_each(|_| self.grow(now));
        }
        self.detect_losses(now);
    }

    fn grow(&mut self, now: Instant) {
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        let window = self.window;
        let max_window = &mut self.max_window;
        let epoch = self.epoch.get_or_insert_with(|| {
            *max_window = max_window.max(window);
            Epoch { start: now, k: ((*max_window - window) / C).cbrt(), reno_window: window }
        });
        let rtt = self.smoothed.unwrap_or_default();
        let time = (now.saturating_duration_since(epoch.start) + rtt).as_secs_f64() - epoch.k;
        let target = (C * time.powi(3) + self.max_window).clamp(window, 1.5 * window);
        epoch.reno_window += ALPHA / window;
        self.window = (window + (target - window) / window).max(epoch.reno_window);
    }

    fn detect_losses(&mut self, now: Instant) {
        let Some(newest) = self.newest_acked else { return };
        let delay = self.smoothed.unwrap_or_default() * 9 / 8;
        let is_lost = |segment: &InFlight| {
            segment.number + LOSS_THRESHOLD <= newest || (segment.number < newest && now >= segment.sent_at + delay)
        };
        let mut newest_lost = None;
        while let Some(segment) = self.in_flight.pop_front_if(|segment| is_lost(segment)) {
            newest_lost = Some(segment.number);
        }
        if newest_lost.is_some_and(|number| number >= self.recovery_end) {
            self.on_congestion();
        }
    }

    fn on_congestion(&mut self) {
        self.recovery_end = self.next_number;
        // Fast convergence: a flow that lost its share releases more of it.
        let is_losing = self.window < self.max_window;
        self.max_window = if is_losing { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(MIN_WINDOW);
        self.threshold = self.window;
        self.epoch = None;
    }

    fn on_rtt(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = self.variation * 3 / 4 + smoothed.abs_diff(rtt) / 4;
                self.smoothed = Some(smoothed * 7 / 8 + rtt / 8);
            }
        }
    }

    fn rto_at(&self) -> Option<Instant> {
        let rto = self.smoothed.map_or(INITIAL_RTO, |smoothed| (smoothed + 4 * self.variation).max(MIN_RTO));
        let since = self.in_flight.front()?.sent_at.max(self.last_progress);
        Some(since + (rto * 2u32.saturating_pow(self.backoff)).min(MAX_RTO))
    }

    fn loss_at(&self) -> Option<Instant> {
        let first = self.in_flight.front()?;
        let delay = self.smoothed? * 9 / 8;
        (first.number < self.newest_acked?).then(|| first.sent_at + delay)
    }
}

impl CubicReceiver {
    /// Bytes received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Machine for CubicSender {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, bytes: &[u8]) {
        if let Some((newest, rest)) = bytes.split_first_chunk()
            && let Some(before) = rest.first_chunk()
        {
            self.on_acks(now, u64::from_le_bytes(*newest), u64::from_le_bytes(*before));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.detect_losses(now);
        if self.rto_at().is_some_and(|at| at <= now) {
            self.in_flight.clear();
            if self.backoff == 0 {
                self.on_congestion();
            }
            self.window = 1.0;
            self.backoff = (self.backoff + 1).min(8);
            self.last_progress = now;
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if now < self.start || self.in_flight.len() as f64 + 1.0 > self.window.max(1.0) {
            return None;
        }
        let start = out.len();
        out.extend_from_slice(&self.next_number.to_le_bytes());
        out.resize(start + self.segment, 0);
        self.in_flight.push_back(InFlight { number: self.next_number, sent_at: now });
        self.next_number += 1;
        Some(Transmit::one(self.to, self.segment))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let start = (self.next_number == 0).then_some(self.start);
        [start, self.rto_at(), self.loss_at()].into_iter().flatten().min()
    }
}

impl Machine for CubicReceiver {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
        let Some(number) = bytes.first_chunk().map(|number| u64::from_le_bytes(*number)) else { return };
        self.bytes += bytes.len() as u64;
        match self.newest {
            Some(newest) if number <= newest => {
                let bit = (newest - number).checked_sub(1).and_then(|bit| 1u64.checked_shl(bit as u32));
                self.before |= bit.unwrap_or_default();
            }
            Some(newest) => {
                let shift = number - newest;
                self.before = if shift < 64 { self.before << shift | 1 << (shift - 1) } else { 0 };
                self.newest = Some(number);
            }
            None => self.newest = Some(number),
        }
        let mut ack = [0; 16];
        ack[..8].copy_from_slice(&self.newest.unwrap_or_default().to_le_bytes());
        ack[8..].copy_from_slice(&self.before.to_le_bytes());
        self.acks.push_back((from, ack));
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, ack) = self.acks.pop_front()?;
        out.extend_from_slice(&ack);
        Some(Transmit::one(to, ack.len()))
    }
}
