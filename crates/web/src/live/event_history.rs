//! The most recent events, which all event streams share.

use super::{Cursor, EventBatch, IdFilter};
use crate::server::Connection;
use bytes::Bytes;
use rallypoint_limit::Evictable as _;
use rallypoint_wire::lobby::ListId;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tokio::sync::watch;

/// Maximum memory of past events, in bytes, that are kept for clients that are behind or reconnect. A busy lobby of a thousand
/// servers produces some 30 kB per second, so this is enough for minutes; a client that was away for longer fetches the list
/// again.
pub(super) const KEPT_BYTES: usize = 8 << 20;

/// Maximum number of bytes of events that a client is given at once, unless a single event is longer. What it is given stays in
/// memory until it has received it, with the batch it is a part of.
const MAX_PIECE: usize = 64 << 10;

/// Maximum number of bytes of events that are copied together for a client that follows some servers only, unless a single event
/// is longer.
const MAX_COPY: usize = 16 << 10;

/// The most recent events.
#[derive(Debug)]
pub(crate) struct EventHistory {
    recent: Mutex<RecentEvents>,
    /// The last event; listeners wait for it to change.
    last: watch::Sender<Cursor>,
}

#[derive(Debug, Default)]
struct RecentEvents {
    batches: VecDeque<EventBatch>,
    bytes: usize,
    readers: HashMap<u64, Arc<Reader>>,
    /// Number of the next reader.
    next_reader: u64,
}

/// The connection of a subscription, and the events that it may still hold in memory.
#[derive(Debug)]
struct Reader {
    connection: Arc<Connection>,
    /// Number of the first event that was given to the connection since it was flushed last.
    held: AtomicU64,
    /// The connection's number of flushes at that time.
    flushes: AtomicU64,
}

/// The position of a client in the events. It holds none of them but the piece that is being sent: a client that does not read
/// costs no memory here, and is disconnected when the events that it does not receive are no longer kept.
#[derive(Debug)]
pub(crate) struct EventSubscription {
    history: Arc<EventHistory>,
    reader: Arc<Reader>,
    reader_number: u64,
    scope: EventScope,
    /// The last event that was returned or skipped.
    position: Cursor,
    last: watch::Receiver<Cursor>,
}

/// The events that a client receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventScope {
    /// Only those of this list.
    pub list: Option<ListId>,
    /// Only those of these servers.
    pub ids: Option<IdFilter>,
}

/// The events after the position of a client are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventsLost;

impl EventHistory {
    /// A history without events, after `before`.
    pub fn new(before: Cursor) -> Self {
        Self { recent: Mutex::default(), last: watch::Sender::new(before) }
    }

    /// Number of subscriptions.
    pub fn subscriptions(&self) -> usize {
        self.last.receiver_count()
    }

    /// Adds the events that lead to a snapshot. `store` publishes that snapshot with the last event; it is called under the lock,
    /// so that a subscription that starts now includes either both or none.
    pub fn publish(&self, batch: Option<EventBatch>, store: impl FnOnce(Cursor)) {
        let mut recent = self.recent();
        let last = batch.as_ref().map_or_else(|| *self.last.borrow(), EventBatch::last);
        store(last);
        if let Some(batch) = batch {
            if batch.is_lost() {
                recent.batches.clear();
                recent.bytes = 0;
            } else {
                recent.bytes += batch.memory();
                recent.batches.push_back(batch);
            }
            while recent.bytes > KEPT_BYTES
                && let Some(oldest) = recent.batches.pop_front()
            {
                recent.bytes -= oldest.memory();
            }
            let kept_after = recent.kept_after(last.number);
            recent
                .readers
                .values()
                .filter(|reader| reader.holds(kept_after))
                .for_each(|reader| reader.connection.evict());
            self.last.send_replace(last);
        }
    }

    /// Subscribes to the events after the last one that the client has received. If these are no longer kept, the subscription
    /// starts with the next event.
    pub fn subscribe(
        self: &Arc<Self>,
        after: Option<Cursor>,
        scope: EventScope,
        connection: &Arc<Connection>,
    ) -> (EventSubscription, Result<(), EventsLost>) {
        let mut recent = self.recent();
        let last = self.last.subscribe();
        let now = *last.borrow();
        let is_kept = |after: Cursor| {
            after.epoch == now.epoch && (recent.kept_after(now.number)..=now.number).contains(&after.number)
        };
        let position = after.filter(|after| is_kept(*after));
        let start = if after.is_some() && position.is_none() { Err(EventsLost) } else { Ok(()) };
        let position = position.unwrap_or(now);
        let reader = Arc::new(Reader {
            connection: Arc::clone(connection),
            held: AtomicU64::new(u64::MAX),
            flushes: AtomicU64::new(0),
        });
        let reader_number = recent.next_reader;
        recent.next_reader += 1;
        recent.readers.insert(reader_number, Arc::clone(&reader));
        drop(recent);
        (EventSubscription { history: Arc::clone(self), reader, reader_number, scope, position, last }, start)
    }

