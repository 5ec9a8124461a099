//! Publishing: when changes become visible, and the events about them.

use super::{Event, Registry};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Minimum interval between two publications: a hundred changes at once cost as much as one.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Publishing copies what has changed, at some gigabytes per second. The pause after it grows with this amount of work, so
/// that publishing takes a few percent of the time at most, however many servers there are and however often they change.
const BYTES_PER_MILLISECOND: usize = 100_000;

/// Capacity of the event queue, in events and in bytes: a change keeps the data of its server in memory. The oldest changes are
/// dropped beyond it.
const MAX_EVENTS: usize = 65_536;
const MAX_EVENT_BYTES: usize = 16 << 20;

/// When the lists are published next.
#[derive(Debug, Default)]
pub(super) struct PublishTimer {
    at: Option<Instant>,
    /// The end of the pause after the last publication.
    not_before: Option<Instant>,
}

impl PublishTimer {
    pub fn at(&self) -> Option<Instant> {
        self.at
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| at <= now)
    }

    /// Schedules a publication as soon as the pause has ended, unless one is scheduled.
    fn schedule(&mut self, now: Instant) {
        if self.at.is_none() {
            self.at = Some(self.not_before.map_or(now, |earliest| earliest.max(now)));
        }
    }

    /// Begins the pause after a publication that was this much work, in bytes.
    fn pause(&mut self, now: Instant, work: usize, is_complete: bool) {
        let next = now + MIN_INTERVAL + Duration::from_millis((work / BYTES_PER_MILLISECOND) as u64);
        self.at = (!is_complete).then_some(next);
        self.not_before = Some(next);
    }
}

/// Events that the owner has not polled yet.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    queue: VecDeque<Event>,
    /// Memory that the queued events keep in use.
    bytes: usize,
    /// Number of events that were dropped because the queue was full.
    pub dropped: u64,
}

impl EventQueue {
    pub fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front()?;
        self.bytes -= event.memory();
        Some(event)
    }

    fn push(&mut self, event: Event) {
        self.bytes += event.memory();
        self.queue.push_back(event);
        while self.queue.len() > MAX_EVENTS || self.bytes > MAX_EVENT_BYTES {
            self.pop();
            self.dropped += 1;
        }
    }
}

impl Registry {
    /// Publishes all changes now.
    pub fn publish(&mut self, now: Instant) {
        let work = self.lists.publish();
        // Changes beyond the work limit of one publication are published with the next.
        self.publish_timer.pause(now, work, self.lists.is_published());
        self.stats.publishes += 1;
    }

    /// Queues an event about a change of the list, and schedules its publication.
    pub(super) fn emit(&mut self, now: Instant, event: Event) {
        self.publish_timer.schedule(now);
        self.events.push(event);
    }
}
