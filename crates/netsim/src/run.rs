//! Virtual time: which event is next, and how far to run.

use crate::{Network, Node, NodeId};
use rallypoint_machine::Machine;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// Maximum number of events at one instant. More than that happen only if machines answer each other forever over a link
/// without delay.
const MAX_EVENTS_PER_INSTANT: u32 = 1_000_000;

type ScheduledAction = Box<dyn FnOnce(&mut Network)>;

/// Scheduled events, apart from datagrams in flight.
#[derive(Default)]
pub(crate) struct Schedule {
    /// Timers of the nodes, at most one per node.
    pub(crate) wakes: BTreeSet<(Instant, NodeId)>,
    /// Changes that the test has scheduled, ordered by time and then by order of scheduling.
    actions: BTreeMap<(Instant, u64), ScheduledAction>,
    action_count: u64,
    /// Number of events at the current instant.
    events_at_now: u32,
}

/// Time.
impl Network {
    /// Schedules a change of the network (or a command, or an injection) for a time; a time in the past means at once.
    pub fn schedule_at(&mut self, at: Instant, action: impl FnOnce(&mut Self) + 'static) {
        let action: ScheduledAction = Box::new(action);
        let number = self.schedule.action_count;
        self.schedule.actions.insert((at.max(self.now), number), action);
        self.schedule.action_count += 1;
    }

    /// Schedules a change of the network after a delay.
    pub fn schedule_in(&mut self, delay: Duration, action: impl FnOnce(&mut Self) + 'static) {
        self.schedule_at(self.in_future(delay), action);
    }

    /// Runs all events up to and including this time, and sets the clock to it.
    pub fn run_until(&mut self, end: Instant) {
        while self.step_until(end) {}
        self.set_clock(end);
    }

    /// Runs for this long.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.in_future(time));
    }

    /// Runs until nothing is in flight, no node has a timer, and nothing is scheduled. Returns false if that does not happen
    /// within the limit. Machines with keepalives are never idle.
    pub fn run_until_idle(&mut self, limit: Duration) -> bool {
        self.run_while(limit, |net| net.next_at().is_some())
    }

    /// Runs, one event at a time, while the condition is true. Returns false if it still is at the limit.
    pub fn run_while(&mut self, limit: Duration, mut condition: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.in_future(limit);
        while condition(self) {
            if !self.step_until(end) {
                self.set_clock(end);
                return !condition(self);
            }
        }
        true
    }

    /// Runs until this machine has an event, and takes it. Returns `None` if it has none within the limit.
    pub fn wait_event<M: Machine + 'static>(&mut self, node: Node<M>, limit: Duration) -> Option<(Instant, M::Event)> {
        let mut event = None;
        self.run_while(limit, |net| {
            event = net.take_event(node);
            event.is_none()
        });
        event
    }

    /// Runs the next event: one scheduled change, one arrival or one wake-up. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        self.next_at().is_some_and(|at| self.step_until(at))
    }

    /// Time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let action = self.schedule.actions.first_key_value().map(|((at, _), _)| *at);
        let wake = self.schedule.wakes.first().map(|(at, _)| *at);
        [action, self.in_flight.next_at(), wake].into_iter().flatten().min()
    }

    /// Runs the next event if it is not after `end`. At the same instant: scheduled changes, then arrivals, then wake-ups.
    fn step_until(&mut self, end: Instant) -> bool {
        let Some(at) = self.next_at().filter(|at| *at <= end) else {
            return false;
        };
        self.set_clock(at);
        self.schedule.events_at_now += 1;
        let is_stuck = self.schedule.events_at_now > MAX_EVENTS_PER_INSTANT;
        if let Some(entry) = self.schedule.actions.first_entry()
            && entry.key().0 <= at
        {
            assert!(
                !is_stuck,
                "time stands still at {:?}: one scheduled change after another at the same instant",
                self.elapsed()
            );
            entry.remove()(self);
        } else if self.in_flight.next_at().is_some_and(|next| next <= at) {
            assert!(!is_stuck, "time stands still at {:?}: {}", self.elapsed(), self.in_flight.describe_next());
            self.deliver();
        } else if let Some((_, node)) = self.schedule.wakes.pop_first() {
            assert!(!is_stuck, "time stands still at {:?}: wake-ups, now of {}", self.elapsed(), self.name(node));
            self.wake(node);
        }
        true
    }

    /// The time after this delay, but at most a hundred years ahead: so `Duration::MAX` can stand for no limit.
    fn in_future(&self, delay: Duration) -> Instant {
        self.now + delay.min(Duration::from_secs(100 * 365 * 86_400))
    }

    fn set_clock(&mut self, at: Instant) {
        if at > self.now {
            self.now = at;
            self.schedule.events_at_now = 0;
        }
    }
}
