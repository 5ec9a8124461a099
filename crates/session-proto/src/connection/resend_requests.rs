//! Which missing messages are requested, when, and within which budget (S25, W60).
//!
//! One message with a number far ahead makes thousands of numbers missing, and its sender may never send them. So only the
//! oldest few are requested, each time after twice as long, and requests never take more than twice what the peer has sent
//! since the window last advanced. That costs an honest peer nothing: it learns from acks what was lost, and requests only
//! cover the cases in which acks do not tell.

use rallypoint_wire::session::{MAX_NUMBERS, MessageNumber, NumberListBuf};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Number of missing messages that are requested at a time, as long as no request has been answered.
const MIN_TRACKED: usize = 8;

/// Smallest interval between requests, and smallest time for which a number has to be missing before it is requested: on long
/// paths that is an eighth of the round-trip time (S25).
pub(crate) const REQUEST_DELAY: Duration = Duration::from_millis(10);

/// Maximum number of times that the interval of the requests for a number is doubled.
const MAX_DOUBLINGS: u32 = 6;

/// Bytes and datagrams of requests for each byte and datagram that was received.
const REQUEST_RATIO: usize = 2;

/// Bytes of a request without numbers.
const HEADER: usize = 2;

/// Bytes of a number in a request.
const NUMBER: usize = 8;

/// A missing number.
#[derive(Clone, Copy, Debug)]
struct Hole {
    number: MessageNumber,
    request_at: Instant,
    /// Number of requests.
    requests: u32,
}

/// The oldest missing numbers and the budget of their requests.
#[derive(Debug)]
pub(crate) struct ResendRequests {
    /// The tracked holes, oldest number first.
    holes: VecDeque<Hole>,
    /// Maximum number of tracked holes. Grows while requests are answered, from [`MIN_TRACKED`] to [`MAX_NUMBERS`].
    max_tracked: usize,
    /// All holes before this number are tracked.
    tracked_to: MessageNumber,
    /// Bytes and datagrams that requests may still take before the window advances.
    bytes: usize,
    datagrams: usize,
    /// When the next request may be sent.
    next_at: Option<Instant>,
    /// Time after which a number is requested for the second time, and whether one has been.
    retry_after: Duration,
    is_backed_off: bool,
}

impl ResendRequests {
    pub fn new(first: MessageNumber) -> Self {
        Self {
            holes: VecDeque::new(),
            max_tracked: MIN_TRACKED,
            tracked_to: first,
            bytes: 0,
            datagrams: 0,
            next_at: None,
            retry_after: REQUEST_DELAY,
            is_backed_off: false,
        }
    }

    /// A new message arrived in a datagram of this length, and may have filled a hole.
    #[inline]
    pub fn on_message(&mut self, now: Instant, number: MessageNumber, length: usize, has_advanced: bool) {
        if has_advanced {
            self.bytes = 0;
            self.datagrams = 0;
            if self.is_backed_off {
                self.reset_backoff(now);
            }
        }
        self.bytes += REQUEST_RATIO * length;
        self.datagrams += REQUEST_RATIO;
        if !self.holes.is_empty() {
            self.fill(number);
        }
    }

    /// A message that is not stored arrived in a datagram of this length.
    pub fn on_dropped(&mut self, length: usize) {
        self.bytes += REQUEST_RATIO * length;
        self.datagrams += REQUEST_RATIO;
    }

    /// Nothing is missing.
    #[inline]
    pub fn clear(&mut self, next: MessageNumber) {
        self.holes.clear();
        self.tracked_to = next;
    }

    /// Looks for further holes among the numbers from `base` to `end`; they are requested at `request_at`.
    pub fn track(
        &mut self,
        base: MessageNumber,
        end: MessageNumber,
        request_at: Instant,
        is_missing: impl Fn(MessageNumber) -> bool,
    ) {
        if self.tracked_to.is_before(base) {
            self.tracked_to = base;
        }
        while self.holes.len() < self.max_tracked && self.tracked_to.is_before(end) {
            if is_missing(self.tracked_to) {
                self.holes.push_back(Hole { number: self.tracked_to, request_at, requests: 0 });
            }
            self.tracked_to = self.tracked_to.next();
        }
    }

    /// When the next request has to be sent.
    pub fn due(&self) -> Option<Instant> {
        if self.holes.is_empty() || !self.has_budget() {
            return None;
        }
        let hole = self.holes.iter().map(|hole| hole.request_at).min()?;
        Some(self.next_at.map_or(hole, |at| at.max(hole)))
    }

