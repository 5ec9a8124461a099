//! When to look at an entry again: a timing wheel that a refresh never touches.
//!
//! Every entry is in the wheel once. A refresh only writes a new deadline into the entry; when the wheel comes to the
//! entry it is put where its deadline is by then. So a million refreshes a second cost the wheel nothing, and an
//! entry is looked at about once per lease.

use std::time::{Duration, Instant};

/// A point in time, counted in grains since the registry began. 32 bits of a quarter of a second last 34 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(pub u32);

/// How exact deadlines are: an entry goes at most this much later than its lease says.
pub(crate) const GRAIN: Duration = Duration::from_millis(250);

/// How many grains ahead an entry can be put; what is later is looked at then and put again.
const SPAN: usize = 512;

/// At most so many entries are looked at in one go, so that datagrams never wait long behind a full slot.
const PER_TURN: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Wheel {
    began: Instant,
    /// The first tick whose slot has not been emptied.
    at: Tick,
    slots: Vec<Vec<u32>>,
    len: usize,
}

impl Wheel {
    pub(crate) fn new(began: Instant) -> Self {
        Self { began, at: Tick(0), slots: vec![Vec::new(); SPAN], len: 0 }
    }

    /// The tick that has been reached at `now`.
    pub(crate) fn tick(&self, now: Instant) -> Tick {
        let grains = now.saturating_duration_since(self.began).as_millis() / GRAIN.as_millis();
        Tick(u32::try_from(grains).unwrap_or(u32::MAX))
    }

    /// The first tick that is not before `now + after`.
    pub(crate) fn deadline(&self, now: Instant, after: Duration) -> Tick {
        let at = now.saturating_duration_since(self.began).saturating_add(after);
        Tick(u32::try_from(at.as_millis().div_ceil(GRAIN.as_millis())).unwrap_or(u32::MAX))
    }

    /// When a tick is reached.
    pub(crate) fn instant(&self, tick: Tick) -> Instant {
        self.began + GRAIN * tick.0
    }

    /// Puts an entry where it will come up at `deadline`, or earlier if that is far away.
    pub(crate) fn insert(&mut self, slot: u32, deadline: Tick) {
        let ahead = (deadline.0.saturating_sub(self.at.0) as usize).min(SPAN - 1);
        let place = (self.at.0 as usize + ahead) % SPAN;
        self.slots[place].push(slot);
        self.len += 1;
    }

    /// Takes out entries that have come up, a bounded number at a time.
    pub(crate) fn due(&mut self, now: Instant, out: &mut Vec<u32>) {
        let reached = self.tick(now);
        while self.at <= reached {
            let slot = &mut self.slots[self.at.0 as usize % SPAN];
            let take = slot.len().min(PER_TURN - out.len());
            out.extend(slot.drain(slot.len() - take..));
            self.len -= take;
            if !slot.is_empty() {
                return;
            }
            if self.len == 0 {
                self.at = Tick(reached.0.saturating_add(1));
                return;
            }
            self.at.0 += 1;
        }
    }

    /// When [`due`](Self::due) wants to be called.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.len > 0).then(|| self.instant(self.at))
    }
}
