//! The servers as the web server displays them: the latest snapshot of the lobby's table, and the events since.

mod batch;
mod cursor;
mod follow;

pub(crate) use batch::Batch;
pub(crate) use cursor::Cursor;
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

/// Maximum number of batches that a client may be behind before it is disconnected. It reconnects and resumes.
const BEHIND: usize = 64;

/// The latest snapshot and the events since.
#[derive(Debug)]
pub(crate) struct Live {
    feed: Arc<ServerFeed>,
    snapshot: ArcSwap<LiveSnapshot>,
    past: Mutex<Past>,
    batches: broadcast::Sender<Arc<Batch>>,
    is_following: AtomicBool,
}

/// A snapshot of the lobby's table, and the last event whose change it contains.
#[derive(Debug)]
pub(crate) struct LiveSnapshot {
    table: Arc<TableSnapshot>,
    cursor: Cursor,
}

/// The most recent events.
#[derive(Debug, Default)]
struct Past {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
}

/// The starting point of an event stream.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The last event of `missed`, or the last one before.
    pub cursor: Cursor,
    /// The events after the one that the client knows; `None` if they are no longer kept.
    pub missed: Option<Vec<Bytes>>,
    /// The events from now on.
    pub batches: broadcast::Receiver<Arc<Batch>>,
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
    /// An empty list. The epoch tells the events of this process from those of an earlier one: it should be random.
    pub fn new(feed: Arc<ServerFeed>, epoch: u32) -> Self {
        let snapshot = LiveSnapshot::new(Arc::new(TableSnapshot::empty()), Cursor { epoch, number: 0 });
        Self {
            feed,
            snapshot: ArcSwap::from_pointee(snapshot),
            past: Mutex::default(),
            batches: broadcast::Sender::new(BEHIND),
            is_following: false.into(),
        }
    }

    /// All servers as they are now.
    pub fn snapshot(&self) -> Guard<Arc<LiveSnapshot>> {
        self.snapshot.load()
    }

    /// Number of clients that listen to events.
    pub fn listeners(&self) -> usize {
        self.batches.receiver_count()
    }

    /// Whether this is the list as the lobby has it, but for the last moments: not before it was read for the first time,
    /// nor after the lobby has ended.
    pub fn is_current(&self) -> bool {
        self.is_following.load(Relaxed) && self.feed.is_current()
    }

    fn set_following(&self, is_following: bool) {
        self.is_following.store(is_following, Relaxed);
    }

    /// Publishes a snapshot and the events that lead to it.
    fn publish(&self, table: Arc<TableSnapshot>, batch: Option<Batch>) {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = batch.as_ref().map_or_else(|| self.snapshot.load().cursor, Batch::last);
        self.snapshot.store(Arc::new(LiveSnapshot::new(table, cursor)));
        if let Some(batch) = batch.map(Arc::new) {
            past.bytes += batch.size();
            past.batches.push_back(Arc::clone(&batch));
            while past.bytes > KEPT_BYTES
                && let Some(oldest) = past.batches.pop_front()
            {
                past.bytes -= oldest.size();
            }
            // It fails if there are no listeners at present, which is fine. It is sent under the lock, so that a listener that
            // joins neither misses it nor gets it twice.
            let _ = self.batches.send(batch);
        }
    }

    /// Begins to listen, after an event that the listener knows.
    pub fn join(&self, after: Option<Cursor>, lobby: Option<LobbyId>) -> Joined {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = self.snapshot.load().cursor();
        let missed = match after {
            None => Some(Vec::new()),
            Some(after) => past.since(after, cursor, lobby),
        };
        Joined { cursor, missed, batches: self.batches.subscribe() }
    }
}

impl Past {
    fn since(&self, after: Cursor, now: Cursor, lobby: Option<LobbyId>) -> Option<Vec<Bytes>> {
        let kept_from = self.batches.front().map_or(now.number, |batch| batch.before().number);
        if after.epoch != now.epoch || after.number > now.number || after.number < kept_from {
            return None;
        }
        let first = self.batches.partition_point(|batch| batch.last().number <= after.number);
        Some(self.batches.iter().skip(first).flat_map(|batch| batch.after(after.number, lobby)).collect())
    }
}
