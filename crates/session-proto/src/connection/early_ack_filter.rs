//! Which acks come too early to be genuine (W62).
//!
//! Acks are not authenticated, and an ack that is forged right after the transmission would make a path seem shorter than it
//! is: the congestion window would shrink to nothing, and everything sent earlier would count as lost. So an ack that comes
//! much sooner than usual is ignored, until there are several of them, and only if the peer has not acked one of those
//! messages at the usual time as well.

use super::{LoginRtt, ack_effect::RepeatedAck};
use std::time::{Duration, Instant};

/// Part of the usual round-trip time below which an ack is early: 3/4.
const EARLY_SHARE: [u32; 2] = [3, 4];

/// Number of early acks that are believed.
const CONFIRMATIONS: u32 = 8;

/// Time within which they have to come, if others come in between.
const CONFIRMATION_WINDOW: Duration = Duration::from_secs(10);

/// Time for which early acks are ignored after one was found to be forged.
const DISTRUST_PERIOD: Duration = Duration::from_secs(2);

/// Longest usual round-trip time. If a stall of the network makes the first round trip on a path take seconds, genuine acks of the
/// next ones are not ignored for as long.
const MAX_USUAL: Duration = Duration::from_secs(1);

/// Below this nothing is too early: it is shorter than the pauses of the hosts at both ends.
const MIN_FLOOR: Duration = Duration::from_millis(1);

/// Number of messages that are acked again after as long as the login took, from which on the time of the login counts.
const MIN_CONTRADICTIONS: u32 = 4;

/// If that is also this share, a quarter, of all acks that measure something, the first acks are forged from the beginning.
const CONTRADICTED_SHARE: u32 = 4;

/// A round trip takes at most this many times as long as the last attempt of a login that was repeated.
const MAX_REPEATED_LOGIN: u32 = 4;

/// Time for which it counts after the last of them. A path can become shorter while a forger is at work.
const CONTRADICTION_MEMORY: Duration = Duration::from_secs(10);

/// The time below which an ack is early, on a path with this round-trip time.
#[inline]
pub(super) fn early_share(rtt: Duration) -> Duration {
    let [share, whole] = EARLY_SHARE;
    rtt * share / whole
}

/// Knows the usual round-trip time.
#[derive(Debug)]
pub(crate) struct EarlyAckFilter {
    /// The usual round-trip time: an average that follows short ones quickly and long ones slowly, so that on a path with
    /// jitter it is near the minimum. `None` before the first.
    usual: Option<Duration>,
    /// Whether `usual` only says what the login took.
    is_provisional: bool,
    early: Option<EarlyAcks>,
    distrust_until: Option<Instant>,
    /// What the login took; zero on another path.
    login: LoginRtt,
    /// Number of acks that measured something, and of messages acked again after as long as the login took.
    measured: u32,
    contradicted: u32,
    /// Acks are forged from the beginning, and will probably be until this time: a round trip takes as long as the login.
    forged_until: Option<Instant>,
}

/// Early acks that are not trusted yet.
#[derive(Clone, Copy, Debug)]
struct EarlyAcks {
    count: u32,
    since: Instant,
    /// The longest round-trip time among them.
    longest: Duration,
    /// Whether an ack that is not early came in between.
    is_interrupted: bool,
}

impl EarlyAckFilter {
    /// Starts with a part of the time that the login took: the first round trip is often slower than the others.
    pub fn new(login: Option<LoginRtt>) -> Self {
        Self {
            usual: login.map(|login| login.at_least / 8),
            is_provisional: true,
            early: None,
            distrust_until: None,
            login: login.unwrap_or(LoginRtt { at_least: Duration::ZERO, is_exact: false }),
            measured: 0,
            contradicted: 0,
            forged_until: None,
        }
    }

    /// Starts over on a new path.
    pub fn forget_path(&mut self) {
        *self = Self::new(None);
    }

    /// Acks that arrive sooner than this after the transmission are too early. `base` is the delay of the path without a queue.
    ///
    /// A queue that drains brings acks sooner than usual, but not sooner than the path without a queue allows.
    #[inline]
    pub fn floor(&self, now: Instant, base: Duration) -> Duration {
        let floor = early_share(self.usual.unwrap_or_default().min(base));
        let floor = self.login_floor(now).map_or(floor, |login| floor.max(login));
        if floor < MIN_FLOOR { Duration::ZERO } else { floor }
    }

    /// The time that a round trip takes at least, if acks were forged from the beginning.
    #[inline]
    pub fn login_floor(&self, now: Instant) -> Option<Duration> {
        self.forged_until.filter(|until| now < *until).map(|_| early_share(self.login.at_least))
    }