    fn recent(&self) -> MutexGuard<'_, RecentEvents> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSubscription {
    /// The last event that was returned or skipped.
    pub fn cursor(&self) -> Cursor {
        self.position
    }

    /// The next events, if there are any.
    pub fn poll_events(&mut self) -> Result<Option<Bytes>, EventsLost> {
        let recent = self.history.recent();
        let last = *self.last.borrow_and_update();
        if self.position.number < recent.kept_after(last.number) {
            return Err(EventsLost);
        }
        let first = recent.batches.partition_point(|batch| batch.last().number <= self.position.number);
        for batch in recent.batches.iter().skip(first) {
            let after = self.position.number;
            let next = match &self.scope.ids {
                Some(ids) => batch.of_servers_after(after, ids, self.scope.list, MAX_COPY),
                None => batch.after(after, self.scope.list, MAX_PIECE),
            };
            if let Some((events, number)) = next {
                self.reader.hold(batch.before().number + 1);
                self.position.number = number;
                return Ok(Some(events));
            }
            self.position.number = batch.last().number;
        }
        Ok(None)
    }

    /// Waits until there are events after those that were examined last.
    pub async fn changed(&mut self) {
        if self.last.changed().await.is_err() {
            // The history exists as long as the subscription.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for EventSubscription {
    fn drop(&mut self) {
        self.history.recent().readers.remove(&self.reader_number);
    }
}

impl Reader {
    /// Records that events of a batch, whose first event has this number, are given to the connection.
    fn hold(&self, first: u64) {
        let flushes = self.connection.flushes();
        if self.held.load(Relaxed) == u64::MAX || self.flushes.load(Relaxed) != flushes {
            self.held.store(first, Relaxed);
            self.flushes.store(flushes, Relaxed);
        }
    }

    /// Whether the connection may hold events up to this number.
    fn holds(&self, number: u64) -> bool {
        self.held.load(Relaxed) <= number && self.connection.flushes() == self.flushes.load(Relaxed)
    }
}

impl RecentEvents {
    /// The number of the event after which all are kept; `last` is that of the last event.
    fn kept_after(&self, last: u64) -> u64 {
        self.batches.front().map_or(last, |batch| batch.before().number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Cursor = Cursor { epoch: 7, number: 0 };

    fn list(number: u8) -> ListId {
        ListId::from_bytes([number; 16])
    }

    /// A history with this many batches of one event of 100 kB, in two lists by turns.
    fn history(count: u8) -> Arc<EventHistory> {
        let history = Arc::new(EventHistory::new(START));
        (0..count).for_each(|number| publish(&history, number));
        history
    }

    fn publish(history: &EventHistory, number: u8) {
        let before = *history.last.borrow();
        history.publish(Some(EventBatch::of_event(before, list(number % 2), vec![number; 100_000])), |_| {});
    }

    fn subscribe(
        history: &Arc<EventHistory>,
        after: Option<u64>,
        list: Option<ListId>,
    ) -> (EventSubscription, Result<(), EventsLost>) {
        let connection = Arc::new(Connection::new(std::time::Instant::now()));
        let scope = EventScope { list, ids: None };
        history.subscribe(after.map(|number| Cursor { number, ..START }), scope, &connection)
    }

    fn rest(subscription: &mut EventSubscription) -> Vec<u8> {
        std::iter::from_fn(|| subscription.poll_events().unwrap()).map(|bytes| bytes[0]).collect()
    }

    #[test]
    fn a_subscription_resumes_after_an_event() {
        let history = history(6);
        for after in 0..=6 {
            let (mut all, start) = subscribe(&history, Some(after), None);
            assert_eq!(start, Ok(()));
            assert_eq!(rest(&mut all), (after as u8..6).collect::<Vec<_>>());
            assert_eq!(all.cursor(), Cursor { number: 6, ..START });
        }
        let (mut of_list, _) = subscribe(&history, Some(2), Some(list(1)));
        assert_eq!(rest(&mut of_list), [3, 5]);
        let (mut new, start) = subscribe(&history, None, None);
        assert_eq!((start, rest(&mut new)), (Ok(()), vec![]));
        publish(&history, 6);
        assert_eq!((rest(&mut new), rest(&mut of_list)), (vec![6], vec![]));
        for unknown in [Cursor { number: 8, ..START }, Cursor { epoch: 8, number: 3 }] {
            let connection = Arc::new(Connection::new(std::time::Instant::now()));
            let (subscription, start) = history.subscribe(Some(unknown), EventScope::default(), &connection);
            assert_eq!((start, subscription.cursor().number), (Err(EventsLost), 7));
        }
    }

    /// The overhead of a short event is larger than its text.
    #[test]
    fn short_events_are_counted_with_all_they_take() {
        const TEXT: usize = 100;
        let history = EventHistory::new(START);
        for number in 0..100_000 {
            let before = Cursor { number: START.number + number, ..START };
            history.publish(Some(EventBatch::of_event(before, list(1), vec![b'x'; TEXT])), |_| {});
        }
        let recent = history.recent();
        let least = TEXT + 2 * size_of::<EventBatch>();
        assert!(recent.batches.len() * least <= KEPT_BYTES, "{} events", recent.batches.len());
        assert!(recent.batches.len() * 8 * least > KEPT_BYTES, "{} events", recent.batches.len());
    }

    /// A flood that changes all servers at once has more events than are kept: they are not even written.
    #[test]
    fn events_that_are_too_many_are_lost_and_take_no_memory() {
        let history = history(3);
        let (mut behind, _) = subscribe(&history, Some(1), None);
        let before = *history.last.borrow();
        history.publish(Some(EventBatch::of_lost_events(before, 100)), |_| {});
        assert_eq!(history.recent().bytes, 0);
        assert_eq!(behind.poll_events(), Err(EventsLost));
        assert_eq!(subscribe(&history, Some(before.number), None).1, Err(EventsLost));
        let (mut current, start) = subscribe(&history, Some(before.number + 100), None);
        assert_eq!(start, Ok(()));
        publish(&history, 7);
        assert_eq!(rest(&mut current), [7]);
    }

    #[test]
    fn subscriptions_that_are_not_read_keep_no_events() {
        let history = history(80);
        let mut unread: Vec<_> = (0..80).map(|number| subscribe(&history, Some(number), None).0).collect();
        // Each of them has seen some of the oldest events.
        for subscription in &mut unread {
            assert!(subscription.poll_events().unwrap().is_some());
        }
        for number in 0..170 {
            publish(&history, number);
        }
        let recent = history.recent();
        assert!(recent.bytes <= KEPT_BYTES && recent.batches.len() <= 83);
        assert!(recent.batches.iter().all(EventBatch::is_unshared), "no subscription refers to events");
        drop(recent);
        assert!(unread.iter().all(|subscription| subscription.reader.connection.is_evicted()));
        for subscription in &mut unread {
            assert_eq!(subscription.poll_events(), Err(EventsLost));
        }
    }

    /// Listeners of a list of 10,000 servers: each refers to the one encoding of the events, and adds its position.
    #[test]
    fn two_hundred_listeners_share_the_bytes_of_ten_thousand_events() {
        const PIECES: usize = 20;
        let history = Arc::new(EventHistory::new(START));
        for number in 0..10_000 {
            let before = Cursor { number, ..START };
            history.publish(Some(EventBatch::of_event(before, list(1), vec![b'x'; 300])), |_| {});
        }
        let kept = history.recent().bytes;
        let mut listeners: Vec<_> = (0..200).map(|_| subscribe(&history, Some(0), None).0).collect();
        let mut of_list = subscribe(&history, Some(0), Some(list(1))).0;
        for _ in 0..PIECES {
            let piece = of_list.poll_events().unwrap().unwrap();
            let same: Vec<_> = listeners.iter_mut().map(|listener| listener.poll_events().unwrap().unwrap()).collect();
            assert!(same.iter().all(|bytes| bytes.as_ptr() == piece.as_ptr() && bytes.len() == piece.len()));
        }
        assert_eq!(history.recent().bytes, kept);
        let own = size_of::<EventSubscription>() + size_of::<Reader>();
        assert!(own <= 512, "{own} bytes");
    }

    #[test]
    fn a_client_that_receives_its_events_stays_connected() {
        let history = history(10);
        let (mut subscription, _) = subscribe(&history, Some(0), None);
        let connection = Arc::clone(&subscription.reader.connection);
        let (idle, _) = subscribe(&history, None, None);
        for number in 0..250 {
            publish(&history, number);
            assert!(subscription.poll_events().unwrap().is_some());
            connection.flushed();
        }
        assert!(!connection.is_evicted() && !idle.reader.connection.is_evicted());
        assert!(subscription.poll_events().unwrap().is_some());
        for number in 0..100 {
            publish(&history, number);
        }
        assert!(connection.is_evicted(), "it has not received the last piece");
        drop((subscription, idle));
        assert!(history.recent().readers.is_empty());
    }
}
