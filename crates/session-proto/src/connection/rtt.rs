//! Round-trip time: the smoothed estimate of RFC 6298, and the minimum of the last seconds.

mod base_delay;
mod delay_range;
mod recent_samples;

use super::{ack_effect::RepeatedAck, rtt_meter::RttMeter};
use base_delay::{BaseDelay, MIN_RTT_WINDOW};
use delay_range::DelayRange;
use recent_samples::RecentSamples;
use std::time::{Duration, Instant};

/// Retransmission timeout before the first measurement (S25).
const INITIAL_RTO: Duration = Duration::from_millis(500);

/// Smallest retransmission timeout (S25).
const MIN_RTO: Duration = Duration::from_millis(100);

/// Largest retransmission timeout (S25).
const MAX_RTO: Duration = Duration::from_secs(3);

/// Shortest round-trip time that is measured.
const MIN_SAMPLE: Duration = Duration::from_micros(1);

/// Longest round-trip time that is measured.
const MAX_SAMPLE: Duration = Duration::from_secs(60);

/// Round-trip time assumed before the first measurement: a player who is not next door.
const ASSUMED_RTT: Duration = Duration::from_millis(100);

/// Maximum time for which a peer delays an ack (S23).
pub(crate) const ACK_DELAY: Duration = Duration::from_millis(10);

/// Smallest allowance for variation: however steady the path is, the peer may delay an ack.
const MIN_SLACK: Duration = Duration::from_millis(20);

/// A queue is one that delays by more than this, by more than [`MIN_QUEUE_SHARE`], and by more than the delay varies.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);

/// The share of the path's delay, 1/64, by which a queue delays at least.
const MIN_QUEUE_SHARE: u32 = 64;

/// A queue that delays by more than this is longer than those of a link at its usual rate: the link has become slower.
pub(crate) const SLOW_LINK_DELAY: Duration = Duration::from_millis(200);

/// A path that takes this many times as long as the fastest round trip of the last seconds has become slower.
const SLOWER_PATH: u32 = 4;

/// Excess over the path's delay that shows a long queue: see [`RttEstimator::has_long_queue`].
const LONG_QUEUE_DELAY: Duration = Duration::from_millis(5);

/// Number of consecutive samples with such an excess, and one of more than twice their variation, after which the queue counts
/// as long as well: about a second of a game. The queue of a fast link is short, but one that is never empty is full of what
/// need not be sent.
const STANDING_SAMPLES: u8 = 24;

/// Number of consecutive acks that say nothing about the round-trip time before they are used nevertheless.
const MAX_AMBIGUOUS: u32 = 4;

/// Maximum number of times that the timeout is doubled.
const MAX_BACKOFF: u32 = 8;

/// Estimates the round-trip time and derives timeouts from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    min: Option<(Duration, Instant)>,
    base: BaseDelay,
    recent: RecentSamples,
    range: DelayRange,
    /// Number of samples in a row that show a queue, up to [`STANDING_SAMPLES`].
    standing: u8,
    /// Number of acks of resent messages since the last measurement, and the time of the first of them.
    ambiguous: u32,
    ambiguous_since: Option<Instant>,
    /// Number of times that the timeout was doubled.
    backoff: u32,
    /// How long a datagram may wait on this side to be read.
    poll_interval: Duration,
    /// How long the datagrams that are handled now have waited, if it is known.
    receive_delay: Option<Duration>,
    /// What the statistics show.
    meter: RttMeter,
}

