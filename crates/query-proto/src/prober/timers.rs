//! Who has to be looked at, and when.
//!
//! Everybody waits equally long for the same thing: after the n-th question, and for the deadline. So the times of one kind
//! come in the order in which they were set, and a queue for each kind is all that is needed: setting, finding and removing
//! cost the same however many there are. A time that no longer means anything is skipped when it comes to the front.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

#[derive(Debug)]
pub(super) struct Timers {
    queues: Vec<Queue>,
}

/// One that waits: its slot, and a number that is the slot's only as long as this time means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub slot: u32,
    pub stamp: u64,
}

#[derive(Debug)]
struct Queue {
    wait: Duration,
    times: VecDeque<(Instant, Mark)>,
}

/// A queue with less than this is not worth tidying up.
const FEW: usize = 1_024;

impl Timers {
    /// One kind for each of these.
    pub fn new(waits: impl IntoIterator<Item = Duration>) -> Self {
        Self { queues: waits.into_iter().map(|wait| Queue { wait, times: VecDeque::new() }).collect() }
    }

    /// Sets a time of this kind, counted from now.
    pub fn set(&mut self, kind: usize, now: Instant, mark: Mark, live: usize, is_live: impl Fn(Mark) -> bool) {
        let queue = &mut self.queues[kind];
        if queue.times.len() >= FEW.max(4 * live) {
            queue.times.retain(|(_, mark)| is_live(*mark));
        }
        queue.times.push_back((now + queue.wait, mark));
    }

    /// Takes one whose time of this kind has come.
    pub fn take(&mut self, kind: usize, now: Instant) -> Option<Mark> {
        self.queues[kind].times.pop_front_if(|(at, _)| *at <= now).map(|(_, mark)| mark)
    }

    /// When the next time comes, as far as it is known: [`tidy`](Self::tidy) before.
    pub fn next(&self) -> Option<Instant> {
        self.queues.iter().filter_map(|queue| queue.times.front()).map(|(at, _)| *at).min()
    }

    /// Removes what means nothing any more from the front of each queue.
    pub fn tidy(&mut self, is_live: impl Fn(Mark) -> bool) {
        for queue in &mut self.queues {
            while queue.times.pop_front_if(|(_, mark)| !is_live(*mark)).is_some() {}
        }
    }

    pub fn kinds(&self) -> usize {
        self.queues.len()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.times.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn times_of_different_kinds_come_in_their_order() {
        let (mut timers, now) = (Timers::new([10 * MS, 30 * MS]), Instant::now());
        let mark = |stamp| Mark { slot: 0, stamp };
        timers.set(1, now, mark(1), 1, |_| true);
        timers.set(0, now + MS, mark(2), 1, |_| true);
        assert_eq!(timers.next(), Some(now + 11 * MS));
        assert_eq!(timers.take(0, now + 10 * MS), None);
        assert_eq!(timers.take(0, now + 11 * MS), Some(mark(2)));
        assert_eq!(timers.next(), Some(now + 30 * MS));
        timers.tidy(|_| false);
        assert_eq!((timers.next(), timers.len()), (None, 0));
    }

    #[test]
    fn what_means_nothing_any_more_does_not_pile_up() {
        let (mut timers, now) = (Timers::new([10 * MS]), Instant::now());
        for stamp in 0..100_000 {
            // Only the last ten mean something, and nobody ever comes to take one.
            timers.set(0, now, Mark { slot: 0, stamp }, 10, |mark| mark.stamp + 10 > stamp);
        }
        assert!(timers.len() <= FEW, "{}", timers.len());
    }
}
