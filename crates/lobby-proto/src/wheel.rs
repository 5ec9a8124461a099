//! A timing wheel for the deadlines of entries, which a refresh never touches.
//!
//! A refresh only writes a new deadline into the entry; when the wheel reaches the entry, it is scheduled again for the
//! deadline that it has by then. So a million refreshes per second cost the wheel nothing, and an entry is visited about once
//! per lease.
//!
//! Entries are identified by their slot, not by their [`EntryKey`](crate::index::EntryKey): a new entry in a slot that is still
//! scheduled is visited a little early, which is harmless.

use crate::index::SlotIndex;
use std::time::{Duration, Instant};

/// A point in time, in units of [`GRAIN`] since the registry was created. 32 bits of a quarter of a second last 34 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u32);

/// Resolution of deadlines: an entry expires at most this much later than its lease ends, and never earlier.
pub(crate) const GRAIN: Duration = Duration::from_millis(250);

/// Number of rows: how many ticks ahead an entry can be scheduled. A later deadline is visited then and scheduled again.
const ROWS: usize = 512;

/// Maximum number of slots taken by one call, so that datagrams never wait long behind a full row.
const MAX_PER_CALL: usize = 1_024;

/// Capacity beyond which the memory of a row that has been emptied is released: few rows are ever this full.
const MAX_KEPT_CAPACITY: usize = 4_096;

/// The tick of a slot that is not scheduled.
const NEVER: Tick = Tick(u32::MAX);

/// The relation between instants and ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub const fn new(start: Instant) -> Self {
        Self { start }
    }

    /// The last tick that has been reached at `now`.
    pub fn tick(self, now: Instant) -> Tick {
        Tick::from_grains(nanoseconds(now.saturating_duration_since(self.start)) / GRAIN_NS)
    }

    /// The first tick that is not before `now + after`.
    #[inline]
    pub fn deadline(self, now: Instant, after: Duration) -> Tick {
        let at = now.saturating_duration_since(self.start).saturating_add(after);
        Tick::from_grains(nanoseconds(at).div_ceil(GRAIN_NS))
    }

    /// When a tick is reached.
    pub fn instant(self, tick: Tick) -> Instant {
        self.start + GRAIN * tick.0
    }
}

#[derive(Debug)]
pub(crate) struct TimerWheel {
    clock: Clock,
    /// The first tick whose row has not been emptied.
    current: Tick,
    rows: Vec<Vec<SlotIndex>>,
    /// By slot: the tick at which it is due. A slot found in the row of another tick was rescheduled to an earlier one.
    scheduled: Vec<Tick>,
    /// Number of slots in all rows.
    len: usize,
}

impl TimerWheel {
    pub fn new(clock: Clock) -> Self {
        Self { clock, current: Tick(0), rows: vec![Vec::new(); ROWS], scheduled: Vec::new(), len: 0 }
    }

    /// Makes a slot due at `deadline` at the latest.
    pub fn schedule(&mut self, slot: SlotIndex, deadline: Tick) {
        if slot.get() >= self.scheduled.len() {
            self.scheduled.resize(slot.get() + 1, NEVER);
        }
        let ahead = deadline.0.saturating_sub(self.current.0).min(ROWS as u32 - 1);
        let tick = Tick(self.current.0.saturating_add(ahead));
        let scheduled = &mut self.scheduled[slot.get()];
        if *scheduled <= tick {
            return;
        }
        *scheduled = tick;
        self.rows[tick.row()].push(slot);
        self.len += 1;
    }

    /// Takes slots that are due, at most [`MAX_PER_CALL`] of them.
    pub fn take_due(&mut self, now: Instant) -> Vec<SlotIndex> {
        let mut out = Vec::new();
        let reached = self.clock.tick(now);
        let mut left = MAX_PER_CALL;
        while self.current <= reached {
            let row = &mut self.rows[self.current.row()];
            let take = row.len().min(left);
            for slot in row.drain(row.len() - take..) {
                let scheduled = &mut self.scheduled[slot.get()];
                if *scheduled == self.current {
                    *scheduled = NEVER;
                    out.push(slot);
                }
            }
            left -= take;
            self.len -= take;
            if !row.is_empty() {
                break;
            }
            if row.capacity() > MAX_KEPT_CAPACITY {
                *row = Vec::new();
            }
            if self.len == 0 {
                self.current = Tick(reached.0.saturating_add(1));
                break;
            }
            self.current.0 += 1;
        }
        out
    }

