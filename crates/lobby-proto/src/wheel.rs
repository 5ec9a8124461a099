//! When to look at an entry again: a timing wheel that a refresh never touches.
//!
//! A refresh only writes a new deadline into the entry; when the wheel comes to the entry it is put where its deadline is by
//! then. So a million refreshes a second cost the wheel nothing, and an entry is looked at about once per lease.
//!
//! Entries are named by their slot. The wheel does not care who lives there: whoever moves in while the slot is still in the
//! wheel is looked at a little early, which is harmless.

use std::time::{Duration, Instant};

/// A point in time, counted in grains since the registry began. 32 bits of a quarter of a second last 34 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(pub u32);

/// How exact deadlines are: an entry goes at most this much later than its lease says, and never earlier.
pub(crate) const GRAIN: Duration = Duration::from_millis(250);

/// How many grains ahead an entry can be put; what is later is looked at then and put again.
const SPAN: usize = 512;

/// At most so many entries are looked at in one go, so that datagrams never wait long behind a full row.
const PER_TURN: usize = 1_024;

/// More than so many rarely come up at once: the memory for them is not kept.
const MUCH: usize = 4_096;

/// Where a slot is that is not in the wheel.
const NOWHERE: Tick = Tick(u32::MAX);

#[derive(Debug)]
pub(crate) struct Wheel {
    began: Instant,
    /// The first tick whose row has not been emptied.
    at: Tick,
    rows: Vec<Vec<u32>>,
    /// The tick at which each slot comes up. What is found in any other row was put there before it was needed earlier.
    scheduled: Vec<Tick>,
    len: usize,
}

impl Wheel {
    pub fn new(began: Instant) -> Self {
        Self { began, at: Tick(0), rows: vec![Vec::new(); SPAN], scheduled: Vec::new(), len: 0 }
    }

    /// The tick that has been reached at `now`.
    pub fn tick(&self, now: Instant) -> Tick {
        Tick::after(nanoseconds(now.saturating_duration_since(self.began)) / GRAIN_NS)
    }

    /// The first tick that is not before `now + after`.
    #[inline]
    pub fn deadline(&self, now: Instant, after: Duration) -> Tick {
        let at = now.saturating_duration_since(self.began).saturating_add(after);
        Tick::after(nanoseconds(at).div_ceil(GRAIN_NS))
    }

    /// When a tick is reached.
    pub fn instant(&self, tick: Tick) -> Instant {
        self.began + GRAIN * tick.0
    }

    /// Makes a slot come up at `deadline` at the latest.
    pub fn schedule(&mut self, slot: u32, deadline: Tick) {
        let index = slot as usize;
        if index >= self.scheduled.len() {
            self.scheduled.resize(index + 1, NOWHERE);
        }
        let ahead = deadline.0.saturating_sub(self.at.0).min(SPAN as u32 - 1);
        let tick = Tick(self.at.0.saturating_add(ahead));
        if self.scheduled[index] <= tick {
            return;
        }
        self.scheduled[index] = tick;
        self.rows[tick.0 as usize % SPAN].push(slot);
        self.len += 1;
    }

    /// Takes out slots that have come up, a bounded number at a time.
    pub fn due(&mut self, now: Instant, out: &mut Vec<u32>) {
        let reached = self.tick(now);
        let mut left = PER_TURN;
        while self.at <= reached {
            let row = &mut self.rows[self.at.0 as usize % SPAN];
            let take = row.len().min(left);
            for slot in row.drain(row.len() - take..) {
                if self.scheduled[slot as usize] == self.at {
                    self.scheduled[slot as usize] = NOWHERE;
                    out.push(slot);
                }
            }
            left -= take;
            self.len -= take;
            if !row.is_empty() {
                return;
            }
            if row.capacity() > MUCH {
                *row = Vec::new();
            }
            if self.len == 0 {
                self.at = Tick(reached.0.saturating_add(1));
                return;
            }
            self.at.0 += 1;
        }
    }

    /// When [`due`](Self::due) wants to be called.
    pub fn next(&self) -> Option<Instant> {
        (self.len > 0).then(|| self.instant(self.at))
    }

    /// Whether a slot comes up by then, or next if that has passed.
    pub fn comes_up_by(&self, slot: u32, deadline: Tick) -> bool {
        self.scheduled.get(slot as usize).is_some_and(|&tick| tick <= deadline.max(self.at))
    }
}

impl Tick {
    /// The first tick that is so much later.
    pub fn plus(self, time: Duration) -> Self {
        Self::after(u64::from(self.0) + nanoseconds(time).div_ceil(GRAIN_NS))
    }

    /// So many grains after the beginning; [`NOWHERE`] is never reached.
    #[inline]
    fn after(grains: u64) -> Self {
        Self(u32::try_from(grains).unwrap_or(u32::MAX).min(NOWHERE.0 - 1))
    }
}

const GRAIN_NS: u64 = GRAIN.as_nanos() as u64;

/// In 64 bits, which divide faster than the 128 of `as_nanos`, and last 584 years.
#[inline]
fn nanoseconds(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(wheel: &mut Wheel, now: Instant) -> Vec<u32> {
        let mut out = Vec::new();
        wheel.due(now, &mut out);
        out
    }

    #[test]
    fn a_deadline_is_never_early_and_at_most_a_grain_late() {
        let began = Instant::now();
        let wheel = Wheel::new(began);
        for ns in [0, 1, 999_999, 249_999_999, 250_000_000, 250_000_001, 1_000_000_007] {
            let end = began + Duration::from_nanos(ns) + Duration::from_secs(70);
            let tick = wheel.deadline(began + Duration::from_nanos(ns), Duration::from_secs(70));
            assert!(wheel.instant(tick) >= end && wheel.instant(tick) < end + GRAIN, "{ns}");
            assert!(wheel.tick(end) <= tick);
            assert_eq!(wheel.tick(wheel.instant(tick)), tick);
        }
    }

    #[test]
    fn a_slot_comes_up_once_at_the_earliest_time_it_was_wanted() {
        let began = Instant::now();
        let mut wheel = Wheel::new(began);
        wheel.schedule(3, Tick(10));
        wheel.schedule(3, Tick(12));
        wheel.schedule(3, Tick(5));
        assert_eq!(due(&mut wheel, began + GRAIN * 4), [0u32; 0]);
        assert_eq!(due(&mut wheel, began + GRAIN * 5), [3]);
        assert_eq!(due(&mut wheel, began + GRAIN * 20), [0u32; 0]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn far_deadlines_come_up_early_and_can_be_put_again() {
        let began = Instant::now();
        let mut wheel = Wheel::new(began);
        wheel.schedule(1, Tick(100_000));
        assert!(wheel.comes_up_by(1, Tick(SPAN as u32)));
        assert_eq!(due(&mut wheel, began + GRAIN * 100_000), [1]);
        wheel.schedule(1, Tick(100_004));
        assert_eq!(due(&mut wheel, began + GRAIN * 100_003), [0u32; 0]);
        assert_eq!(due(&mut wheel, began + GRAIN * 100_004), [1]);
    }

    #[test]
    fn a_full_row_takes_several_turns() {
        let began = Instant::now();
        let mut wheel = Wheel::new(began);
        (0..PER_TURN as u32 + 7).for_each(|slot| wheel.schedule(slot, Tick(1)));
        assert_eq!(due(&mut wheel, began + GRAIN).len(), PER_TURN);
        assert_eq!(wheel.next(), Some(began + GRAIN), "and wants to go on at once");
        assert_eq!(due(&mut wheel, began + GRAIN).len(), 7);
    }
}
