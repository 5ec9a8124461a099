//! The part of the registry that has the lists: what is published, when, and the events about it.

use super::{Entries, Event};
use crate::{PublishedLists, RegistryStats, UnlistReason, hash::KeyedHash, index::SlotIndex, lists::ListBuilder};
use std::{
    collections::VecDeque,
    sync::Arc,
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
struct PublishTimer {
    at: Option<Instant>,
    /// The end of the pause after the last publication.
    not_before: Option<Instant>,
}

impl PublishTimer {
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
struct EventQueue {
    queue: VecDeque<Event>,
    /// Memory that the queued events keep in use.
    bytes: usize,
    /// Number of events that were dropped because the queue was full.
    dropped: u64,
}

impl EventQueue {
    fn pop(&mut self) -> Option<Event> {
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

/// The lists, and the changes that their owner has not been told of.
#[derive(Debug)]
pub(super) struct Publisher {
    builder: ListBuilder,
    timer: PublishTimer,
    events: EventQueue,
    is_restoring: bool,
    /// Number of listed servers.
    listed: usize,
    /// Servers that left the list by reason, in the order of [`UnlistReason::CODES`].
    unlisted: [u64; UnlistReason::CODES.len()],
    /// Number of times the lists were published.
    publishes: u64,
}

impl Publisher {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            builder: ListBuilder::new(keyed),
            timer: PublishTimer::default(),
            events: EventQueue::default(),
            is_restoring: false,
            listed: 0,
            unlisted: [0; UnlistReason::CODES.len()],
            publishes: 0,
        }
    }

    /// The lists as published.
    pub fn published(&self) -> &Arc<PublishedLists> {
        self.builder.published()
    }

    /// Number of times the lists were published.
    pub fn publishes(&self) -> u64 {
        self.publishes
    }

    /// Fills in the counters of the lists.
    pub fn add_stats(&self, stats: &mut RegistryStats) {
        stats.unlisted = self.unlisted;
        stats.listed = self.listed;
        stats.dropped_events = self.events.dropped;
        stats.publishes = self.publishes;
    }

    /// Shows an entry in its list as it is now. Returns whether the list has changed.
    pub fn show(&mut self, now: Instant, entries: &mut Entries, slot: SlotIndex) -> bool {
        let cold = entries.cold(slot);
        let server = Arc::clone(&cold.server);
        let event = match cold.position {
            Some(position) if self.builder.replace(position, &server) => Event::Changed(server),
            Some(_) => return false,
            None => {
                entries.set_position(slot, Some(self.builder.insert(slot, server.clone())));
                self.listed += 1;
                Event::Listed(server)
            }
        };
        self.emit(now, event);
        true
    }

    /// Removes an entry from its list. Returns whether it was listed.
    pub fn hide(&mut self, now: Instant, entries: &mut Entries, slot: SlotIndex, reason: UnlistReason) -> bool {
        let Some(position) = entries.set_position(slot, None) else { return false };
        let shown = self.builder.remove(position, |slot, moved| {
            entries.set_position(slot, Some(moved));
        });
        self.listed -= 1;
        self.unlisted[reason as usize] += 1;
        self.emit(now, Event::Unlisted(shown, reason));
        true
    }

    /// Queues an event about a change of the list, and schedules its publication.
    fn emit(&mut self, now: Instant, event: Event) {
        self.timer.schedule(now);
        if !self.is_restoring {
            self.events.push(event);
        }
    }

    pub fn pop_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Publishes all changes if it is time. When it is time next is [`next_publication`](Self::next_publication).
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timer.at.is_some_and(|at| at <= now) {
            self.publish(now);
        }
    }

    pub fn next_publication(&self) -> Option<Instant> {
        self.timer.at
    }

    /// Publishes all changes.
    pub fn publish(&mut self, now: Instant) {
        let work = self.builder.publish();
        self.timer.pause(now, work);
        self.publishes += 1;
    }

    /// Reports no events until [`end_restore`](Self::end_restore): the servers were listed before.
    pub fn begin_restore(&mut self) {
        self.is_restoring = true;
    }

    /// Publishes what was restored.
    pub fn end_restore(&mut self, now: Instant) {
        self.is_restoring = false;
        self.publish(now);
    }

    /// Panics unless exactly the listed entries are in the lists.
    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, entries: &Entries) {
        let listed = entries.iter().filter(|(_, cold)| cold.position.is_some()).count();
        assert_eq!(listed, self.listed, "listed servers");
        self.builder.check_invariants(|slot, position, server| {
            let cold = entries.get(slot);
            cold.is_some_and(|cold| cold.position == Some(position) && Arc::ptr_eq(&cold.server, server))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::entries::tests::{entries, entry_at};
    use rallypoint_wire::lobby::ListId;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_publication_is_due_at_once_and_then_after_a_pause_that_grows_with_its_work() {
        let now = Instant::now();
        let mut timer = PublishTimer::default();
        timer.schedule(now);
        assert_eq!(timer.at, Some(now));
        timer.pause(now, 10 * BYTES_PER_MILLISECOND);
        assert_eq!(timer.at, None);
        timer.schedule(now + MS);
        timer.schedule(now + 2 * MS);
        assert_eq!(timer.at, Some(now + MIN_INTERVAL + 10 * MS));
    }

    #[test]
    fn the_oldest_events_are_dropped_when_they_keep_too_much_memory() {
        let (mut entries, _, now) = entries();
        let slot = entry_at(&mut entries, now, 1);
        let event = || Event::Listed(Arc::clone(&entries.cold(slot).server));
        let max = MAX_EVENTS.min(MAX_EVENT_BYTES / event().memory());
        let mut queue = EventQueue::default();
        (0..max + 10).for_each(|_| queue.push(event()));
        assert_eq!((queue.dropped, queue.queue.len()), (10, max));
        while queue.pop().is_some() {}
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn a_change_is_an_event_and_visible_when_it_is_published() {
        let (mut entries, _, now) = entries();
        let slots = [1, 2, 3].map(|number| entry_at(&mut entries, now, number));
        let mut lists = Publisher::new(KeyedHash::new(7));
        for slot in slots {
            assert!(lists.show(now, &mut entries, slot) && !lists.show(now, &mut entries, slot));
        }
        assert_eq!(lists.published().list(&ListId::GANG_GARRISON_2).count(), 0);
        lists.handle_timeout(now);
        assert_eq!(lists.published().list(&ListId::GANG_GARRISON_2).count(), 3);
        assert!(lists.hide(now, &mut entries, slots[0], UnlistReason::Expired));
        assert!(!lists.hide(now, &mut entries, slots[0], UnlistReason::Expired));
        lists.check_invariants(&entries);
        let events: Vec<_> = std::iter::from_fn(|| lists.pop_event()).collect();
        assert!(matches!(
            events[..],
            [Event::Listed(_), Event::Listed(_), Event::Listed(_), Event::Unlisted(_, UnlistReason::Expired)]
        ));
        assert_eq!(lists.next_publication(), Some(now + MIN_INTERVAL));
    }
}
