//! Passing the registry's events on to the tasks that follow it, in batches.
//!
//! A send wakes every subscriber, and with it another thread. When thousands of servers change per second, that costs more than
//! the changes themselves, so events are collected: the first one is sent at once, later ones at most every 20 ms.

use rallypoint_lobby_proto::Event;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::broadcast;

/// Events in the order in which they happened. Checks are not among them.
pub type LobbyEvents = Arc<[Event]>;

/// Minimum interval between two batches, unless one is full: that between two publications of the lists.
const INTERVAL: Duration = Duration::from_millis(20);

/// Size in bytes of a full batch. An event keeps the data of a server in memory, also when the server has changed since.
const FULL: usize = 256 << 10;

/// Number of batches that a subscriber may be behind before it misses some: at least 0.6 s, at most 8 MB.
pub(super) const BACKLOG: usize = 32;

/// Collects events and sends them to all subscribers.
#[derive(Debug)]
pub(super) struct EventBatches {
    subscribers: broadcast::Sender<LobbyEvents>,
    collected: Vec<Event>,
    bytes: usize,
    not_before: Instant,
}

impl EventBatches {
    pub fn new(subscribers: broadcast::Sender<LobbyEvents>, now: Instant) -> Self {
        Self { subscribers, collected: Vec::new(), bytes: 0, not_before: now }
    }

    /// Adds an event to the batch, which is sent when it is full.
    pub fn push(&mut self, now: Instant, event: Event) {
        self.bytes += event.memory();
        self.collected.push(event);
        if self.bytes >= FULL {
            self.send(now);
        }
    }

    /// Sends the collected events if that is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.send(now);
        }
    }

    /// When the collected events are to be sent.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.collected.is_empty()).then_some(self.not_before)
    }

    /// Sends everything that was collected, and subscribes to all later events.
    pub fn subscribe(&mut self, now: Instant) -> broadcast::Receiver<LobbyEvents> {
        self.send(now);
        self.subscribers.subscribe()
    }

    fn send(&mut self, now: Instant) {
        self.bytes = 0;
        self.not_before = now + INTERVAL;
        if self.collected.is_empty() {
            return;
        }
        let batch: LobbyEvents = self.collected.drain(..).collect();
        // It fails if there are no subscribers at present, which is fine.
        let _ = self.subscribers.send(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::{Config, HashKeys, Registry};
    use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};

    /// The event of a server with this much data.
    fn event(number: u8, bytes: usize) -> Event {
        let now = Instant::now();
        let mut registry = Registry::new(Config::default(), HashKeys::default(), now).unwrap();
        let mut table = TableBuf::new();
        table.push(b"name", &vec![b'x'; bytes]).unwrap();
        let id = ServerId::from_bytes([number; 16]);
        let port = 1.try_into().unwrap();
        let mut datagram = Vec::new();
        let lobby = ListId::from_bytes([1; 16]);
        Registration::new(id, lobby, Transport::Udp, port, Occupancy::default(), table.as_table())
            .unwrap()
            .emit(&mut datagram);
        registry.handle_datagram(now, "203.0.113.9:1".parse().unwrap(), &datagram);
        registry.poll_event().unwrap()
    }

    #[test]
    fn the_first_event_is_sent_at_once_and_later_ones_together() {
        let (sender, mut receiver) = broadcast::channel(BACKLOG);
        let start = Instant::now();
        let mut batches = EventBatches::new(sender, start);
        batches.push(start, event(1, 10));
        batches.handle_timeout(start);
        assert_eq!(receiver.try_recv().unwrap().len(), 1);
        for number in 2..5 {
            batches.push(start, event(number, 10));
        }
        batches.handle_timeout(start + INTERVAL / 2);
        assert!(receiver.try_recv().is_err());
        assert_eq!(batches.poll_timeout(), Some(start + INTERVAL));
        batches.handle_timeout(start + INTERVAL);
        assert_eq!(receiver.try_recv().unwrap().len(), 3);
        assert_eq!(batches.poll_timeout(), None);
    }

    #[test]
    fn a_batch_is_bounded_in_bytes() {
        let (sender, mut receiver) = broadcast::channel(BACKLOG);
        let start = Instant::now();
        let mut batches = EventBatches::new(sender, start + INTERVAL);
        let event = event(1, 1_000);
        for _ in 0..1_000 {
            batches.push(start, event.clone());
        }
        let mut count = 0;
        while let Ok(batch) = receiver.try_recv() {
            assert!(batch.iter().map(Event::memory).sum::<usize>() < FULL + 4_096);
            count += batch.len();
        }
        assert!((500..1_000).contains(&count), "{count}: the rest waits for the end of the interval");
    }
}