    /// When [`take_due`](Self::take_due) should be called next.
    pub fn next(&self) -> Option<Instant> {
        (self.len > 0).then(|| self.clock.instant(self.current))
    }

    /// Whether a slot is due by `deadline`, or with the next tick if that has passed.
    #[cfg(any(test, feature = "invariants"))]
    pub fn is_due_by(&self, slot: SlotIndex, deadline: Tick) -> bool {
        self.scheduled.get(slot.get()).is_some_and(|&tick| tick <= deadline.max(self.current))
    }
}

impl Tick {
    /// The first tick that is not before this one plus `time`.
    pub fn plus(self, time: Duration) -> Self {
        Self::from_grains(u64::from(self.0) + nanoseconds(time).div_ceil(GRAIN_NS))
    }

    /// The tick that is `time` before this one, or the first one.
    pub fn minus(self, time: Duration) -> Self {
        let grains = u32::try_from(nanoseconds(time).div_ceil(GRAIN_NS)).unwrap_or(u32::MAX);
        Self(self.0.saturating_sub(grains))
    }

    /// Number of ticks since an earlier one; zero if it is later.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// The tick with this number, at most the last one before [`NEVER`].
    #[inline]
    fn from_grains(grains: u64) -> Self {
        Self(u32::try_from(grains).unwrap_or(u32::MAX).min(NEVER.0 - 1))
    }

    fn row(self) -> usize {
        self.0 as usize % ROWS
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

    fn due(wheel: &mut TimerWheel, now: Instant) -> Vec<usize> {
        wheel.take_due(now).into_iter().map(SlotIndex::get).collect()
    }

    #[test]
    fn a_deadline_is_never_early_and_at_most_a_grain_late() {
        let start = Instant::now();
        let clock = Clock::new(start);
        for ns in [0, 1, 999_999, 249_999_999, 250_000_000, 250_000_001, 1_000_000_007] {
            let end = start + Duration::from_nanos(ns) + Duration::from_secs(70);
            let tick = clock.deadline(start + Duration::from_nanos(ns), Duration::from_secs(70));
            assert!(clock.instant(tick) >= end && clock.instant(tick) < end + GRAIN, "{ns}");
            assert!(clock.tick(end) <= tick);
            assert_eq!(clock.tick(clock.instant(tick)), tick);
        }
    }

    #[test]
    fn a_slot_is_due_once_at_its_earliest_deadline() {
        let start = Instant::now();
        let mut wheel = TimerWheel::new(Clock::new(start));
        let slot = SlotIndex::new(3);
        wheel.schedule(slot, Tick(10));
        wheel.schedule(slot, Tick(12));
        wheel.schedule(slot, Tick(5));
        assert_eq!(due(&mut wheel, start + GRAIN * 4), [0; 0]);
        assert_eq!(due(&mut wheel, start + GRAIN * 5), [3]);
        assert_eq!(due(&mut wheel, start + GRAIN * 20), [0; 0]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn far_deadlines_are_due_early_and_can_be_rescheduled() {
        let start = Instant::now();
        let mut wheel = TimerWheel::new(Clock::new(start));
        let slot = SlotIndex::new(1);
        wheel.schedule(slot, Tick(100_000));
        assert!(wheel.is_due_by(slot, Tick(ROWS as u32)));
        assert_eq!(due(&mut wheel, start + GRAIN * 100_000), [1]);
        wheel.schedule(slot, Tick(100_004));
        assert_eq!(due(&mut wheel, start + GRAIN * 100_003), [0; 0]);
        assert_eq!(due(&mut wheel, start + GRAIN * 100_004), [1]);
    }

    #[test]
    fn a_full_row_takes_several_calls() {
        let start = Instant::now();
        let mut wheel = TimerWheel::new(Clock::new(start));
        (0..MAX_PER_CALL + 7).for_each(|slot| wheel.schedule(SlotIndex::new(slot), Tick(1)));
        assert_eq!(due(&mut wheel, start + GRAIN).len(), MAX_PER_CALL);
        assert_eq!(wheel.next(), Some(start + GRAIN), "the rest is due at once");
        assert_eq!(due(&mut wheel, start + GRAIN).len(), 7);
    }
}
