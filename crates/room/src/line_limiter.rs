//! Rate limit of lines in a room: enforced by the host, and kept by clients so that none of their lines is refused.

use std::time::{Duration, Instant};

/// Number of lines that a room accepts at once from one guest.
const BURST: u32 = 8;

/// Interval at which it accepts another one.
const INTERVAL: Duration = Duration::from_millis(500);

/// A token bucket for lines.
#[derive(Debug)]
pub struct LineLimiter {
    burst: u32,
    /// When the whole burst is available again.
    full_at: Instant,
}

impl LineLimiter {
    /// The limit that a room enforces for each guest.
    pub fn for_room(now: Instant) -> Self {
        Self { burst: BURST, full_at: now }
    }

    /// The limit that a client keeps: half the burst, so that lines which the network delays and delivers together are still
    /// accepted.
    pub fn for_client(now: Instant) -> Self {
        Self { burst: BURST / 2, full_at: now }
    }

    /// When the next line is allowed; `None` if the clock does not reach that far back.
    pub fn ready_at(&self) -> Option<Instant> {
        self.full_at.checked_sub(INTERVAL * (self.burst - 1))
    }

    /// Whether a line is allowed now.
    pub fn is_ready(&self, now: Instant) -> bool {
        self.ready_at().is_none_or(|at| at <= now)
    }

    /// Counts a line.
    pub fn spend(&mut self, now: Instant) {
        self.full_at = self.full_at.max(now) + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_within_its_limit_is_accepted_however_the_network_bunches_lines() {
        let start = Instant::now();
        let mut room = LineLimiter::for_room(start);
        let mut guest = LineLimiter::for_client(start);
        let mut now = start;
        for _ in 0..100 {
            now = guest.ready_at().map_or(now, |at| at.max(now));
            guest.spend(now);
            // All lines sent within two seconds arrive at the end of them.
            let passed = (now - start).as_secs();
            let arrival = start + Duration::from_secs((passed / 2 + 1) * 2);
            assert!(room.is_ready(arrival), "after {passed} s");
            room.spend(arrival);
        }
        assert_eq!(now - start, INTERVAL * 96, "four at once, and then one per interval");
    }

    #[test]
    fn after_a_burst_one_line_per_interval_is_allowed() {
        let now = Instant::now();
        let mut pace = LineLimiter::for_room(now);
        for _ in 0..BURST {
            assert!(pace.is_ready(now));
            pace.spend(now);
        }
        assert!(!pace.is_ready(now) && !pace.is_ready(now + INTERVAL / 2) && pace.is_ready(now + INTERVAL));
        let later = now + INTERVAL * 1_000;
        assert!(pace.is_ready(later));
    }
}
