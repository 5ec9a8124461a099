//! Time: what happens next, and how far to go.

use crate::{Network, Node, network::Plan};
use rallypoint_machine::Machine;
use std::time::{Duration, Instant};

/// More than any test lets happen at one instant; machines that answer each other over a link without delay do.
const MOST_AT_ONE_INSTANT: u32 = 1_000_000;

/// Time.
impl Network {
    /// Plans any change of the network (or a command, or an injection) for a time; what is in the past happens at once.
    pub fn at(&mut self, at: Instant, plan: impl FnOnce(&mut Self) + 'static) {
        let plan: Plan = Box::new(plan);
        self.plans.insert((at.max(self.now), self.planned), plan);
        self.planned += 1;
    }

    /// Plans any change of the network for so much later.
    pub fn after(&mut self, delay: Duration, plan: impl FnOnce(&mut Self) + 'static) {
        self.at(self.in_future(delay), plan);
    }

    /// Lets everything happen that happens until then, and sets the clock to it.
    pub fn run_until(&mut self, end: Instant) {
        while self.step_until(end) {}
        self.set_clock(end);
    }

    /// Lets so much time go by.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.in_future(time));
    }

    /// Runs until nothing is on the way, nobody wants to be woken and nothing is planned. False if that is not so within the
    /// limit. Machines with keepalives never come to rest.
    pub fn run_until_idle(&mut self, limit: Duration) -> bool {
        self.run_while(limit, |net| net.next_at().is_some())
    }

    /// Runs, one thing that happens at a time, as long as the condition is true. False if it still is at the limit.
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

    /// Runs until this machine has told its owner something, and takes it. None if it has not within the limit.
    pub fn wait_event<M: Machine + 'static>(&mut self, node: Node<M>, limit: Duration) -> Option<(Instant, M::Event)> {
        let mut event = None;
        self.run_while(limit, |net| {
            event = net.take_event(node);
            event.is_none()
        });
        event
    }

    /// Lets the next thing happen: one planned change, one datagram or one wake-up. False if there is nothing.
    pub fn step(&mut self) -> bool {
        self.next_at().is_some_and(|at| self.step_until(at))
    }

    /// When the next thing happens.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let plan = self.plans.first_key_value().map(|((at, _), _)| *at);
        let wake = self.wakes.first().map(|(at, _)| *at);
        [plan, self.flight.next_at(), wake].into_iter().flatten().min()
    }

    /// Lets the next thing happen if it is not after `end`. At the same instant: plans, then datagrams, then wake-ups.
    fn step_until(&mut self, end: Instant) -> bool {
        let Some(at) = self.next_at().filter(|at| *at <= end) else {
            return false;
        };
        self.set_clock(at);
        self.at_this_instant += 1;
        let stuck = self.at_this_instant > MOST_AT_ONE_INSTANT;
        if let Some(entry) = self.plans.first_entry()
            && entry.key().0 <= at
        {
            assert!(!stuck, "the time stands still at {:?}: plan after plan for the same instant", self.elapsed());
            entry.remove()(self);
        } else if self.flight.next_at().is_some_and(|next| next <= at) {
            assert!(!stuck, "the time stands still at {:?}: {}", self.elapsed(), self.flight.next_name());
            self.deliver();
        } else if let Some((_, node)) = self.wakes.pop_first() {
            assert!(!stuck, "the time stands still at {:?}: wake-ups, now of {}", self.elapsed(), self.name(node));
            self.wake(node);
        }
        true
    }

    /// So much later, or a hundred years later: then `Duration::MAX` can stand for no limit.
    fn in_future(&self, delay: Duration) -> Instant {
        self.now + delay.min(Duration::from_secs(100 * 365 * 86_400))
    }

    fn set_clock(&mut self, at: Instant) {
        if at > self.now {
            self.now = at;
            self.at_this_instant = 0;
        }
    }
}