    /// The time that a round trip without a queue takes at most, if the login has measured it. If it was repeated, that is only
    /// probable: without a limit, a forger could make the path seem as long as it likes by acking an old message again.
    pub fn login_ceiling(&self) -> Duration {
        self.login.at_least * if self.login.is_exact { 1 } else { MAX_REPEATED_LOGIN }
    }

    /// An ack arrived that is not too early. `rtt` is the round-trip time of a message that was sent once, without a copy: if a
    /// message was copied, a second ack does not show that the first was forged, so it says nothing about the usual time.
    #[inline]
    pub fn on_ack(&mut self, rtt: Option<Duration>) {
        if let Some(early) = &mut self.early {
            early.is_interrupted = true;
        }
        let Some(rtt) = rtt.map(|rtt| rtt.min(MAX_USUAL)) else { return };
        self.measured = self.measured.saturating_add(1);
        self.usual = Some(match self.usual {
            _ if std::mem::take(&mut self.is_provisional) => rtt,
            None => rtt,
            Some(usual) if rtt < usual => usual - (usual - rtt) / 4,
            Some(usual) => usual + (rtt - usual) / 256,
        });
    }

    /// An ack arrived that is too early.
    #[cold]
    pub fn on_early_ack(&mut self, now: Instant, rtt: Duration) {
        if self.distrust_until.is_some_and(|until| now < until) {
            return;
        }
        let usual = self.usual.unwrap_or_default();
        let first = EarlyAcks { count: 0, since: now, longest: Duration::ZERO, is_interrupted: false };
        let is_valid = |early: &EarlyAcks| !early.is_interrupted || now < early.since + CONFIRMATION_WINDOW;
        let early = self.early.filter(is_valid).unwrap_or(first);
        let early = EarlyAcks { count: early.count + 1, longest: early.longest.max(rtt), ..early };
        // An ack that shows the first of them to be forged has had the time to arrive.
        let is_confirmed = early.count >= CONFIRMATIONS && now >= early.since + usual + usual / 2;
        self.early = Some(early).filter(|_| !is_confirmed);
        if is_confirmed {
            self.usual = Some(early.longest);
        }
    }

    /// A message is acked for the second time, as the first number of an ack, so not as a repetition: one of the acks is
    /// forged. The peer cannot ack before the message arrives, so it is the earlier one. Returns whether that is certain.
    pub fn on_repeated_ack(&mut self, now: Instant, acks: RepeatedAck) -> bool {
        self.compare_with_login(now, acks);
        let usual = self.usual.unwrap_or_default();
        // Acks that overtake each other are a little apart.
        let is_forged = acks.first < acks.second * 7 / 8 && acks.first < usual;
        if is_forged {
            self.early = None;
            self.distrust_until = Some(now + DISTRUST_PERIOD);
            self.usual = Some(usual + acks.second.min(2 * usual).saturating_sub(usual) / 4);
        }
        is_forged
    }