    /// Adds the numbers that are due to a request.
    pub fn emit(&mut self, now: Instant, rtt: Duration, list: &mut NumberListBuf) {
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        let retry_after = rtt * 5 / 4 + REQUEST_DELAY;
        let mut room = (self.bytes - HEADER) / NUMBER;
        let mut is_repeated = false;
        for hole in self.holes.iter_mut().filter(|hole| hole.request_at <= now) {
            if room == 0 || !list.push(hole.number) {
                break;
            }
            room -= 1;
            is_repeated |= hole.requests > 0;
            hole.request_at = now + retry_after * (1 << hole.requests.min(MAX_DOUBLINGS));
            hole.requests += 1;
        }
        self.retry_after = retry_after;
        if is_repeated {
            self.is_backed_off = true;
            self.max_tracked = (self.max_tracked / 2).max(MIN_TRACKED);
        }
        self.bytes = self.bytes.saturating_sub(HEADER + NUMBER * list.as_list().len());
        self.datagrams -= 1;
        self.next_at = Some(now + REQUEST_DELAY);
    }

    /// The window has advanced, so requests are answered: the intervals start over.
    #[cold]
    fn reset_backoff(&mut self, now: Instant) {
        self.is_backed_off = false;
        let retry_at = now + self.retry_after;
        for hole in self.holes.iter_mut().filter(|hole| hole.requests > 1) {
            hole.requests = 1;
            hole.request_at = hole.request_at.min(retry_at);
        }
    }

    fn has_budget(&self) -> bool {
        self.bytes >= HEADER + NUMBER && self.datagrams > 0
    }

    /// A number has arrived.
    fn fill(&mut self, number: MessageNumber) {
        let Some(position) = self.holes.iter().position(|hole| hole.number == number) else { return };
        if let Some(hole) = self.holes.remove(position)
            && hole.requests > 0
        {
            self.max_tracked = (self.max_tracked + 1).min(MAX_NUMBERS);
        }
    }
}

/// The time for which a number has to be missing before it is requested.
pub(crate) fn request_delay(rtt: Duration) -> Duration {
    REQUEST_DELAY.max(rtt / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Everything from 1 on is missing up to `end`, and one datagram of `length` bytes was received.
    fn missing(now: Instant, end: u32, length: usize) -> ResendRequests {
        let mut requests = ResendRequests::new(MessageNumber::new(1));
        requests.on_message(now, MessageNumber::new(end), length, false);
        requests.track(MessageNumber::new(1), MessageNumber::new(end), now + REQUEST_DELAY, |_| true);
        requests
    }

    fn emit(requests: &mut ResendRequests, now: Instant) -> Vec<u32> {
        let mut list = NumberListBuf::new();
        requests.emit(now, RTT, &mut list);
        list.as_list().iter().map(MessageNumber::get).collect()
    }

    #[test]
    fn w60_only_the_oldest_numbers_are_requested_and_each_time_after_twice_as_long() {
        let start = Instant::now();
        let mut requests = missing(start, 4_000, 500);
        assert!(emit(&mut requests, start).is_empty(), "not missing for long enough");
        let mut times = Vec::new();
        while let Some(due) = requests.due().filter(|_| times.len() < 5) {
            assert_eq!(emit(&mut requests, due), (1..=8).collect::<Vec<_>>());
            times.push(due - start);
        }
        // 5/4 RTT and 10 ms, then twice that; the budget of two datagrams ends it.
        assert_eq!(times, [ms(10), ms(10 + 60)]);
    }

    #[test]
    fn w60_requests_take_at_most_twice_the_bytes_received_since_the_window_advanced() {
        let start = Instant::now();
        let mut requests = missing(start, 4_000, 12);
        assert_eq!(emit(&mut requests, start + ms(10)), [1, 2], "24 bytes");
        assert_eq!(requests.due(), None);
        requests.on_message(start, MessageNumber::new(4_001), 12, false);
        assert_eq!(emit(&mut requests, start + ms(500)), [1, 2, 3], "24 bytes more, and 6 that were left");
        // The window advances: what was received before no longer counts.
        requests.on_message(start, MessageNumber::new(4_002), 500, false);
        requests.on_message(start, MessageNumber::new(1), 11, true);
        assert_eq!(emit(&mut requests, start + ms(600)), [2, 3]);
        assert_eq!(requests.due(), None);
    }

    #[test]
    fn w60_more_numbers_are_requested_while_requests_are_answered() {
        let mut now = Instant::now();
        let mut requests = missing(now, 1_000, 500);
        let mut largest = 0;
        for _ in 0..100 {
            now = requests.due().unwrap_or(now) + ms(1);
            let requested = emit(&mut requests, now);
            largest = largest.max(requested.len());
            for number in requested {
                requests.on_message(now, MessageNumber::new(number), 500, true);
                requests.track(MessageNumber::new(1), MessageNumber::new(1_000), now + REQUEST_DELAY, |_| true);
            }
        }
        assert_eq!(largest, MAX_NUMBERS);
        assert!(requests.holes.is_empty() && requests.due().is_none());
    }
}
