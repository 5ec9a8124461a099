//! Publishing: when changes become visible, and the events about them.

use super::{Event, Registry};
use crate::{UnlistReason, hash::KeyedHash, lists::ListBuilder};
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
    fn pause(&mut self, now: Instant, work: usize) {
        let next = now + MIN_INTERVAL + Duration::from_millis((work / BYTES_PER_MILLISECOND) as u64);
        self.at = None;
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

/// The part of the registry that has the lists: what is published, when, and the events about it.
#[derive(Debug)]
pub(super) struct Publisher {
    pub builder: ListBuilder,
    pub timer: PublishTimer,
    pub events: EventQueue,
    /// For blocks of the list: a buffer that is reused between calls.
    pub block: Vec<u8>,
    /// Number of listed servers.
    pub listed: usize,
    /// Servers that left the list by reason, in the order of [`UnlistReason::CODES`].
    pub unlisted: [u64; UnlistReason::CODES.len()],
    /// Number of times the lists were published.
    pub publishes: u64,
}

impl Publisher {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            builder: ListBuilder::new(keyed),
            timer: PublishTimer::default(),
            events: EventQueue::default(),
            block: Vec::new(),
            listed: 0,
            unlisted: [0; UnlistReason::CODES.len()],
            publishes: 0,
        }
    }
}

impl Registry {
    /// Publishes all changes now.
    pub fn publish(&mut self, now: Instant) {
        let work = self.lists.builder.publish();
        self.lists.timer.pause(now, work);
        self.lists.publishes += 1;
    }

    /// Queues an event about a change of the list, and schedules its publication.
    pub(super) fn emit(&mut self, now: Instant, event: Event) {
        self.lists.timer.schedule(now);
        self.lists.events.push(event);
    }
}