impl RttEstimator {
    pub fn new() -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            latest: ASSUMED_RTT,
            min: None,
            base: BaseDelay::default(),
            recent: RecentSamples::default(),
            range: DelayRange::default(),
            standing: 0,
            ambiguous: 0,
            ambiguous_since: None,
            backoff: 0,
            poll_interval: Duration::ZERO,
            receive_delay: None,
            meter: RttMeter::new(),
        }
    }

    /// Adds a measurement, taken on a message that was sent once (Karn's algorithm).
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.sample_burst(now, rtt, rtt, 1, false);
    }

    /// The same with an ack of `count` messages that were sent once. `rtt` is the round-trip time of the last of them, and
    /// `longest` that of the first. `is_dense`: messages are sent so often that the ack of a single one may wait for the next.
    pub fn sample_burst(&mut self, now: Instant, rtt: Duration, longest: Duration, count: u32, is_dense: bool) {
        let rtt = rtt.clamp(MIN_SAMPLE, MAX_SAMPLE);
        self.meter.add(now, rtt.saturating_sub(self.receive_delay()), is_dense && count < 2);
        self.update(now, rtt, longest, count);
    }

    fn update(&mut self, now: Instant, rtt: Duration, longest: Duration, count: u32) {
        self.latest = rtt;
        self.ambiguous = 0;
        self.ambiguous_since = None;
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
        if self.min.is_none_or(|(min, at)| rtt <= min || now.saturating_duration_since(at) > MIN_RTT_WINDOW) {
            self.min = Some((rtt, now));
        }
        self.base.add(now, rtt);
        let excess = rtt.saturating_sub(self.base() + self.frame_delay());
        let is_queued = excess > LONG_QUEUE_DELAY.max(2 * self.variation);
        self.standing = if is_queued { (self.standing + 1).min(STANDING_SAMPLES) } else { 0 };
        self.range.add_sample(rtt);
        if let Some(min) = self.recent.add(now, rtt, longest, count) {
            self.range.add_recent_min(min);
        }
    }

    /// A message that was resent is acked; `rtt` is the time since its first transmission.
    ///
    /// That says nothing about a single message. But if every message is resent before its ack can arrive, because the path
    /// has become slower, nothing would ever be measured again. So after a number of such acks the time since the first
    /// transmission is taken, which makes the estimate at worst too large, and the next messages wait for their acks.
    pub fn on_ambiguous_ack(&mut self, now: Instant, rtt: Duration) {
        self.ambiguous += 1;
        let since = *self.ambiguous_since.get_or_insert(now);
        // Where many messages are in flight, others are measured within a round trip. And after an outage, what was sent
        // before it is acked much later than any path is slow.
        let is_starved = now.saturating_duration_since(since) >= self.smoothed() && self.ambiguous >= MAX_AMBIGUOUS;
        if is_starved && rtt < 4 * self.base_rto() {
            let ambiguous = self.ambiguous;
            let rtt = rtt.min((2 * self.smoothed()).max(MIN_RTO)).clamp(MIN_SAMPLE, MAX_SAMPLE);
            self.meter.add_ambiguous(now, rtt);
            self.update(now, rtt, rtt, 1);
            self.ambiguous = ambiguous;
            self.ambiguous_since = Some(since);
        }
    }

    /// Whether the delay has not changed lately: there is no queue, or it is always full.
    pub fn is_delay_constant(&self) -> Option<bool> {
        self.range.is_constant(self.base())
    }

    /// Whether no sample so far differs from the others, which says less: a few can agree by chance.
    pub fn is_delay_constant_so_far(&self) -> bool {
        self.range.is_constant_so_far(self.base())
    }

    /// Whether there are so many samples that it is no chance if all of them agree.
    pub fn is_delay_constant_with_enough_samples(&self) -> bool {
        self.range.is_constant_with_enough_samples(self.base())
    }

    /// The first of two acks of a message was forged (W62). If it has lowered the path's delay, that is undone.
    pub fn on_forged_sample(&mut self, now: Instant, acks: RepeatedAck) {
        if let Some(delay) = self.base.on_forged_sample(now, acks) {
            self.raise_estimates(now, delay);
        }
    }

    /// A round trip takes at least `floor`, so a shorter delay of the path was forged, and `delay` is probably the true one. If
    /// that is forged as well, the next genuine ack is faster.
    pub fn raise_base(&mut self, now: Instant, floor: Duration, delay: Duration) {
        if self.base.raise(now, floor, delay) {
            self.raise_estimates(now, delay);
        }
    }

    /// The path's delay was raised to `delay`, so no round trip is faster.
    fn raise_estimates(&mut self, now: Instant, delay: Duration) {
        self.min = Some((delay, now));
        self.smoothed = self.smoothed.map(|smoothed| smoothed.max(delay));
    }

    /// Starts over on a new path. Nothing is known about it, but its delay is probably similar.
    pub fn forget_path(&mut self) {
        self.min = None;
        self.base = BaseDelay::default();
        self.recent = RecentSamples::default();
        self.range = DelayRange::default();
        self.standing = 0;
        self.backoff = 0;
    }

    /// This side is polled at this interval, as in a game loop: zero if it is woken by every datagram.
    pub fn set_poll_interval(&mut self, interval: Duration) {
        self.poll_interval = interval;
    }

    /// The datagrams that are handled next have waited for this long to be read; `None` if that is not known.
    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.receive_delay = delay;
    }

    /// How long an ack has waited on this side: half a frame, if nothing better is known.
    fn receive_delay(&self) -> Duration {
        self.receive_delay.unwrap_or(self.poll_interval / 2)
    }

    /// The round-trip time for the statistics, if it was measured: the median of the last ones, without waiting on this side (W82).
    /// What was measured before a forgery was found may be too short.
    pub fn median(&self) -> Option<Duration> {
        self.meter.median().map(|median| median.max(self.base().saturating_sub(self.poll_interval)))
    }

    pub fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    pub fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(ASSUMED_RTT)
    }

    /// The same in seconds, and never zero.
    pub fn smoothed_secs(&self) -> f64 {
        self.smoothed().max(MIN_SAMPLE).as_secs_f64()
    }

    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The minimum of the last seconds.
    pub fn min(&self) -> Duration {
        self.min.map_or(self.smoothed(), |(min, _)| min)
    }

    /// The delay of the path without a queue.
    pub fn base(&self) -> Duration {
        self.base.delay().unwrap_or(self.smoothed())
    }

    /// The minimum of the last round trips if all of them take much longer than the fastest of the last seconds, which then
    /// was that of a former path; otherwise the latter.
    pub fn recent_min(&self) -> Duration {
        let min = self.min();
        self.recent.min().filter(|recent| *recent > SLOWER_PATH * min).unwrap_or(min)
    }

    /// How much longer than without a queue a round trip takes now.
    pub fn queue_delay(&self) -> Duration {
        self.recent.min().map_or(Duration::ZERO, |recent| recent.saturating_sub(self.base()))
    }

    /// The excess delay by the last few samples alone, which show a queue sooner, and jitter as well.
    pub fn last_excess_delay(&self) -> Duration {
        self.recent.last_min().saturating_sub(self.base() + self.frame_delay())
    }

    /// How long a round trip may wait for a frame, on this side and at the peer (W80).
    pub fn frame_delay(&self) -> Duration {
        self.poll_interval + self.recent.hold_time()
    }

    /// How much longer than without a queue a round trip takes now, apart from waiting for a frame.
    pub fn excess_delay(&self) -> Duration {
        self.queue_delay().saturating_sub(self.frame_delay())
    }

    /// Whether the round-trip time shows a queue.
    pub fn has_queue(&self) -> bool {
        self.excess_delay() > MIN_QUEUE_DELAY.max(self.base() / MIN_QUEUE_SHARE).max(self.variation)
    }

    /// Whether the round-trip time shows a queue to a stream that sends little, whose acks may be delayed.
    pub fn has_thin_queue(&self) -> bool {
        self.excess_delay() > self.thin_queue_delay()
    }

    /// Whether the last samples show such a queue, which may have just begun.
    pub fn has_new_thin_queue(&self) -> bool {
        self.last_excess_delay() > self.thin_queue_delay()
    }

    /// Whether the last samples show a queue that is longer than those of a link at its usual rate.
    pub fn is_link_slow(&self) -> bool {
        self.last_excess_delay() > SLOW_LINK_DELAY
    }

    /// Whether the round-trip time showed a queue before nothing came back any more. A queue that fills quickly makes the
    /// round-trip time vary as much as it grows.
    pub fn had_queue(&self) -> bool {
        self.has_queue() || self.is_link_slow()
    }

    /// Whether the last samples show less than half of such a queue.
    pub fn has_no_thin_queue(&self) -> bool {
        2 * self.last_excess_delay() < self.thin_queue_delay()
    }

    /// The excess delay above which a stream that sends little sees a queue.
    fn thin_queue_delay(&self) -> Duration {
        self.base() / 4 + MIN_SLACK
    }

    /// Whether copies would do harm: the queue adds a quarter of the path's delay and 5 ms, or has not been empty for a while.
    pub fn has_long_queue(&self) -> bool {
        self.excess_delay() > self.base() / 4 + LONG_QUEUE_DELAY || self.standing >= STANDING_SAMPLES
    }

    /// Time after which a message is lost if a later one is acked: 9/8 of the usual round trip (S25).
    pub fn loss_delay(&self) -> Duration {
        (self.smoothed().max(self.latest) * 9 / 8).max(Duration::from_millis(2))
    }

    /// The retransmission timeout, doubled for each time that it has passed (S25).
    pub fn rto(&self) -> Duration {
        (self.base_rto() * 2u32.saturating_pow(self.backoff.min(MAX_BACKOFF))).clamp(MIN_RTO, MAX_RTO)
    }

    /// The retransmission timeout without backoff.
    pub fn base_rto(&self) -> Duration {
        let slack = (4 * self.variation).max(MIN_SLACK);
        self.smoothed.map_or(INITIAL_RTO, |smoothed| (smoothed + slack).clamp(MIN_RTO, MAX_RTO))
    }

    /// Timeout of a thin stream: such a stream builds no queue that it could wait in, so no minimum of 100 ms is needed.
    pub fn thin_timeout(&self) -> Duration {
        match self.smoothed {
            None => INITIAL_RTO / 2,
            Some(smoothed) => smoothed + (4 * self.variation).max(MIN_SLACK),
        }
    }

    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn s25_the_timeout_starts_at_500_ms_and_stays_between_100_ms_and_3_s() {
        let mut rtt = RttEstimator::new();
        let now = Instant::now();
        assert_eq!(rtt.rto(), ms(500));
        for _ in 0..100 {
            rtt.sample(now, ms(10));
        }
        assert_eq!(rtt.rto(), ms(100));
        for doubled in [200, 400, 800, 1600, 3000, 3000] {
            rtt.back_off();
            assert_eq!(rtt.rto(), ms(doubled));
        }
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), ms(100));
    }

    #[test]
    fn the_minimum_expires_after_10_s() {
        let mut rtt = RttEstimator::new();
        let now = Instant::now();
        rtt.sample(now, ms(10));
        rtt.sample(now + ms(5_000), ms(50));
        assert_eq!(rtt.min(), ms(10));
        rtt.sample(now + ms(11_000), ms(50));
        assert_eq!(rtt.min(), ms(50));
    }

    #[test]
    fn nothing_that_was_measured_on_another_path_says_whether_the_delay_of_this_one_is_constant() {
        let mut rtt = RttEstimator::new();
        let mut now = Instant::now();
        for number in 0..200 {
            now += ms(2);
            rtt.sample(now, ms(50 + number % 40));
        }
        assert_eq!(rtt.is_delay_constant(), Some(false));
        rtt.forget_path();
        assert_eq!(rtt.is_delay_constant(), None);
        for _ in 0..40 {
            now += ms(2);
            rtt.sample(now, ms(50));
        }
        assert_eq!(rtt.is_delay_constant(), Some(true));
    }
}
