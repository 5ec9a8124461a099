//! Retry timers and deadlines.
//!
//! All probes wait equally long for the same thing: after the n-th attempt, and for the deadline. So timers of one kind expire
//! in the order in which they were set, and one queue per kind is enough: setting, finding and removing cost the same for any
//! number of probes. A timer that is no longer valid is skipped when it reaches the front.

use super::active::ProbeIndex;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

#[derive(Debug)]
pub(super) struct Timers {
    queues: Vec<TimerQueue>,
}

/// A reference to a probe that is valid only while the probe has this stamp: as its serial or as its retry stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamped {
    pub probe: ProbeIndex,
    pub stamp: u64,
}

#[derive(Debug)]
struct TimerQueue {
    wait: Duration,
    timers: VecDeque<(Instant, Stamped)>,
}

/// A queue shorter than this is not purged of invalid timers.
const MIN_PURGE: usize = 1_024;

impl Timers {
    /// One queue for each waiting time.
    pub fn new(waits: impl IntoIterator<Item = Duration>) -> Self {
        Self { queues: waits.into_iter().map(|wait| TimerQueue { wait, timers: VecDeque::new() }).collect() }
    }

    /// Sets a timer of this kind. `live` is the number of probes in flight.
    pub fn set(&mut self, kind: usize, now: Instant, probe: Stamped, live: usize, is_live: impl Fn(Stamped) -> bool) {
        let queue = &mut self.queues[kind];
        if queue.timers.len() >= MIN_PURGE.max(4 * live) {
            queue.timers.retain(|(_, probe)| is_live(*probe));
        }
        queue.timers.push_back((now + queue.wait, probe));
    }

    /// Removes and returns an expired timer of this kind.
    pub fn pop_expired(&mut self, kind: usize, now: Instant) -> Option<Stamped> {
        self.queues[kind].timers.pop_front_if(|(at, _)| *at <= now).map(|(_, probe)| probe)
    }

    /// Expiry of the next timer. Exact only right after [`remove_stale`](Self::remove_stale).
    pub fn next_expiry(&self) -> Option<Instant> {
        self.queues.iter().filter_map(|queue| queue.timers.front()).map(|(at, _)| *at).min()
    }

    /// Removes invalid timers from the front of each queue.
    pub fn remove_stale(&mut self, is_live: impl Fn(Stamped) -> bool) {
        for queue in &mut self.queues {
            while queue.timers.pop_front_if(|(_, probe)| !is_live(*probe)).is_some() {}
        }
    }

    pub fn kinds(&self) -> usize {
        self.queues.len()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.timers.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::active::ProbeTable, *};
    use crate::{Probe, Protocol, prober::active::ActiveProbe};

    const MS: Duration = Duration::from_millis(1);

    fn index() -> ProbeIndex {
        let probe = Probe::new(([192, 0, 2, 1], 1).into(), Protocol::Session.info());
        ProbeTable::default().insert(ActiveProbe::new(probe, 1, Instant::now(), None))
    }

    #[test]
    fn timers_of_different_kinds_expire_in_order() {
        let mut timers = Timers::new([10 * MS, 30 * MS]);
        let now = Instant::now();
        let probe = index();
        let stamped = |stamp| Stamped { probe, stamp };
        timers.set(1, now, stamped(1), 1, |_| true);
        timers.set(0, now + MS, stamped(2), 1, |_| true);
        assert_eq!(timers.next_expiry(), Some(now + 11 * MS));
        assert_eq!(timers.pop_expired(0, now + 10 * MS), None);
        assert_eq!(timers.pop_expired(0, now + 11 * MS), Some(stamped(2)));
        assert_eq!(timers.next_expiry(), Some(now + 30 * MS));
        timers.remove_stale(|_| false);
        assert_eq!((timers.next_expiry(), timers.len()), (None, 0));
    }

    #[test]
    fn stale_timers_do_not_accumulate() {
        let mut timers = Timers::new([10 * MS]);
        let now = Instant::now();
        let probe = index();
        for stamp in 0..100_000 {
            // Only the last ten are valid, and none is ever taken.
            timers.set(0, now, Stamped { probe, stamp }, 10, |stamped| stamped.stamp + 10 > stamp);
        }
        assert!(timers.len() <= MIN_PURGE, "{}", timers.len());
    }
}
