//! How long an answer takes: RFC 6298, and the shortest time lately.

use std::time::{Duration, Instant};

/// S25.
const INITIAL_RTO: Duration = Duration::from_millis(500);
const MIN_RTO: Duration = Duration::from_millis(100);
const MAX_RTO: Duration = Duration::from_secs(3);

/// What is assumed before anything was measured: a player who is not next door.
const ASSUMED: Duration = Duration::from_millis(100);

/// How long a peer may hold an ack back (S23).
pub(crate) const ACK_DELAY: Duration = Duration::from_millis(10);

/// However steady the path is: a peer may hold an ack back.
const SLACK: Duration = Duration::from_millis(20);

/// For how long the shortest time counts. Paths change, and a full queue must not hide the true delay for ever.
const MIN_WINDOW: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    min: Option<(Duration, Instant)>,
    /// How often the timeout was doubled.
    backoff: u32,
}

impl Rtt {
    pub fn new() -> Self {
        Self { smoothed: None, variation: Duration::ZERO, latest: ASSUMED, min: None, backoff: 0 }
    }

    /// A time that was measured on a message that was sent once (Karn).
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        let rtt = rtt.clamp(Duration::from_micros(1), Duration::from_secs(60));
        self.latest = rtt;
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
        if self.min.is_none_or(|(min, at)| rtt <= min || now.saturating_duration_since(at) > MIN_WINDOW) {
            self.min = Some((rtt, now));
        }
    }

    /// Another path: nothing is known about it, but it is probably not much different.
    pub fn forget_path(&mut self) {
        self.min = None;
        self.backoff = 0;
    }

    pub fn is_measured(&self) -> bool {
        self.smoothed.is_some()
    }

    pub fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(ASSUMED)
    }

    pub fn variation(&self) -> Duration {
        self.variation
    }

    pub fn min(&self) -> Duration {
        self.min.map_or(self.smoothed(), |(min, _)| min)
    }

    /// When the shortest time was measured.
    pub fn min_at(&self) -> Option<Instant> {
        self.min.map(|(_, at)| at)
    }

    /// 9/8 of what is usual: who has not answered by then, although others have, is lost (S25).
    pub fn loss_delay(&self) -> Duration {
        (self.smoothed().max(self.latest) * 9 / 8).max(Duration::from_millis(2))
    }

    /// The timeout, doubled as often as it passed (S25).
    pub fn rto(&self) -> Duration {
        (self.base_rto() * 2u32.saturating_pow(self.backoff.min(8))).clamp(MIN_RTO, MAX_RTO)
    }

    /// The timeout before it was ever doubled.
    pub fn base_rto(&self) -> Duration {
        let slack = (4 * self.variation).max(SLACK);
        self.smoothed.map_or(INITIAL_RTO, |smoothed| (smoothed + slack).clamp(MIN_RTO, MAX_RTO))
    }

    /// When the answer to a thin stream is overdue: there is no queue that it could stand in, so the timeout needs no
    /// floor of 100 ms.
    pub fn thin_timeout(&self) -> Duration {
        match self.smoothed {
            None => INITIAL_RTO / 2,
            Some(smoothed) => smoothed + (4 * self.variation).max(SLACK),
        }
    }

    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(8);
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
        let (mut rtt, now) = (Rtt::new(), Instant::now());
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
    fn the_shortest_time_is_forgotten_after_a_while() {
        let (mut rtt, now) = (Rtt::new(), Instant::now());
        rtt.sample(now, ms(10));
        rtt.sample(now + ms(5_000), ms(50));
        assert_eq!(rtt.min(), ms(10));
        rtt.sample(now + ms(11_000), ms(50));
        assert_eq!(rtt.min(), ms(50));
    }
}
