//! The servers as the web server displays them: the latest snapshot of the lobby's table, and the events since.

mod cursor;
mod event_batch;
mod follow;

pub(crate) use cursor::Cursor;
pub(crate) use event_batch::EventBatch;
pub(crate) use follow::follow;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use rallypoint_lobby::{ServerFeed, TableSnapshot};
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tokio::sync::broadcast;

/// Maximum number of bytes of past events that are kept for clients that reconnect. A busy lobby of a thousand servers produces
/// some 30 kB per second, so this is enough for minutes; a client that was away for longer fetches the list again.
const KEPT_BYTES: usize = 8 << 20;

/// Maximum number of batches that a client may lag behind before it is disconnected. It reconnects and resumes.
const MAX_LAG: usize = 64;

/// The latest snapshot and the events since.
#[derive(Debug)]
pub(crate) struct Live {
    feed: Arc<ServerFeed>,
    snapshot: ArcSwap<LiveSnapshot>,
    recent: Mutex<RecentEvents>,
    batches: broadcast::Sender<Arc<EventBatch>>,
    is_following: AtomicBool,
}

/// A snapshot of the lobby's table, and the last event whose change it contains.
#[derive(Debug)]
pub(crate) struct LiveSnapshot {
    table: Arc<TableSnapshot>,
    cursor: Cursor,
}

/// The most recent events, for clients that reconnect.
#[derive(Debug, Default)]
struct RecentEvents {
    batches: VecDeque<Arc<EventBatch>>,
    bytes: usize,
}

/// A subscription to events, with the ones that the client has missed.
#[derive(Debug)]
pub(crate) struct EventSubscription {
    /// The last event of `missed`, or the last one before.
    pub cursor: Cursor,
    /// The events after the one that the client knows; `None` if they are no longer kept.
    pub missed: Option<Vec<Bytes>>,
    /// The events from now on.
    pub batches: broadcast::Receiver<Arc<EventBatch>>,
}

impl LiveSnapshot {
    pub fn new(table: Arc<TableSnapshot>, cursor: Cursor) -> Self {
        Self { table, cursor }
    }

    /// The last event whose change is part of this snapshot.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }
}

impl Deref for LiveSnapshot {
    type Target = TableSnapshot;

    fn deref(&self) -> &TableSnapshot {
        &self.table
    }
}

impl Live {
    /// An empty list. The epoch distinguishes the events of this process from those of an earlier one: it should be random.
    pub fn new(feed: Arc<ServerFeed>, epoch: u32) -> Self {
        let snapshot = LiveSnapshot::new(Arc::new(TableSnapshot::empty()), Cursor { epoch, number: 0 });
        Self {
            feed,
            snapshot: ArcSwap::from_pointee(snapshot),
            recent: Mutex::default(),
            batches: broadcast::Sender::new(MAX_LAG),
            is_following: false.into(),
        }
    }

    /// The latest snapshot of all servers.
    pub fn snapshot(&self) -> Guard<Arc<LiveSnapshot>> {
        self.snapshot.load()
    }

    /// Number of open event streams.
    pub fn listeners(&self) -> usize {
        self.batches.receiver_count()
    }

    /// Whether the snapshot follows the table of the lobby: from its first update until the lobby ends.
    pub fn is_current(&self) -> bool {
        self.is_following.load(Relaxed) && self.feed.is_current()
    }

    fn set_following(&self, is_following: bool) {
        self.is_following.store(is_following, Relaxed);
    }

    /// Publishes a snapshot and the events that lead to it.
    fn publish(&self, table: Arc<TableSnapshot>, batch: Option<EventBatch>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = batch.as_ref().map_or_else(|| self.snapshot.load().cursor, EventBatch::last);
        self.snapshot.store(Arc::new(LiveSnapshot::new(table, cursor)));
        if let Some(batch) = batch.map(Arc::new) {
            recent.bytes += batch.size();
            recent.batches.push_back(Arc::clone(&batch));
            while recent.bytes > KEPT_BYTES
                && let Some(oldest) = recent.batches.pop_front()
            {
                recent.bytes -= oldest.size();
            }
            // An error means that there are no subscribers. The batch is sent under the lock, so that a new subscriber neither
            // misses it nor receives it twice.
            let _ = self.batches.send(batch);
        }
    }

    /// Subscribes to the events after the last one that the client has received.
    pub fn subscribe(&self, after: Option<Cursor>, lobby: Option<LobbyId>) -> EventSubscription {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = self.snapshot.load().cursor();
        let missed = match after {
            None => Some(Vec::new()),
            Some(after) => recent.since(after, cursor, lobby),
        };
        EventSubscription { cursor, missed, batches: self.batches.subscribe() }
    }
}

impl RecentEvents {
    fn since(&self, after: Cursor, now: Cursor, lobby: Option<LobbyId>) -> Option<Vec<Bytes>> {
        let kept_from = self.batches.front().map_or(now.number, |batch| batch.before().number);
        if after.epoch != now.epoch || after.number > now.number || after.number < kept_from {
            return None;
        }
        let first = self.batches.partition_point(|batch| batch.last().number <= after.number);
        Some(self.batches.iter().skip(first).flat_map(|batch| batch.after(after.number, lobby)).collect())
    }
}
