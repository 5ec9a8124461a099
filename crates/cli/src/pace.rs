//! How fast lines may be said in a room: the measure of its host, and of whoever joins and wants to be heard.

use std::time::{Duration, Instant};

/// So many lines a room hears at once from one guest, and then one in this time.
const BURST: u32 = 8;
const EVERY: Duration = Duration::from_millis(500);

/// How much may be said.
#[derive(Debug)]
pub struct Pace {
    burst: u32,
    /// When as much may be said at once as ever.
    rested_at: Instant,
}

impl Pace {
    /// What a room allows each guest.
    pub fn of_room(now: Instant) -> Self {
        Self { burst: BURST, rested_at: now }
    }

    /// What a guest allows itself: half as much at once, so that lines that the network has held up and delivers together are
    /// heard, too.
    pub fn of_guest(now: Instant) -> Self {
        Self { burst: BURST / 2, rested_at: now }
    }

    /// From when on the next line may be said; nothing if that is long ago.
    pub fn ready_at(&self) -> Option<Instant> {
        self.rested_at.checked_sub(EVERY * (self.burst - 1))
    }

    pub fn is_ready(&self, now: Instant) -> bool {
        self.ready_at().is_none_or(|at| at <= now)
    }

    /// A line is said.
    pub fn spend(&mut self, now: Instant) {
        self.rested_at = self.rested_at.max(now) + EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_the_pace_of_a_guest_is_heard_however_the_network_bunches_lines() {
        let start = Instant::now();
        let (mut room, mut guest) = (Pace::of_room(start), Pace::of_guest(start));
        let mut now = start;
        for _ in 0..100 {
            now = guest.ready_at().map_or(now, |at| at.max(now));
            guest.spend(now);
            // What is said within two seconds arrives at their end.
            let passed = (now - start).as_secs();
            let arrival = start + Duration::from_secs((passed / 2 + 1) * 2);
            assert!(room.is_ready(arrival), "after {passed} s");
            room.spend(arrival);
        }
        assert_eq!(now - start, EVERY * 96, "four at once, and then one each time");
    }

    #[test]
    fn a_burst_is_all_there_is() {
        let now = Instant::now();
        let mut pace = Pace::of_room(now);
        for _ in 0..BURST {
            assert!(pace.is_ready(now));
            pace.spend(now);
        }
        assert!(!pace.is_ready(now) && !pace.is_ready(now + EVERY / 2) && pace.is_ready(now + EVERY));
        let later = now + EVERY * 1_000;
        assert!(pace.is_ready(later));
    }
}