    /// Acks that are forged from the beginning would themselves be the usual ones. So if many messages are acked a second time,
    /// after as long as the login took, that time is what a round trip takes. The login alone may have waited for a frame.
    fn compare_with_login(&mut self, now: Instant, acks: RepeatedAck) {
        let limit = early_share(self.login.at_least);
        if acks.first >= limit || acks.second < limit {
            return;
        }
        self.contradicted = self.contradicted.saturating_add(1);
        if self.contradicted >= MIN_CONTRADICTIONS.max(self.measured / CONTRADICTED_SHARE) {
            self.forged_until = Some(now + CONTRADICTION_MEMORY);
            let expected = acks.second.min(self.login.at_least);
            self.usual = self.usual.map(|usual| usual.max(expected));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A filter that has seen round trips of 50 ms.
    fn filter() -> EarlyAckFilter {
        let mut filter = EarlyAckFilter::new(Some(LoginRtt { at_least: ms(100), is_exact: true }));
        (0..1_000).for_each(|_| filter.on_ack(Some(ms(50))));
        filter
    }

    /// The floor on a path of 50 ms.
    fn floor(filter: &EarlyAckFilter) -> Duration {
        filter.floor(Instant::now(), ms(50))
    }

    #[test]
    fn w62_a_login_limits_how_long_the_path_seems_even_if_it_was_repeated() {
        for (is_exact, ceiling) in [(true, ms(100)), (false, ms(400))] {
            let filter = EarlyAckFilter::new(Some(LoginRtt { at_least: ms(100), is_exact }));
            assert_eq!(filter.login_ceiling(), ceiling);
        }
    }

    #[test]
    fn w62_single_early_acks_are_not_believed() {
        let now = Instant::now();
        let mut filter = filter();
        for second in 0..60 {
            filter.on_early_ack(now + ms(2_000 * second), ms(1));
            assert!(floor(&filter) > ms(35));
            filter.on_ack(Some(ms(49)));
        }
    }

    #[test]
    fn w62_a_first_round_trip_of_seconds_does_not_make_later_ones_early_for_as_long() {
        let mut now = Instant::now();
        let mut filter = EarlyAckFilter::new(None);
        filter.on_ack(Some(ms(5_400)));
        let start = now;
        while filter.floor(now, ms(5_400)) > ms(44) {
            now += ms(16);
            filter.on_early_ack(now, ms(44));
        }
        assert!(now - start < ms(2_000), "{:?}", now - start);
    }

    #[test]
    fn w62_early_acks_are_believed_if_nothing_contradicts_them() {
        let mut now = Instant::now();
        let mut filter = filter();
        for _ in 0..CONFIRMATIONS {
            assert!(floor(&filter) > ms(35));
            now += ms(16);
            filter.on_early_ack(now, ms(20));
        }
        assert_eq!(floor(&filter), ms(15));
    }

    #[test]
    fn w62_early_acks_of_a_slow_stream_are_believed() {
        let now = Instant::now();
        let mut filter = filter();
        (0..CONFIRMATIONS).for_each(|number| filter.on_early_ack(now + ms(2_000) * number, ms(20)));
        assert_eq!(floor(&filter), ms(15));
    }

    #[test]
    fn w62_early_acks_are_not_believed_if_the_messages_are_acked_again() {
        let mut now = Instant::now();
        let mut filter = filter();
        for _ in 0..1_000 {
            now += ms(5);
            filter.on_early_ack(now, ms(1));
            filter.on_repeated_ack(now, RepeatedAck { first: ms(1), second: ms(50) });
            assert!(floor(&filter) > ms(35));
        }
    }

    #[test]
    fn w62_acks_that_are_forged_a_little_too_early_do_not_lower_the_floor_for_long() {
        let now = Instant::now();
        let mut filter = filter();
        for _ in 0..1_000 {
            filter.on_ack(Some(floor(&filter)));
            filter.on_repeated_ack(now, RepeatedAck { first: floor(&filter), second: ms(50) });
            assert!(floor(&filter) > ms(25), "{:?}", floor(&filter));
        }
    }

    #[test]
    fn w62_acks_on_a_path_with_jitter_are_not_too_early() {
        let mut filter = filter();
        let mut early = 0;
        for number in 0..10_000_u64 {
            let rtt = ms(50 + number * 7_919 % 100);
            if rtt < floor(&filter) { early += 1 } else { filter.on_ack(Some(rtt)) }
        }
        assert!(early < 10, "{early} of 10,000");
    }

    #[test]
    fn w62_acks_that_are_forged_from_the_beginning_do_not_become_the_usual_ones() {
        let start = Instant::now();
        let mut filter = EarlyAckFilter::new(Some(LoginRtt { at_least: ms(40), is_exact: true }));
        let mut now = start;
        for _ in 0..1_000 {
            now += ms(10);
            // A forger acks each message a little later than the filter would refuse it, and the peer acks it after 40 ms.
            let forged = filter.floor(now, ms(1)).max(ms(6));
            filter.on_ack(Some(forged));
            filter.on_repeated_ack(now, RepeatedAck { first: forged, second: ms(40) });
        }
        assert!(filter.floor(now, ms(1)) >= ms(30), "{filter:?}");
        // The path becomes shorter.
        assert_eq!(filter.floor(now + CONTRADICTION_MEMORY, ms(1)), Duration::ZERO);
    }

    #[test]
    fn w62_a_login_that_waited_for_a_frame_does_not_make_the_usual_acks_early() {
        let mut now = Instant::now();
        let mut filter = EarlyAckFilter::new(Some(LoginRtt { at_least: ms(30), is_exact: true }));
        for number in 0..1_000 {
            now += ms(10);
            filter.on_ack(Some(ms(10)));
            // One in ten messages is duplicated on the way.
            if number % 10 == 0 {
                filter.on_repeated_ack(now, RepeatedAck { first: ms(10), second: ms(25) });
            }
        }
        assert!(filter.floor(now, ms(10)) <= ms(8), "{filter:?}");
    }
}
